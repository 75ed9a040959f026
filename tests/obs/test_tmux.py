#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft top` in a real terminal, tmux's: every key at two sizes, and a target that executes, is stopped, and ends."""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

WEFT, VICTIM = map(os.path.abspath, sys.argv[1:3])
LIMIT_S = 240 if os.environ.get("CI") else 60
KEYS = ["g", "l", "w", "t", "?", "q", "Enter", "q", "/", "t", "i", "Enter", "Escape", "<", ">", "r", "p", "Space",
        "+", "-", "Down", "Up", "NPage", "PPage", "End", "Home", "Right", "Left"]


def environment():
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT", "TMUX"))}
    return env | {"LC_ALL": "C.UTF-8", "WEFT_LIBRARY": os.environ["WEFT_LIBRARY"]}


class Tmux(unittest.TestCase):
    def setUp(self):
        if not shutil.which("tmux"):
            self.skipTest("no tmux")
        self.dir = tempfile.TemporaryDirectory(prefix="weft-tmux-")
        self.addCleanup(self.dir.cleanup)
        self.victim = subprocess.Popen([WEFT, "run", "--workers", "2", "--record", "--", VICTIM], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(self.victim.communicate)
        self.addCleanup(self.victim.kill)
        self.assertEqual(self.victim.stdout.readline(), "ready\n")
        self.socket, self.nr_servers = None, 0

    def tmux(self, *args):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *args], env=environment(),
                              cwd=self.dir.name, capture_output=True, text=True, check=True).stdout

    def start(self, columns, rows):
        """A shell that says so when the page is over. Each has a server of its own: the last one may be about to end."""
        self.nr_servers += 1
        self.socket = os.path.join(self.dir.name, f"socket{self.nr_servers}")
        command = f"{shlex.quote(WEFT)} top -d 0.2 {self.victim.pid}; echo status $?; stty -a | grep -c ' echo '; cat"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh", "-c", command)
        self.addCleanup(self.stop)
        self.until("WAITS FOR", "ticks")

    def stop(self):
        try:
            self.tmux("kill-server")
        except subprocess.CalledProcessError:
            pass  # it has gone already

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def until(self, *words):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            text = self.screen()
            if all(w in text for w in words):
                return text
            time.sleep(0.05)
        self.fail(f"never {words}:\n{text}")

    def ended(self, status):
        """The page has gone, and the terminal echoes again."""
        text = self.until(f"status {status}\n1\n")
        self.assertNotIn("WAITS FOR", text)

    def test_every_key_at_two_sizes(self):
        for columns, rows in ((80, 24), (200, 50)):
            self.start(columns, rows)
            self.tmux("send-keys", "a", "/", str(self.victim.pid), "Enter")
            self.until("Processes under weft", f"/{self.victim.pid}  1 ")
            self.tmux("send-keys", "Enter")
            self.until("WAITS FOR", "odd_names")
            self.tmux("send-keys", "Escape")
            self.until("WAITS FOR", "ticks")
            for key in KEYS:
                self.tmux("send-keys", key)
            for key, file in (("D", "dump"), ("T", "trace")):
                self.tmux("send-keys", key)
                self.until(f"wrote weft-{file}-")
            self.tmux("send-keys", "g")
            text = self.until("LONGEST", "THREADS STATE")
            self.assertTrue(all(len(line) <= columns for line in text.splitlines()))
            self.assertEqual(sorted(n.split("-")[1] for n in os.listdir(self.dir.name) if n.startswith("weft-")), ["dump", "trace"])
            self.tmux("send-keys", "t")
            self.until("WAITS FOR", "owner")
            self.tmux("resize-window", "-x", "100", "-y", "12")
            self.until("RUN  RDY WAIT")
            self.tmux("send-keys", "q")
            self.ended(0)
            self.stop()
            for name in os.listdir(self.dir.name):
                if name.startswith("weft-"):
                    os.unlink(os.path.join(self.dir.name, name))

    def test_the_target_executes_is_stopped_and_ends(self):
        self.start(120, 24)
        self.victim.stdin.write("exec\n")
        self.victim.stdin.flush()
        self.assertEqual(self.victim.stdout.readline(), "ready\n")
        self.until("has executed odd_names", "7 threads")
        self.victim.send_signal(19)
        os.waitid(os.P_PID, self.victim.pid, os.WSTOPPED | os.WNOWAIT)
        self.tmux("send-keys", "w")
        self.until("KERNEL TID")
        self.victim.kill()
        self.until("has ended")
        self.tmux("send-keys", "q")
        self.ended(3)


def main():
    tests = [Tmux(name) for name in sorted(vars(Tmux)) if name.startswith("test_")]
    failed = False
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        result = unittest.TestResult()
        test.run(result)
        for _, text in result.errors + result.failures:
            print("#", text.replace("\n", "\n# "))
        failed |= not result.wasSuccessful()
        skipped = f" # SKIP {result.skipped[0][1]}" if result.skipped else ""
        print(f"{'ok' if result.wasSuccessful() else 'not ok'} {number} - {test.id().split('.')[-1].removeprefix('test_')}{skipped}",
              flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
