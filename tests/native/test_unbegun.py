#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Threads that have been spawned, and that no pthread runs yet, are counted by `weft dump` and `weft metrics`. See unbegun.c."""
import json
import os
import re
import subprocess
import unittest

WEFT = os.environ["WEFT_COMMAND"]
LIMIT_S = 60
MANY = 500


class Unbegun(unittest.TestCase):
    def setUp(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")}
        # A thread computes for so long before the next one begins.
        self.victim = subprocess.Popen([os.environ["UNBEGUN"]], stdout=subprocess.PIPE, text=True,
                                       env={**env, "WEFT_WORKERS": "1", "WEFT_SLICE": "1000000"})
        self.assertEqual(self.victim.stdout.readline(), "ready\n")

    def tearDown(self):
        self.victim.kill()
        self.victim.communicate()

    def ask(self, *args):
        return subprocess.run([WEFT, *args, str(self.victim.pid)], capture_output=True, text=True, check=True,
                              timeout=LIMIT_S).stdout

    def test_a_dump_counts_them(self):
        dump = json.loads(self.ask("dump", "--json"))
        # Main, maybe a pthread that is on its way to the next of them, and the maker, before it has run.
        self.assertIn(dump["nr_threads"] + dump["nr_not_begun"] - MANY, (1, 2, 3))
        self.assertGreater(dump["nr_not_begun"], MANY // 2)
        self.assertRegex(self.ask("dump"), r"\n[1-9]\d* more spawned by weft_thread_spawn\(\): no pthread runs them yet\n")

    def test_metrics_have_them(self):
        found = re.search(r"^weft_threads_not_begun (\d+)$", self.ask("metrics"), re.M)
        self.assertGreater(int(found[1]), MANY // 2)

    def test_a_wait_for_one_of_them_is_a_join(self):
        dump = json.loads(self.ask("dump", "--json"))
        main = next(t for t in dump["threads"] if t["tid"] == self.victim.pid)
        self.assertEqual(main["waits_for"]["kind"], "join")


if __name__ == "__main__":
    unittest.main()
