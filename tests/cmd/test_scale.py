# SPDX-License-Identifier: Apache-2.0
"""bench/scale: each workload ends, natively and under weft, and has done something; mistakes get a line."""
import os
import subprocess
import unittest

from cmdtest import WEFT, CommandTest

BENCH = os.path.join(os.path.dirname(WEFT), "../../bench/scale")
PROGRAM = os.path.join(BENCH, "bench-scale")
WORKLOADS = ("semaphore", "condition", "pipe", "yield", "spawn", "mutex", "mutexes", "queue", "sleep")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)


class Scale(CommandTest):
    def check(self, *before):
        for workload in WORKLOADS:
            with self.subTest(workload):
                rate = 0
                # On a busy machine the moment may be over before each thread has had its turn.
                for seconds in ("0.05", "0.5", "5"):
                    done = run(*before, PROGRAM, workload, "5", seconds)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    rate, busy = map(float, done.stdout.split())
                    self.assertGreaterEqual(busy, 0)
                    if rate:
                        break
                self.assertGreater(rate, 0)

    def test_natively(self):
        self.check()

    def test_under_weft(self):
        self.check(WEFT, "run", "--workers", "3", "--")

    def test_bad_arguments(self):
        for arguments in ((), ("mutex",), ("mutex", "0"), ("mutex", "-1"), ("mutex", "4", "0"), ("mutex", "4", "x"),
                          ("nothing", "4")):
            with self.subTest(arguments):
                done = run(PROGRAM, *arguments)
                self.assertEqual(done.returncode, 2)
                self.assertRegex(done.stderr, r"\Ausage: scale .*\n\Z")


if __name__ == "__main__":
    unittest.main()
