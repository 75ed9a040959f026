# SPDX-License-Identifier: Apache-2.0
"""`weft ps`: looking at running programs without stopping them."""
import json
import os
import shutil
import subprocess

import obstest
from obstest import ObsTest, weft

STORIES = 14  # threads of the victim: main, and one for each way to wait


class Look(ObsTest):
    def setUp(self):
        """A victim whose name no other test's has."""
        self.name = f"looked-at-{os.getpid()}"
        path = os.path.join(self.directory(), self.name)
        shutil.copy(obstest.WAITERS, path)
        before, obstest.WAITERS = obstest.WAITERS, path
        self.addCleanup(setattr, obstest, "WAITERS", before)

    def ended(self, process):
        process.kill()
        process.communicate()

    def started(self, command, **changes):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=obstest.environment(**changes))
        self.addCleanup(self.ended, process)
        return process


class Ps(Look):
    def listed(self):
        done = weft("ps", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {p["pid"]: p for p in json.loads(done.stdout)["processes"]}

    def test_a_process_is_listed_with_its_figures(self):
        v = self.victim(threads=50)
        row = self.listed()[v.pid]
        self.assertEqual(row["program"], self.name)
        self.assertEqual(row["name"], self.name[:15])
        self.assertEqual(row["uid"], os.getuid())
        self.assertEqual(row["state"], "weft")
        self.assertEqual(row["workers"], 2)
        self.assertEqual(row["threads"], 50 + STORIES)
        self.assertGreaterEqual(row["kernel_threads"], 3)
        self.assertNotIn("why", row)
        line = [line for line in weft("ps").stdout.splitlines() if line.split()[0] == str(v.pid)][0]
        self.assertIn(self.name[:16], line)
        self.assertTrue(line.endswith("weft"), line)
        self.assert_goes_on(v)

    def test_a_program_without_threads_has_none_yet(self):
        process = self.started([obstest.WEFT, "run", "--", "cat"])
        process.stdin.write("x\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "x\n")
        row = self.listed()[process.pid]
        self.assertEqual((row["state"], row["threads"]), ("no threads yet", 1))

    def test_a_native_program_says_why(self):
        process = self.started([obstest.WAITERS], LD_PRELOAD=os.environ["WEFT_LIBRARY"], WEFT="0")
        self.assertEqual(process.stdout.readline().split()[:1], ["ready"])
        row = self.listed()[process.pid]
        self.assertEqual((row["state"], row["threads"]), ("native", STORIES))
        self.assertIn("WEFT=0", row["why"])

    def test_programs_without_weft_are_not_listed(self):
        other, mine = self.victim(native=True), self.victim()
        listed = self.listed()
        self.assertNotIn(other.pid, listed)
        self.assertIn(mine.pid, listed)

    def test_one_in_another_namespace_has_both_numbers(self):
        if subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespaces here")
        outer = self.started(["unshare", "-pf", "--kill-child", obstest.WEFT, "run", "--workers", "2", "--",
                              obstest.WAITERS])
        self.assertEqual(outer.stdout.readline().split()[:1], ["ready"])
        rows = [p for p in self.listed().values() if p["program"] == self.name]
        self.assertEqual([(p["pid_inside"], p["threads"]) for p in rows], [(1, STORIES)])

    def test_bad_arguments_get_one_line(self):
        self.assert_refused(weft("ps", "x"), "'x'", "weft help ps")
        self.assert_refused(weft("ps", "--nonesuch"), "--nonesuch")


class Names(Look):
    def test_a_name_stands_for_its_one_process(self):
        v = self.victim()
        for name in (self.name, self.name[:15]):
            self.assertEqual(json.loads(self.dump("--json", name))["pid"], v.pid)

    def test_a_name_of_two_is_refused_with_both(self):
        a, b = self.victim(), self.victim()
        self.assert_refused(weft("dump", self.name), "2 processes", str(a.pid), str(b.pid))

    def test_a_name_of_none_is_refused(self):
        self.assert_refused(weft("dump", self.name), self.name, "weft ps")
        self.assert_refused(weft("dump", "-0"), "-0")


if __name__ == "__main__":
    obstest.main()
