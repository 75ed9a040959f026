#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looking for system calls in a program of a hundred megabytes: all are found, and the memory that it takes goes back."""
import os
import shutil
import subprocess
import tempfile
import unittest

import obstest
from obstest import ObsTest, weft

CC = os.environ["CC"].split()
MIB = 100
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Two functions far from each other and from all others, and between them what nobody runs. */
__asm__(".text\n"
	".balign 4096\n"
	".globl answer\n.type answer, @function\n"
	"answer: mov $41, %eax\n ret\n"
	".size answer, . - answer\n"
	".balign 4096\n"
	".skip " SKIP " << 20, 0x90\n"
	".globl inline_gettid\n.type inline_gettid, @function\n"
	"inline_gettid: .cfi_startproc\n mov $186, %eax\n syscall\n ret\n .cfi_endproc\n"
	".size inline_gettid, . - inline_gettid\n"
	".balign 4096\n"
	".skip 1 << 20, 0x90\n");
int answer(void);
long inline_gettid(void);

static long file_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "RssFile: %ld", &kib);
	fclose(f);
	return kib;
}

/* As code that rewrites itself: the page becomes a copy. */
static void change_answer(void)
{
	char *page = (char *)((long)answer & -4096l);

	if (mprotect(page, 4096, PROT_READ | PROT_WRITE))
		abort();
	((char *)answer)[1] = 42;
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		abort();
}

static void *compare(void *arg)
{
	*(int *)arg = inline_gettid() == syscall(SYS_gettid);
	return NULL;
}

int main(void)
{
	int is_same = 0;
	long before, after;
	pthread_t t;

	change_answer();
	before = file_kib();
	if (pthread_create(&t, NULL, compare, &is_same) || pthread_join(t, NULL))
		return 1;
	after = file_kib();
	printf("%d %d %ld\n", is_same, answer(), after - before);
	return 0;
}
"""


class Search(ObsTest):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="weft-obs-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.program = os.path.join(cls.dir, "program")
        source = os.path.join(cls.dir, "program.c")
        with open(source, "w", encoding="ascii") as f:
            f.write(PROGRAM)
        done = subprocess.run([*CC, "-O1", f'-DSKIP="{MIB}"', "-pthread", "-o", cls.program, source],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise unittest.SkipTest(f"the compiler cannot make a program of {MIB} MiB: {done.stderr[-200:]}")

    def test_calls_are_found_and_memory_goes_back(self):
        done = weft("run", self.program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        is_same, answer, grown = map(int, done.stdout.split())
        self.assertEqual(is_same, 1, "the inline call is the kernel's")
        self.assertEqual(answer, 42, "what the program had written to its text is gone")
        self.assertLess(grown, 8192, f"KiB of files became resident: {MIB} MiB of text were searched")

    def test_doctor_says_how_long_it_takes(self):
        done = weft("doctor", "--program", self.program)
        self.assertRegex(done.stdout, r"(?m)^search +1\d\d MiB of text: about \d+ ms at the first thread")


obstest.main()
