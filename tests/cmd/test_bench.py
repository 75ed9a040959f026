# SPDX-License-Identifier: Apache-2.0
"""`weft bench`: what it refuses, that a short run has all its rows, and what is said of a model that cannot be had."""
import json
import math
import os
import subprocess
import unittest
import xml.etree.ElementTree

from cmdtest import WEFT, CommandTest

MODELS = ["threads", "spin", "poll", "epoll", "io_uring", "weft"]
SHORT = ("--seconds", "0.05", "--rounds", "1")

# Runs a program that gets EPERM from one system call.
WITHOUT_CALL = r"""
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(argv[1]), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	execv(argv[2], argv + 2);
	return 78;
}
"""
IO_URING_SETUP, PTRACE = "425", "101"


class Bench(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.without_call = cls.compile("without_call", WITHOUT_CALL)

    def bench(self, *args, launcher=(), **changes):
        changes.setdefault("WEFT_LIBRARY", None)  # the real one
        done = subprocess.run([*launcher, WEFT, "bench", *args], env=self.environment(**changes), cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False)
        if launcher and done.returncode == 77:
            self.skipTest("no seccomp filters here")
        return done

    def rows(self, done, code=0):
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(done.stderr, b"")
        return json.loads(done.stdout)["rows"]

    def test_wrong_arguments(self):
        for args, words in (
                ((), ("which benchmark",)),
                (("nothing",), ("no benchmark 'nothing'",)),
                (("--json",), ("after its name",)),
                (("io-models", "--nothing"), ("--nothing",)),
                (("io-models", "extra"), ("'extra'",)),
                (("io-models", "--connections"), ("--connections", "needs a value")),
                (("io-models", "--connections", ""), ("--connections",)),
                (("io-models", "--connections", "50,"), ("--connections",)),
                (("io-models", "--connections", "0"), ("--connections",)),
                (("io-models", "--connections", "1,2,3,4,5,6,7,8,9"), ("--connections",)),
                (("io-models", "--connections", "50x"), ("50x",)),
                (("io-models", "--seconds", "0"), ("--seconds",)),
                (("io-models", "--seconds", "nan"), ("--seconds",)),
                (("io-models", "--rounds", "101"), ("--rounds", "101")),
                (("io-models", "--size", "4097"), ("--size",)),
                (("io-models", "--models", "epoll,select"), ("--models", "epoll,select")),
                (("io-models", "--models", "epoll,epoll"), ("--models",)),
                (("io-models", "--svg", ""), ("--svg",)),
                (("io-models", "--svg", "no/such/folder.svg"), ("no/such/folder.svg", "No such file"))):
            with self.subTest(args=args):
                self.assert_refused(self.weft("bench", *args), 125, "bench: ", *words)

    def test_help_names_the_benchmarks(self):
        for args in (("help", "bench"), ("bench", "--help"), ("bench", "io-models", "--help")):
            done = self.weft(*args)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(b"io-models", done.stdout)

    def test_the_table_fits_the_terminal(self):
        for columns, words in ((40, ("req/CPU s", "p99 us")), (80, ("req/s", "req/CPU s", "p50 us", "p99 us", "KiB/conn")),
                               (120, ("calls/req", "switches"))):
            lines = self.on_a_terminal(columns, "bench", "io-models", *SHORT, "--connections", "3", "--models", "poll,epoll")
            table = lines[next(i for i, l in enumerate(lines) if l.startswith("3 connections")):]
            self.assertLessEqual(max(map(len, table)), columns, table)
            for word in words:
                self.assertIn(word, table[0])

    def test_short_run_has_all_rows(self):
        picture = self.path("picture.svg")
        self.write("picture.svg", b"x" * 100000)  # what was there before is gone afterwards
        done = self.bench("io-models", *SHORT, "--connections", "3,40", "--json", "--svg", picture)
        rows = self.rows(done)
        self.assertEqual([(r["connections"], r["model"]) for r in rows], [(n, m) for n in (3, 40) for m in MODELS])
        for row in rows:
            with self.subTest(row=row):
                if row["model"] == "io_uring" and "why_not" in row:
                    continue
                self.assertNotIn("why_not", row)
                self.assertEqual(len(row["samples"]), 1)
                if row["median"]["requests_per_s"] == 0:
                    continue  # on a busy machine a server may not run at all in so short a time
                for name, value in row["median"].items():
                    if value is None:
                        self.assertIn(name, ("syscalls_per_request", "requests_per_cpu_s"))
                    else:
                        self.assertTrue(math.isfinite(value), name)
                self.assertGreater(row["median"]["p50_us"], 0)
                self.assertLessEqual(row["median"]["p50_us"], row["median"]["p999_us"])
        texts = [e.text for e in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")]
        for wanted in ("3 connections", "40 connections", "threads on NPTL", "threads under weft", "io_uring"):
            self.assertIn(wanted, texts)

    def test_blocking_threads_make_two_calls_a_request(self):
        row = self.rows(self.bench("io-models", *SHORT, "--connections", "4", "--models", "threads", "--json"))[0]
        if row["median"]["syscalls_per_request"] is None:
            self.skipTest("no ptrace here")
        self.assertEqual(row["median"]["syscalls_per_request"], 2)

    def test_table(self):
        done = self.bench("io-models", *SHORT, "--connections", "1,5", "--models", "threads,weft", "--size", "4096")
        self.assertEqual((done.returncode, done.stderr), (0, b""), done.stdout)
        lines = done.stdout.decode().splitlines()
        for head in ("1 connection ", "5 connections "):
            at = [i for i, line in enumerate(lines) if line.startswith(head)][0]
            self.assertTrue(lines[at + 1].startswith("threads on NPTL "), lines)
            self.assertRegex(lines[at + 1], r" (1\.00x|-) ")  # a dash: it did not run in so short a time
            self.assertTrue(lines[at + 2].startswith("threads under weft "), lines)

    def test_kernel_without_io_uring(self):
        done = self.bench("io-models", *SHORT, "--connections", "2", "--models", "io_uring,epoll", "--json",
                          launcher=(self.without_call, IO_URING_SETUP))
        ring, loop = self.rows(done)
        self.assertIn("io_uring: Operation not permitted", ring["why_not"])
        self.assertEqual(ring["samples"], [])
        self.assertNotIn("why_not", loop)

    def test_without_ptrace_nothing_is_counted(self):
        done = self.bench("io-models", *SHORT, "--connections", "2", "--models", "epoll", "--json",
                          launcher=(self.without_call, PTRACE))
        row = self.rows(done)[0]
        self.assertIsNone(row["median"]["syscalls_per_request"])
        self.assertGreaterEqual(row["median"]["requests_per_s"], 0)

    def test_server_that_cannot_start_is_a_failure(self):
        done = self.bench("io-models", *SHORT, "--connections", "2", "--models", "weft", "--json",
                          WEFT_LIBRARY="/no/such/library.so")
        row = self.rows(done, 1)[0]
        self.assertIn("/no/such/library.so", row["why_not"])

    def test_nothing_is_left_running(self):
        done = self.bench("io-models", *SHORT, "--connections", "2", "--models", "spin")
        self.assertEqual(done.returncode, 0, done.stderr)
        helper = os.path.join(os.path.realpath(os.path.dirname(WEFT)), "../../bench/echo/echo-server")
        mine = [p for p in os.listdir("/proc") if p.isdigit() and self.is_child_of_nobody(p, os.path.realpath(helper))]
        self.assertEqual(mine, [])

    @staticmethod
    def is_child_of_nobody(pid, program):
        """Runs `program`, and whoever started it is gone."""
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                parent = f.read().rsplit(")", 1)[1].split()[1]
            return parent == "1" and os.readlink(f"/proc/{pid}/exe") == program
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
