#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A newcomer's path: install, copy the program out of README.md, compile it as it says there, run it, look at it.

As root directory of the installation stands a folder of the test's. Arguments: names of the tests that are to run."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ["WEFT_BUILD"]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Newcomer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="weft-newcomer-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        stage = os.path.join(cls.dir, "stage")
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "runtime,devel", "--destdir",
                        stage], check=True, stdout=subprocess.DEVNULL)
        cls.pc = subprocess.run(["find", stage, "-name", "weft.pc"], check=True, capture_output=True, text=True).stdout.strip()
        cls.prefix = re.search(r"^prefix=(.*)$", read(cls.pc), re.M).group(1)
        cls.installed = stage + cls.prefix
        cls.libdir = os.path.dirname(os.path.dirname(cls.pc))
        # A user's own compiler, not the flags and sanitizers that the tree may be built with.
        cls.env = {name: value for name, value in os.environ.items() if not name.startswith(("WEFT", "MALLOC_", "CFLAGS"))}
        cls.env.update(PKG_CONFIG_PATH=os.path.dirname(cls.pc), PKG_CONFIG_SYSROOT_DIR=stage, LD_LIBRARY_PATH=cls.libdir,
                       PATH=os.path.join(cls.installed, "bin") + os.pathsep + os.environ["PATH"])
        cls.source = re.search(r"```c\n(.*?)```", read(os.path.join(ROOT, "README.md")), re.S).group(1)
        with open(os.path.join(cls.dir, "first.c"), "w", encoding="utf-8") as f:
            f.write(cls.source)

    def run_it(self, command, **kwargs):
        return subprocess.run(command, cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60, check=False,
                              **kwargs)

    def look_at(self, program):
        """It runs on weft, and is seen there."""
        with subprocess.Popen([program, "60"], cwd=self.dir, env=self.env, stdout=subprocess.PIPE, text=True) as first:
            try:
                self.assertEqual(first.stdout.readline(), "10000 threads\n")
                dump = self.run_it(["weft", "dump", str(first.pid)])
                while dump.returncode == 0 and "10,000 threads: parked, sleep" not in dump.stdout:  # not all have begun
                    dump = self.run_it(["weft", "dump", str(first.pid)])
            finally:
                first.kill()
        self.assertEqual(dump.returncode, 0, dump.stderr)
        self.assertIn("sleeper", dump.stdout)
        self.assertIn("10,000", dump.stdout)

    def test_readme(self):
        self.assertEqual(self.source, read(os.path.join(ROOT, "examples/native/first.c")), "README.md has another program")
        self.assertLess(len(self.source.splitlines()), 30)
        line = re.search(r"^(cc .*pkg-config.*)$", read(os.path.join(ROOT, "README.md")), re.M).group(1)
        done = self.run_it(["sh", "-c", line.split("#")[0]])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.look_at(os.path.join(self.dir, "first"))

    def test_a_program_that_calls_nothing_is_linked_all_the_same(self):
        source = "int main(void) { return 0; }\n"
        done = self.run_it(["sh", "-c", "cc -Wl,--as-needed -x c - -o nothing $(pkg-config --cflags --libs weft) && "
                            "readelf -d nothing"], input=source)
        self.assertIn("libweft.so.0", done.stdout, done.stderr)

    def test_cmake(self):
        if not shutil.which("cmake"):
            self.skipTest("no cmake")
        done = self.configure("0.1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.run_it(["cmake", "--build", "b-0.1"])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.look_at(os.path.join(self.dir, "b-0.1", "first-cmake"))
        self.assertNotEqual(self.configure("9.0").returncode, 0)

    def configure(self, version):
        with open(os.path.join(self.dir, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write(f"cmake_minimum_required(VERSION 3.10)\nproject(first C)\nfind_package(weft {version} REQUIRED)\n"
                    "add_executable(first-cmake first.c)\ntarget_link_libraries(first-cmake PRIVATE weft::weft)\n")
        return self.run_it(["cmake", "-S", ".", "-B", f"b-{version}", f"-DCMAKE_PREFIX_PATH={self.installed}"])


unittest.main()
