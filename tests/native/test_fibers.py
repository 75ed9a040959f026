#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft dump` shows the fibers of each thread, what they are at, and who resumed them. See fibers.c."""
import os
import re
import subprocess
import unittest

WEFT = os.environ["WEFT_COMMAND"]
LIMIT_S = 60

MAIN = r"""fiber "inner": running, resumed by fiber "outer"
fiber "outer": waits for fiber "inner", resumed by the thread's own stack
fiber "gone": suspended by a transfer
fiber "odd?[2J": suspended
fiber 0x: has not run yet
fiber "over": has ended, not freed"""


def fibers_of(text, name):
    """The lines of fibers below the thread with that name."""
    part = re.search(rf'^thread \d+ "{name}":.*?(?=^\S|\Z)', text, re.M | re.S)[0]
    return [re.sub(r"0x[0-9a-f]+", "0x", line.strip()) for line in part.splitlines() if re.match(r"    (fiber|\.\.\.)", line)]


class Fibers(unittest.TestCase):
    def setUp(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")}
        self.victim = subprocess.Popen([os.environ["FIBERS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.addCleanup(self.victim.communicate)
        self.assertEqual(self.victim.stdout.readline(), "ready\n")

    def dump(self, *args):
        return subprocess.run([WEFT, "dump", *args], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout

    def check(self, text):
        self.assertEqual(fibers_of(text, "native_fibers"), MAIN.splitlines(), text)
        self.assertEqual(fibers_of(text, "heir"), ['fiber "heir\'s": suspended'], text)
        self.assertEqual(fibers_of(text, "many"), ['fiber "one of many": suspended'] * 20 + ["... and 80 more fibers"], text)
        self.assertEqual(fibers_of(text, "reads"), [], text)

    def test_of_a_process(self):
        self.check(self.dump(str(self.victim.pid)))

    def test_of_one_thread(self):
        text = self.dump("--thread", str(self.victim.pid), str(self.victim.pid))
        self.assertEqual(fibers_of(text, "native_fibers"), MAIN.splitlines(), text)
        self.assertNotIn("heir", text)


unittest.main()
