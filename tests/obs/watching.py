# SPDX-License-Identifier: Apache-2.0
"""What the tests of `weft watch` share: a watch in a folder of its own, what it says and keeps, and unittest cases as TAP.

The arguments are the command, the program to be watched (watched.c), and parts of test names. Invariant: no watch outlives
its case.
"""
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from plain import environment

WEFT, WATCHED = map(os.path.abspath, sys.argv[1:3])
LIMIT_S = 240 if os.environ.get("CI") else 60
LINE = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d ([\w.-]+)\[(\d+)\]: (.*)$")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(test, what):
    end = time.monotonic() + LIMIT_S
    while not test():
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(0.005)


class WatchTest(unittest.TestCase):
    def setUp(self):
        d = tempfile.TemporaryDirectory(prefix="weft-watch-")
        self.addCleanup(d.cleanup)
        self.dir = d.name

    def start(self, *args, limits=None, stdin=subprocess.DEVNULL, own_pid=None, **changes):
        """own_pid: a variable that is its pid."""
        command = [WEFT, "watch", *args]
        if own_pid:
            command = ["sh", "-c", f'export {own_pid}=$$; exec "$@"', "sh", *command]
        process = subprocess.Popen(command, cwd=self.dir, env=environment(**changes), text=True,
                                   stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   preexec_fn=limits)
        guard = threading.Timer(LIMIT_S, process.kill)
        guard.start()

        def close():
            guard.cancel()
            if process.poll() is None:
                process.terminate()
                process.wait()
            process.stdout.close()
            process.stderr.close()
        self.addCleanup(close)
        return process

    def end(self, process):
        out, err = process.communicate()
        return process.returncode, out, err

    def watch(self, *args, **changes):
        return self.end(self.start(*args, **changes))

    def child(self, process):
        """The process that is watched, once there is one."""
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        wait_until(lambda: open(path).read().split(), "a child")
        return int(open(path).read().split()[0])

    def folders(self):
        return sorted(os.listdir(self.path()), key=lambda n: os.stat(self.path(n)).st_mtime_ns)

    def path(self, *names):
        return os.path.join(self.dir, "weft-watch", *names)

    def kept(self, folder, name):
        if not os.path.exists(self.path(folder, name)):
            report = self.kept(folder, "report.txt") if name != "report.txt" else ""
            self.fail(f"no {name} in {folder}, but {sorted(os.listdir(self.path(folder)))}\n{report}")
        with open(self.path(folder, name)) as f:
            return f.read()

    def next_event(self, process, word):
        """The next line on standard error with this word."""
        for line in process.stderr:
            if word in line:
                return line
        self.fail(f"no line with {word!r}")

    def check_crashes(self, nr, how):
        """They leave no process, descriptor or file beyond the folders that are kept, and no memory."""
        p = self.start("--max", "1000/1h", "--delay", "1ms..1ms", "--keep", "3", "--", WATCHED, how)
        fds, pages = [], []
        for i in range(nr):
            self.next_event(p, "SIG")
            if i in (9, nr - 2):
                # Between two lines it has one child at most, and the pipes of none.
                wait_until(lambda: len(os.listdir(f"/proc/{p.pid}/fd")) <= (fds or [1000])[0], "few descriptors")
                fds.append(len(os.listdir(f"/proc/{p.pid}/fd")))
                with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                    self.assertLessEqual(len(f.read().split()), 1)
                with open(f"/proc/{p.pid}/statm") as f:
                    pages.append(int(f.read().split()[1]))
        p.terminate()
        self.end(p)
        self.assertLessEqual(fds[1], fds[0])
        self.assertLessEqual(pages[1], pages[0] + 64)
        self.assertEqual(len(self.folders()), 3)
        for folder in self.folders():
            self.assertLessEqual(len(os.listdir(self.path(folder))), 6)
        self.assertEqual(os.listdir(self.dir), ["weft-watch"])
        self.assertEqual([pid for pid in filter(str.isdigit, os.listdir("/proc")) if self.is_here(pid)], [])

    def is_here(self, pid):
        """Does it live, in the folder of this case?"""
        try:
            return is_alive(pid) and os.readlink(f"/proc/{pid}/cwd") == self.dir
        except OSError:
            return False


class TapResult(unittest.TestResult):
    def say(self, ok, test, rest=""):
        name = test.id().rsplit(".", maxsplit=1)[-1].removeprefix("test_")
        print(f"{'ok' if ok else 'not ok'} {self.testsRun} - {name}{rest}", flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        bad = [text for case, text in self.errors + self.failures if getattr(case, "test_case", case) is test]
        skips = [text for case, text in self.skipped if case is test]
        for text in bad:
            for line in text.splitlines():
                print("#", line)
        self.say(not bad, test, f" # SKIP {skips[0]}" if skips else "")


def run_alone(test, number):
    """In a process of its own. The file of its TAP."""
    out = tempfile.TemporaryFile(mode="w+")
    sys.stdout.flush()
    if os.fork() == 0:
        os.dup2(out.fileno(), 1)
        result = TapResult()
        result.testsRun = number
        test.run(result)
        sys.stdout.flush()
        os._exit(not result.wasSuccessful())
    return out


def run_at_once(tests, nr):
    """So many beside one another, since they wait for most of their time. True: all were good."""
    files, bad = [], 0
    for number, test in enumerate(tests):
        if number >= nr:
            bad |= os.wait()[1]
        files.append(run_alone(test, number))
    for _ in range(min(nr, len(tests))):
        bad |= os.wait()[1]
    for out in files:
        out.seek(0)
        print(out.read(), end="", flush=True)
        out.close()
    return not bad


def main(*cases, at_once=1):
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    only = sys.argv[3:]
    tests = [t for case in cases for t in load(case) if not only or any(part in t.id() for part in only)]
    print(f"1..{len(tests)}", flush=True)
    if at_once > 1:
        return not run_at_once(tests, at_once)
    result = TapResult()
    for test in tests:
        test.run(result)
    return not result.wasSuccessful()
