#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft dump --tree` shows groups, threads and scopes as the tree that they are, of processes and cores. See tree.c, forks.c."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest

WEFT = os.environ["WEFT_COMMAND"]
LIMIT_S = 60
NAMES = ["crawl", "crawl", "native_tree", "parse", "parse", "reads"]

TREE = r"""
thread \d+ "native_tree": parked, waits for group crawl, 2 left, for \S+ m?s
  group crawl: all, 2 left, at most 8, (120 min|2\.0 h) left, thread (\d+) waits for it
    thread \d+ "crawl": parked, waits for group parse, 2 left, for \S+ m?s
      group parse: each, 2 left, thread \d+ waits for it
        thread \d+ "parse": parked, waits for event never at \S+, for \S+ m?s; scope slow\?\[2J: 60 min left
        thread \d+ "parse": parked, waits for event never at \S+, for \S+ m?s; scope slow\?\[2J: 60 min left
    thread \d+ "crawl": OVERDUE, parked, waits for mutex lock at \S+, held by thread (\d+) "native_tree", for \S+ m?s; scope lookup: over for [3-9]\.\d s
thread \d+ "reads": parked, waits for fd 0 [^\n]*
"""


class Tree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")}
        cls.victim = subprocess.Popen([os.environ["TREE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        if cls.victim.stdout.readline() != "ready\n":
            raise AssertionError("the victim has not begun")
        deadline = time.monotonic() + LIMIT_S
        while cls.parked() != NAMES and time.monotonic() < deadline:
            pass

    @classmethod
    def tearDownClass(cls):
        cls.victim.communicate()

    @classmethod
    def dump(cls, *args, target=None):
        return subprocess.run([WEFT, "dump", *args, *(target or [str(cls.victim.pid)])], capture_output=True, text=True,
                              check=True, timeout=LIMIT_S).stdout

    @classmethod
    def parked(cls):
        return sorted(t["name"] for t in json.loads(cls.dump("--json"))["threads"] if t["state"] == "parked")

    def check(self, text):
        # Threads stand in the order of the table, which is any: the late one behind the other of its group, main first.
        lines = text.split("\n\n", 1)[1].splitlines()
        for part in ("OVERDUE", '"reads"'):
            lines.append(lines.pop(next(i for i, line in enumerate(lines) if part in line)))
        found = re.fullmatch(TREE.strip(), "\n".join(lines).strip())
        self.assertTrue(found, text)
        self.assertEqual({found[2], found[3]}, {str(self.victim.pid)})

    def test_of_a_process(self):
        self.check(self.dump("--tree"))

    def test_json(self):
        dump = json.loads(self.dump("--json"))
        groups = {g["name"]: g for g in dump["groups"]}
        self.assertEqual(sorted(groups), ["crawl", "parse"])
        crawl, parse = groups["crawl"], groups["parse"]
        threads = {t["tid"]: t for t in dump["threads"]}
        self.assertEqual((crawl["policy"], crawl["threads_left"], crawl["limit"]), ("all", 2, 8))
        self.assertEqual((crawl["opened_by"], crawl["waited_for_by"]), (self.victim.pid, self.victim.pid))
        self.assertTrue(0 < crawl["left_ms"] <= 7200000, crawl)
        self.assertEqual((parse["policy"], "limit" in parse, "left_ms" in parse), ("each", False, False))
        self.assertEqual(threads[parse["opened_by"]]["group"], crawl["id"])
        self.assertEqual([t["name"] for t in threads.values() if t.get("group") == parse["id"]], ["parse", "parse"])
        late = [t for t in threads.values() if t["overdue"]]
        self.assertEqual([[s["name"] for s in t["scopes"]] for t in late], [["lookup", "request"]])
        self.assertLess(late[0]["scopes"][0]["left_ms"], -2999)
        self.assertGreater(late[0]["scopes"][1]["left_ms"], 0)

    @unittest.skipUnless(shutil.which("gcore"), "no gcore")
    def test_of_a_core(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["gcore", "-o", folder + "/core", str(self.victim.pid)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=LIMIT_S)
            text = self.dump("--tree", target=["--core", f"{folder}/core.{self.victim.pid}"])
        for part in ("group crawl: all, 2 left", "      group parse: each, 2 left", "    thread ", "scope lookup: over for"):
            self.assertIn(part, text)

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_the_gdb_script_says_it_too(self):
        out = subprocess.run(["gdb", "-nx", "-batch", "-p", str(self.victim.pid), "-ex", "source " + os.environ["WEFT_GDB_SCRIPT"],
                              "-ex", "weft tree"], capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
        bones = re.compile(r'^( *)(group \w+: [^,]*, \d+ left|thread \d+ "\w+": (?:OVERDUE, )?)', re.M)
        self.assertEqual(bones.findall(out), bones.findall(self.dump("--tree")), out)
        self.assertRegex(out, r'"native_tree": parked, waits for group crawl, for [^\n]*\n  group crawl: all, 2 left, at most 8, [^\n]* left, thread \d+ waits')
        self.assertRegex(out, r'held by thread \d+ "native_tree", for [^\n]*; scope lookup: over for [3-9]\.\d s\n')
        self.assertIn("; scope slow?[2J: 60 min left", out)

    def test_what_it_does_not_go_with(self):
        for option in ("--stacks", "--group", "--thread=1"):
            done = subprocess.run([WEFT, "dump", "--tree", option, str(self.victim.pid)], capture_output=True, text=True,
                                  check=False, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stderr), (125, f"weft: dump: either --tree or {option.split('=')[0]}\n"))

    def test_a_program_without_groups(self):
        waits = subprocess.Popen([os.environ["WAITS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.assertEqual(waits.stdout.readline(), "ready\n")
        text = self.dump("--tree", target=[str(waits.pid)])
        waits.communicate()
        self.assertEqual(text.count("\nthread "), 7, text)
        self.assertNotIn("scope", text)


class Tasks(unittest.TestCase):
    """Two workers, so that one or two of the crew take a task each, and the others are left."""

    def setUp(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")} | {"WEFT_WORKERS": "2"}
        self.victim = subprocess.Popen([os.environ["FORKS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.addCleanup(self.victim.communicate)
        self.assertEqual(self.victim.stdout.readline(), "ready\n")

    def check(self, text):
        main = self.victim.pid
        found = re.search(rf'^thread {main} "native_forks": [^\n]*; 3 tasks forked, ([12]) stolen by crew-\d+(, crew-\d+)?$', text, re.M)
        self.assertTrue(found, text)
        self.assertEqual(found[1] == "2", bool(found[2]), text)
        self.assertEqual(len(re.findall(rf'^thread \d+ "crew-\d+": [^\n]*; at a task of thread {main} "native_forks"$', text, re.M)),
                         int(found[1]), text)
        self.assertEqual(text.count("task"), 1 + int(found[1]), text)

    def dump(self, *args):
        return subprocess.run([WEFT, "dump", *args], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout

    def test_of_a_process(self):
        self.check(self.dump("--tree", str(self.victim.pid)))

    def test_the_plain_dump_says_it_too(self):
        text = self.dump(str(self.victim.pid))
        self.check(re.sub(r"^    .*\n", "", text, flags=re.M))

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_the_gdb_script_says_it_too(self):
        out = subprocess.run(["gdb", "-nx", "-batch", "-p", str(self.victim.pid), "-ex", "source " + os.environ["WEFT_GDB_SCRIPT"],
                              "-ex", "weft threads"], capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
        self.assertRegex(out, r" native_forks +[^\n]*; 3 tasks forked, [12] stolen by crew-\d")
        self.assertRegex(out, rf' crew-\d +[^\n]*; at a task of thread {self.victim.pid} "native_forks"')

    def test_json(self):
        threads = {t["tid"]: t for t in json.loads(self.dump("--json", str(self.victim.pid)))["threads"]}
        main = threads[self.victim.pid]
        takers = [t["tid"] for t in threads.values() if t.get("runs_task_of") == self.victim.pid]
        self.assertEqual((main["tasks_forked"], sorted(main["tasks_stolen_by"])), (3, sorted(takers)))
        self.assertTrue(all(threads[t]["name"].startswith("crew-") for t in takers) and takers, threads)
        self.assertEqual([t["tid"] for t in threads.values() if "tasks_forked" in t], [self.victim.pid])

    @unittest.skipUnless(shutil.which("gcore"), "no gcore")
    def test_of_a_core(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["gcore", "-o", folder + "/core", str(self.victim.pid)], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=LIMIT_S)
            self.check(self.dump("--tree", "--core", f"{folder}/core.{self.victim.pid}"))


unittest.main()
