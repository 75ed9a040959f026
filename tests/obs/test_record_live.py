# SPDX-License-Identifier: Apache-2.0
"""weft trace of a program that goes on: armed and disarmed while it runs, followed for a time or until something happens."""
import os
import re
import signal
import subprocess
import sys
import time

import check_trace
import obstest
from obstest import weft
from recording import RecordTest, WROTE


class Arms(RecordTest):
    def arm(self, *args):
        done = weft("trace", *args)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def until_it_records(self, pid):
        """One that sleeps hears it when it does something."""
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            if weft("trace", "-o", self.path("first"), pid).returncode == 0:
                return
        self.fail("it does not record")

    def test_a_running_program_begins_to_record(self):
        for option, calls in (("--arm=1M,calls", True), ("--arm", False)):
            p = self.start()
            self.assertRegex(self.arm(option, p.pid), f"^process {p.pid} records(, from when it does something)?\n$")
            self.ask(p, "go")
            self.until_it_records(p.pid)
            self.ask(p, "go")
            events, trace, said = self.both(p.pid)
            self.assertEqual(said[5], 0)
            # All of the second round, and what of the first came after the monitor's look.
            self.assertGreaterEqual(sum(1 for e in events if e[3] == "exit"), 7)
            self.assertGreaterEqual(sum(1 for e in events if e[3] == "spawn"), 7)
            self.assertEqual("clone3" in trace.slices, calls, trace.slices)
            self.assertGreater(sum(1 for e in events if e[3] == "park"), 50)

    def test_it_stops_and_goes_on(self):
        p = self.start("--record=64K")
        self.assertEqual(self.arm("--disarm", "--quiet", p.pid), "")
        self.ask(p, "stay")  # it computes, so it hears
        before = self.lines(p.pid)[1][4]
        self.ask(p, "stay")
        self.assertEqual(self.lines(p.pid)[1][4], before)
        self.assertIn("in the rings that it has, without calls", self.arm("--arm=1M,calls", p.pid))
        self.ask(p, "stay")
        self.ask(p, "stay")
        self.assertGreater(self.lines(p.pid)[1][4], before)

    def test_arming_and_following_in_one(self):
        p = self.start()
        self.ask(p, "stay")
        done = weft("trace", "--arm", "--for", "10ms", "-f", "text", "-o", self.path("t"), p.pid)
        if done.returncode:  # it sleeps, and has not heard
            self.assertIn("keeps no events", done.stderr)
        self.ask(p, "go")
        self.until_it_records(p.pid)

    def test_what_cannot_be_armed(self):
        p = self.start()
        quiet = subprocess.Popen([obstest.WEFT, "run", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env=obstest.environment())
        self.addCleanup(quiet.communicate)
        quiet.stdin.write("x\n")
        quiet.stdin.flush()
        self.assertEqual(quiet.stdout.readline(), "x\n")
        self.assert_refused(weft("trace", "--arm", quiet.pid), "has made no thread yet")
        self.assert_refused(weft("trace", "--arm", os.getpid()), "without weft")
        for bad in ("3K", "2G", "x", "1M,", ",calls", ""):
            self.assert_refused(weft("trace", f"--arm={bad}", p.pid), "--arm takes a size", f"'{bad}'")
        self.assert_refused(weft("trace", "--disarm", "--for", "1s", p.pid), "--disarm goes alone")
        self.assert_refused(weft("trace", "--arm", "--last", "1s", p.pid), "nothing for --last yet")
        self.assert_refused(weft("trace", "--arm", "--core", "x"), "a core does not go on")
        self.assert_refused(weft("trace", p.pid), "or use 'weft trace --arm'")

    def test_threads_that_come_meanwhile_have_rings(self):
        """Kernel threads are made and end while it is armed, again and again."""
        p = self.start(workers=4)
        for i in range(5):
            self.arm("--arm=4K", "--quiet", p.pid)
            self.ask(p, "go")
            self.arm("--disarm", "--quiet", p.pid)
            self.ask(p, "go")
        self.arm("--arm", "--quiet", p.pid)
        self.ask(p, "go")
        self.check(p.pid)
        self.assertEqual(p.communicate("", timeout=obstest.LIMIT_S)[1], "")
        self.assertEqual(p.returncode, 0)


class Follows(RecordTest):
    def follow(self, p, *args):
        q = subprocess.Popen([obstest.WEFT, "trace", *map(str, args), str(p.pid)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, cwd=self.dir, env=obstest.environment())
        self.addCleanup(self.stop_follower, q)
        # It has begun when it catches signals: then it looks.
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            with open(f"/proc/{q.pid}/status", encoding="ascii") as f:
                caught = int(re.search(r"SigCgt:\t([0-9a-f]+)", f.read())[1], 16)
            if caught >> (signal.SIGINT - 1) & 1:
                return q
        self.fail("it does not begin")

    @staticmethod
    def stop_follower(q):
        if q.poll() is None:
            q.kill()
        q.wait()
        q.stdout.close()
        q.stderr.close()

    def has_seen(self, p, q):
        """It has looked at least once since now: its own looks take turns with sleeps."""
        def switches():
            with open(f"/proc/{q.pid}/status", encoding="ascii") as f:
                return int(re.search(r"\nvoluntary_ctxt_switches:\t(\d+)", f.read())[1])

        begin = switches()
        while switches() < begin + 3 and q.poll() is None:
            time.sleep(0.002)

    def test_for_is_from_now_on_until_interrupted(self):
        p = self.start("--record=1M,calls")
        q = self.follow(p, "--for", "1h", "-o", "t.pftrace")
        self.has_seen(p, q)
        self.ask(p, "go")
        self.has_seen(p, q)
        q.send_signal(signal.SIGINT)
        out, err = q.communicate(timeout=obstest.LIMIT_S)
        self.assertEqual((q.returncode, err), (0, ""))
        self.assertEqual(WROTE.fullmatch(out)[6], "0")
        trace = check_trace.read(self.path("t.pftrace"))
        events, _ = self.lines(p.pid)
        self.assertEqual(sum(1 for e in events if e[3] == "spawn"), 14)
        # Only the second half: seven threads, and main.
        self.assertEqual(len(trace.names), 8)
        times = [ns for ns, _ in trace.counters["memory"]]
        self.assertGreater(len(times), 0)
        self.assertEqual(times, sorted(times))
        self.assertEqual(trace.slices["clone3"], 7)

    def test_for_says_what_was_lost(self):
        p = self.start("--record=4K")
        q = self.follow(p, "--for", "1h", "-f", "text", "-o", "t.txt")
        self.has_seen(p, q)
        os.kill(q.pid, signal.SIGSTOP)
        for _ in range(3):
            self.ask(p, "go")
        os.kill(q.pid, signal.SIGCONT)
        self.has_seen(p, q)
        q.send_signal(signal.SIGTERM)
        out, _ = q.communicate(timeout=obstest.LIMIT_S)
        said = WROTE.fullmatch(out)
        self.assertGreater(int(said[6].replace(",", "")), 100)
        with open(self.path("t.txt"), encoding="utf-8") as f:
            self.assertEqual(sum(1 for line in f if not line.startswith("#")), int(said[5].replace(",", "")))

    def test_the_program_ends_or_becomes_another(self):
        for word in ("crash", "exec"):
            p = self.start("--record=1M,calls")
            q = self.follow(p, "--for", "1h", "-o", "t.pftrace")
            self.has_seen(p, q)
            self.ask(p, "go")
            self.has_seen(p, q)
            p.stdin.write(word + "\n")
            p.stdin.flush()
            out, err = q.communicate(timeout=obstest.LIMIT_S)
            self.assertEqual(q.returncode, 0, err)
            self.assertRegex(err, f"^weft: trace: process {p.pid} ended, or became another program, after [0-9.e-]+ s\n$")
            self.assertTrue(WROTE.fullmatch(out), out)
            self.assertGreater(len(check_trace.read(self.path("t.pftrace")).switches), 100)

    def test_on(self):
        p = self.start("--record=1M,calls")
        os.mkdir(self.path("kept"))
        q = self.follow(p, "--on", "call>10ms", "--on", "deadlock", "-o", "kept", "--keep", "2")
        for kind, said in (("call", r'thread \d+ "[a-z]+" in a call, [a-z0-9_]+ for \d+(\.\d+)? ms\n'),
                           ("deadlock", r"threads wait for one another in a circle\n")):
            self.has_seen(p, q)
            self.ask(p, "go" if kind == "call" else kind)
            line = q.stdout.readline()
            self.assertRegex(line, said)
            wrote = WROTE.fullmatch(q.stdout.readline())
            number = 1 if kind == "call" else 2
            self.assertEqual(wrote[1], f"kept/weft-{p.pid}-{number}-{kind}.pftrace")
            trace = check_trace.read(self.path(wrote[1]))
            if kind == "call":
                self.assertIn(line.split(", ")[1].split()[0], trace.slices)
        q.send_signal(signal.SIGINT)
        out, err = q.communicate(timeout=obstest.LIMIT_S)
        self.assertEqual((q.returncode, out, err), (0, "", ""))
        with open(self.path(f"kept/weft-{p.pid}-2-deadlock.dump"), encoding="utf-8") as f:
            self.assertIn("DEADLOCK of 2 threads", f.read())

    def test_on_what_does_not_happen(self):
        p = self.start("--record")
        done = weft("trace", "--on", "call>1h", "--on", "stall", "--on", "ready>1m", "--for", "50ms", "-o", self.dir, p.pid)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "weft: trace: nothing of that happened\n"))
        self.assertEqual(os.listdir(self.dir), [])
        for bad in ("call", "call>", "call>5", "deadlock>1s", "calls>1s", "", ">1s", "ready<1s", "ready"):
            self.assert_refused(weft("trace", "--on", bad, "1"), "--on takes call>TIME", f"'{bad}'")
        self.assert_refused(weft("trace", "--on", "stall", "-o", self.path("no"), p.pid), "cannot write to")
        self.assert_refused(weft("trace", "--keep", "3", p.pid), "--keep goes with --on")
        self.assert_refused(weft("trace", "--on", "stall", "--keep", "0", p.pid), "--keep takes a number")


obstest.main(only=sys.argv[1:])
