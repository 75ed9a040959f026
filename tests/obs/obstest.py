# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: a victim under weft, and unittest cases as TAP.

WEFT_COMMAND names the command, WAITERS the victim (waiters.c). Invariant: no victim outlives its case.
"""
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from plain import environment

WEFT = os.environ["WEFT_COMMAND"]
WAITERS = os.environ["WAITERS"]
LIMIT_S = 240 if os.environ.get("CI") else 60
BUSY = {"spin", "spin-too"}  # the threads of the victim that never wait


class Victim:
    """The waiters program, running; under weft unless native."""

    def __init__(self, threads=0, workers=2, native=False, dir=None,
                 deadlock=False, **changes):
        command = [WAITERS, str(threads), *(["deadlock"] if deadlock else [])]
        if not native:
            command = [WEFT, "run", "--workers", str(workers), "--", *command]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, cwd=dir, env=environment(**changes), preexec_fn=self.allow_core)
        self.pid = self.process.pid
        words = self.line().split()
        if words[:1] != ["ready"]:
            self.close()
            raise AssertionError(f"the victim said {words}")
        self.pipe, self.listener, self.port = map(int, words[1:])
        if not native:
            self.settle(threads)

    def settle(self, crowd):
        """Returns when everybody waits who is going to: in one snapshot, so that nobody is on the way.

        Of a crowd only the crowd is looked at.
        """
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if crowd > 100:  # one text, since a dump of thousands takes seconds
                done = weft("dump", self.pid)
                if f"{crowd + 1:,} threads: parked, wait for" in done.stdout:
                    return
                continue
            done = weft("dump", "--json", self.pid)
            threads = json.loads(done.stdout)["threads"] if done.returncode == 0 else []
            busy = [t for t in threads if t["state"] != "parked" and "call" not in t]
            if threads and {t["name"] for t in busy} == BUSY:
                return
        self.close()
        raise AssertionError(f"the victim does not settle: {done.stderr}{done.stdout[-4000:]}")

    @staticmethod
    def allow_core():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    def line(self):
        if not select.select([self.process.stdout], [], [], LIMIT_S)[0]:
            self.close()
            raise AssertionError("the victim does not answer")
        return self.process.stdout.readline()

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def counters(self):
        self.say("count")
        return [int(n) for n in self.line().split()]

    def end(self):
        """Ends by itself; returns (exit status, standard error)."""
        try:
            err = self.process.communicate(timeout=LIMIT_S)[1]
        finally:
            self.close()
        return self.process.returncode, err

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass


def weft(*args, timeout=LIMIT_S, **changes):
    return subprocess.run([WEFT, *map(str, args)], env=environment(**changes), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
                          check=False)


class ObsTest(unittest.TestCase):
    def victim(self, *args, **kwargs):
        v = Victim(*args, **kwargs)
        self.addCleanup(v.close)
        return v

    def directory(self):
        path = tempfile.mkdtemp(prefix="weft-obs-")
        self.addCleanup(shutil.rmtree, path)
        return path

    def dump(self, *args):
        done = weft("dump", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_goes_on(self, victim):
        """Both busy threads get their turns, and main answers."""
        before = victim.counters()
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            if all(now > then for now, then in zip(victim.counters(), before)):
                return
            time.sleep(0.01)
        self.fail("the busy threads do not run any more")

    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertTrue(done.stderr.startswith("weft: "), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class TapResult(unittest.TestResult):
    def say(self, ok, test, rest=""):
        name = test.id().split(".")[-1].removeprefix("test_")
        print(f"{'ok' if ok else 'not ok'} {self.testsRun} - {name}{rest}", flush=True)

    def addSuccess(self, test):
        self.say(True, test)

    def addSkip(self, test, reason):
        self.say(True, test, f" # SKIP {reason}")

    def addError(self, test, err):
        super().addError(test, err)
        self.complain(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.complain(test, self.failures[-1][1])

    def complain(self, test, text):
        for line in text.splitlines():
            print("#", line)
        self.say(False, test)


def cases(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


def main(module="__main__", only=()):
    """only: parts of names; those tests whose name contains one of them."""
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[module])
    if only:
        tests = unittest.TestSuite(t for t in cases(tests) if any(part in t.id() for part in only))
    print(f"1..{tests.countTestCases()}", flush=True)
    result = TapResult()
    tests.run(result)
    sys.exit(not result.wasSuccessful())
