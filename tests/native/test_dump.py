#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft dump` and the gdb script say what threads wait for in libweft's functions, by name. See waits.c."""
import json
import os
import re
import shutil
import subprocess
import time
import unittest

WEFT = os.environ["WEFT_COMMAND"]
LIMIT_S = 60
KINDS = {"receives": "recv", "sends": "send", "takes": "recv", "waits": "event", "selects": "select", "polls": "select"}


class Dump(unittest.TestCase):
    def setUp(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")}
        self.victim = subprocess.Popen([os.environ["WAITS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.assertEqual(self.victim.stdout.readline(), "ready\n")
        deadline = time.monotonic() + LIMIT_S
        while self.kinds() != KINDS and time.monotonic() < deadline:
            pass
        self.assertEqual(self.kinds(), KINDS)

    def tearDown(self):
        self.victim.communicate()

    def dump(self, *args):
        return subprocess.run([WEFT, "dump", *args, str(self.victim.pid)], capture_output=True, text=True, check=True,
                              timeout=LIMIT_S).stdout

    def kinds(self):
        return {t["name"]: t["waits_for"]["kind"] for t in json.loads(self.dump("--json"))["threads"]
                if t["state"] == "parked" and t["name"] in KINDS}

    def test_the_text_names_channels_and_says_how_full_they_are(self):
        text = self.dump()
        self.assertRegex(text, r'"receives": parked, receives from channel results, 0 of 8 items, for ')
        self.assertRegex(text, r'"sends": parked, sends to channel jobs, 3 of 3 items, for ')
        self.assertRegex(text, r'"takes": parked, receives from channel at 0x[0-9a-f]+, for ')
        self.assertRegex(text, r'"waits": parked, waits for event never at 0x[0-9a-f]+, for ')
        self.assertRegex(text, r'"selects": parked, waits for select over 2, for ')
        self.assertRegex(text, r'"polls": parked, waits for select over 3, for ')

    def test_the_function_of_the_program_is_on_the_stack(self):
        for thread in json.loads(self.dump("--json"))["threads"]:
            if thread["name"] in KINDS:
                self.assertIn(thread["name"], [f.get("function") for f in thread["frames"]])

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_the_gdb_script_names_them_too(self):
        out = subprocess.run(["gdb", "-nx", "-batch", "-p", str(self.victim.pid), "-ex", "source " + os.environ["WEFT_GDB_SCRIPT"],
                              "-ex", "info weft"], capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
        self.assertRegex(out, r"receives +parked, receives from channel results\n")
        self.assertRegex(out, r"sends +parked, sends to channel jobs\n")
        self.assertRegex(out, r"selects +parked, waits for select over 2\n")
        self.assertTrue(re.search(r"waits +parked, waits for event 0x[0-9a-f]+\n", out), out)


unittest.main()
