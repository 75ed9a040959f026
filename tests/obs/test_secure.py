#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A set-user-ID program that is linked against weft's library: its user has no say in what weft does."""
import os
import shutil
import subprocess
import tempfile

import obstest
from obstest import ObsTest

LIBRARY = os.environ["WEFT_LIBRARY"]
CC = os.environ["CC"].split()
USER = 65534
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/auxv.h>
static void *nothing(void *arg) { return arg; }
int main(void)
{
	pthread_t t;
	if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
		return 1;
	printf("%ld\n", (long)getauxval(AT_SECURE));
	return 0;
}
"""


class Secure(ObsTest):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a set-user-ID program of another user's")
        self.dir = tempfile.mkdtemp(prefix="weft-obs-")
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        self.program = os.path.join(self.dir, "program")
        library = shutil.copy(LIBRARY, os.path.join(self.dir, "libweft.so.0"))
        os.chmod(library, 0o755)
        subprocess.run([*CC, "-x", "c", "-", "-o", self.program, "-pthread", "-Wl,--no-as-needed",
                        f"-Wl,-rpath,{self.dir}", "-x", "none", library], input=PROGRAM, text=True, check=True)
        os.chmod(self.program, 0o4755)
        self.precious = os.path.join(self.dir, "precious")
        with open(self.precious, "w", encoding="ascii") as f:
            f.write("precious")

    def run_it(self, user, **env):
        return subprocess.run([self.program], env=env, user=user, capture_output=True, text=True, check=False)

    def test_variables_are_not_obeyed(self):
        env = {"WEFT_TRACE": self.precious, "WEFT_STATS": "1", "WEFT_STRICT": "1", "WEFT_WORKERS": "x"}
        done = self.run_it(USER, **env)
        if done.stdout == "0\n":
            self.skipTest("the file system does not honour set-user-ID")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "1\n", ""))
        with open(self.precious, encoding="ascii") as f:
            self.assertEqual(f.read(), "precious")

    def test_the_owner_is_obeyed(self):
        done = self.run_it(0, WEFT_STATS="1")
        self.assertEqual((done.returncode, done.stdout), (0, "0\n"))
        self.assertIn("threads made    1\n", done.stderr)


obstest.main()
