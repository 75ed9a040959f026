#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft dump` shows the fibers of each thread, what they are at, and who resumed them. See fibers.c."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

WEFT = os.environ["WEFT_COMMAND"]
LIMIT_S = 60

MAIN = r"""fiber "inner": running, resumed by fiber "outer"
fiber "outer": waits for fiber "inner", resumed by the thread's own stack
fiber "gone": suspended by a transfer
fiber "odd?[2J": suspended
fiber 0x: has not run yet
fiber "over": has ended, not freed"""

CROSSED = """fiber "waits": waits for fiber "transfers"
fiber "transfers": suspended by a transfer, resumed by fiber "waits\""""


def fibers_of(text, name):
    """The lines of fibers below the thread with that name."""
    part = re.search(rf'^thread \d+ "{name}":.*?(?=^\S|\Z)', text, re.M | re.S)[0]
    return [re.sub(r"0x[0-9a-f]+", "0x", line.strip()) for line in part.splitlines() if re.match(r"    (fiber|\.\.\.)", line)]


class Fibers(unittest.TestCase):
    def setUp(self):
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT")}
        self.victim = subprocess.Popen([os.environ["FIBERS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(self.victim.communicate)
        self.assertEqual(self.victim.stdout.readline(), f"ready {self.victim.pid}\n")

    def dump(self, *args):
        return subprocess.run([WEFT, "dump", *args], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout

    def check(self, text):
        self.assertEqual(fibers_of(text, "native_fibers"), MAIN.splitlines(), text)
        self.assertEqual(fibers_of(text, "heir"), ['fiber "heir\'s": suspended'], text)
        self.assertEqual(fibers_of(text, "many"), ['fiber "one of many": suspended'] * 20 + ["... and 80 more fibers"], text)
        self.assertEqual(fibers_of(text, "crossed"), CROSSED.splitlines(), text)
        self.assertEqual(fibers_of(text, "reads"), [], text)
        crowded = fibers_of(text, "crowded")
        self.assertEqual((crowded[0], crowded[-1]),
                         ('fiber "in a crowd": running, resumed by the thread\'s own stack', "... and 1481 more fibers"), text)
        for function in ("transfers", "deep"):
            self.assertRegex(text, rf'\n    fiber "[^\n]*: suspended[^\n]*\n        #0  {function}\+\S+  fibers\.c:\d+\n        #1 ')
        self.assertRegex(text, r'\n    fiber "waits": waits [^\n]*\n        #0  crosses_in\+')
        self.assertRegex(text, r'\n    fiber "outer": [^\n]*\n    fiber "gone": ')  # its stack is a part of the thread's
        self.assertRegex(text, r'\n    fiber 0x[0-9a-f]+: has not run yet\n    fiber "over": [^\n]*\n\n')

    def test_of_a_process(self):
        self.check(self.dump(str(self.victim.pid)))

    def test_of_one_thread(self):
        text = self.dump("--thread", str(self.victim.pid), str(self.victim.pid))
        self.assertEqual(fibers_of(text, "native_fibers"), MAIN.splitlines(), text)
        self.assertNotIn("heir", text)

    def test_of_a_child(self):
        """The fibers of the thread that forked are the child's; those of the other threads are nobody's."""
        parent = subprocess.Popen([os.environ["FIBERS"], "forks"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(parent.communicate)
        text = self.dump(parent.stdout.readline().split()[1])
        self.assertEqual(fibers_of(text, "native_fibers"), MAIN.splitlines(), text)
        self.assertEqual(fibers_of(text, "reads"), [], text)
        self.assertEqual(text.count("\nthread "), 2, text)

    def test_json(self):
        threads = {t["name"]: t for t in json.loads(self.dump("--json", str(self.victim.pid)))["threads"]}
        main = threads["native_fibers"]
        by_name = {f.get("name"): f for f in main["fibers"]}
        self.assertEqual([f["state"] for f in main["fibers"]], ["running", "resumes", "transferred", "yielded", "new", "done"])
        self.assertEqual([f.get("name") for f in main["fibers"]], ["inner", "outer", "gone", "odd\x1b[2J", None, "over"])
        self.assertEqual({n: f["resumed_by"] for n, f in by_name.items() if "resumed_by" in f},
                         {"inner": by_name["outer"]["id"], "outer": "thread"})
        self.assertEqual((main["nr_fibers"], threads["heir"]["nr_fibers"]), (6, 1))
        self.assertEqual((threads["many"]["nr_fibers"], len(threads["many"]["fibers"])), (100, 100))
        self.assertEqual((threads["crowded"]["nr_fibers"], len(threads["crowded"]["fibers"])), (1501, 1000))
        self.assertNotIn("fibers", threads["reads"])
        frames = {f.get("name"): [frame["function"] for frame in f.get("frames", [])] for t in threads.values() for f in t.get("fibers", [])}
        self.assertEqual((frames["heir's"][:2], frames["heir's"][-1]), (["deep", "yields"], "wf_arch_fiber_start"))
        self.assertEqual(frames["one of many"], frames["heir's"])
        self.assertEqual((frames["inner"], frames["outer"], frames[None], frames["over"]), ([], [], [], []))

    def test_tree(self):
        text = self.dump("--tree", str(self.victim.pid))
        self.assertRegex(text, r'\nthread \d+ "native_fibers": [^\n]*; in fiber "inner" of 6 fibers\n')
        self.assertRegex(text, r'\nthread \d+ "heir": [^\n]*; 1 fiber\n')
        self.assertRegex(text, r'\nthread \d+ "reads": [^;\n]*\n')

    @unittest.skipUnless(shutil.which("gdb"), "no gdb")
    def test_the_gdb_script_says_it_too(self):
        out = subprocess.run(["gdb", "-nx", "-batch", "-p", str(self.victim.pid), "-ex", "source " + os.environ["WEFT_GDB_SCRIPT"],
                              "-ex", "weft threads"], capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
        for part in (' native_fibers +[^\n]*; in fiber "inner" of 6 fibers;', " heir +[^\n]*; 1 fiber;", " many +[^\n]*; 100 fibers;"):
            self.assertRegex(out, part)
        self.assertRegex(out, r" reads +[^\n]*s; \d+ switches")

    @unittest.skipUnless(shutil.which("gcore"), "no gcore")
    def test_of_gcore(self):
        """It may leave zeros where fibers were; how many they were is known."""
        with tempfile.TemporaryDirectory() as folder:
            core = os.path.join(folder, "core")
            subprocess.run(["gcore", "-o", core, str(self.victim.pid)], capture_output=True, check=True, timeout=LIMIT_S)
            threads = json.loads(self.dump("--json", "--core", f"{core}.{self.victim.pid}"))["threads"]
        nr = {t["name"]: t.get("nr_fibers") for t in threads}
        self.assertEqual((nr["native_fibers"], nr["many"], nr["crossed"]), (6, 100, 2))

    def test_of_a_core(self):
        """One of the kernel's: gcore leaves out what lies in one mapping with a guard region."""
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
            if f.read(1) in "|/":
                self.skipTest("core files go elsewhere")
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        if hard != resource.RLIM_INFINITY:
            self.skipTest("there is a limit to core files")
        with tempfile.TemporaryDirectory() as folder:
            victim = subprocess.Popen([os.environ["FIBERS"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env,
                                      cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
            self.assertEqual(victim.stdout.readline(), f"ready {victim.pid}\n")
            victim.send_signal(signal.SIGABRT)
            self.assertEqual(victim.wait(LIMIT_S), -signal.SIGABRT)  # before its input ends, and it by itself
            victim.communicate()
            cores = [name for name in os.listdir(folder) if name.startswith("core")]
            if not cores:
                self.skipTest("no core file was written")
            self.check(self.dump("--core", os.path.join(folder, cores[0])))


unittest.main()
