#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Differential runner of one ABI program.

    run.py PROGRAM [--weft PATH] [--workers 1,2,4] [--times N] [--seed N] [--timeout S]

PROGRAM runs on the plain kernel first. It must exit with 0 there, and its stdout is the reference.
Then it runs under `weft run --workers W -- PROGRAM`, N times for every W: the same stdout, the
same exit status and no child left behind. A run that takes too long is dumped, then killed with
everything it started. Output is TAP: one line for the native run, one for every W.

Where the output of weft is another one, the plain kernel is asked again: what it says in one of its
runs, weft may say too. The log then names the difference, as such a program wants to be cured.

A program that exits with 77 on the plain kernel cannot run here and is skipped.
run-all.py imports this file.
"""

import argparse
import ctypes
import difflib
import os
import signal
import subprocess
import sys
import tempfile
import time

EXIT_SKIP = 77
PR_SET_CHILD_SUBREAPER = 36
LEFTOVER_GRACE_S = 2.0
NATIVE_RETRIES = 3
MAX_SHOWN_BYTES = 8000
MAX_SHOWN_LINES = 200


class Result:
    def __init__(self):
        self.status = None  # exit status, or -signal
        self.stdout = b""
        self.stderr = b""
        self.problems = []  # lines of text; empty means that the run itself went well


def become_subreaper():
    """Orphans of the programs become our children, so that none escapes."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # nohup, and a shell without job control in the background, ignore these; the programs would inherit it.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def read_text(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode("utf-8", "replace").strip()
    except OSError as e:
        return "<%s>" % e.strerror


def descendants():
    """Live processes below this one, without the zombies."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return [] # and so no orphan either: the nearest subreaper is their parent
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = read_text("/proc/%s/stat" % name)
        if ")" not in stat:
            continue
        fields = stat[stat.rindex(")") + 2:].split()
        if fields[0] not in "ZX":
            parents[int(name)] = int(fields[1])
    found, front = [], [os.getpid()]
    while front:
        parent = front.pop()
        children = [pid for pid, ppid in parents.items() if ppid == parent]
        found += children
        front += children
    return found


def reap_orphans():
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


def kill_everything(group):
    for _ in range(20):
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        left = descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.05)
        reap_orphans()


def describe_hang(weft, pids):
    """What every thread of the stuck processes is doing, as far as it can be seen from outside."""
    lines = []
    for pid in pids:
        command = read_text("/proc/%d/cmdline" % pid).replace("\0", " ")
        lines.append("process %d: %s" % (pid, command))
        if weft:
            try:
                dump = subprocess.run([weft, "dump", str(pid)], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10)
                lines += dump.stdout.decode("utf-8", "replace").splitlines()
            except subprocess.TimeoutExpired:
                lines.append("weft dump %d: no answer in 10 s" % pid)
            except OSError as e:
                lines.append("weft dump: %s" % e.strerror)
        tasks = "/proc/%d/task" % pid
        try:
            tids = sorted(os.listdir(tasks), key=int)
        except OSError:
            continue
        for tid in tids[:64]:
            at = "%s/%s/" % (tasks, tid)
            stat = read_text(at + "stat")
            state = stat[stat.rindex(")") + 2:][:1] if ")" in stat else "?"
            lines.append("  task %s %s state %s wchan %s syscall %s" % (
                tid, read_text(at + "comm"), state, read_text(at + "wchan"),
                read_text(at + "syscall")))
        if len(tids) > 64:
            lines.append("  ... and %d more tasks" % (len(tids) - 64))
    return lines


def run_once(command, timeout_s, weft=None, env=None):
    result = Result()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # Files, not pipes: a child left behind must not keep us waiting for an end of file.
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       start_new_session=True, env=env)
        except OSError as e:
            result.problems.append("cannot start %s: %s" % (command[0], e.strerror))
            return result
        try:
            result.status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            result.problems.append("no end after %g s" % timeout_s)
            result.problems += describe_hang(weft, descendants())
            kill_everything(process.pid)
            process.wait()
        else:
            deadline = time.monotonic() + LEFTOVER_GRACE_S
            while descendants() and time.monotonic() < deadline:
                time.sleep(0.01)
                reap_orphans()
            left = descendants()
            if left:
                result.problems.append("left %d processes behind" % len(left))
                result.problems += describe_hang(weft, left)
                kill_everything(process.pid)
        reap_orphans()
        out.seek(0)
        err.seek(0)
        result.stdout, result.stderr = out.read(), err.read()
    return result


def show_status(status):
    if status is None:
        return "no status"
    if status < 0:
        try:
            return "killed by %s" % signal.Signals(-status).name
        except ValueError:
            return "killed by signal %d" % -status
    return "exit status %d" % status


def lines_of(data):
    return data.decode("utf-8", "replace").splitlines()


def shown(data):
    return lines_of(data[-MAX_SHOWN_BYTES:])


def difference(reference, got, whose="stdout under weft"):
    # All of both: what is too long to be shown is still different.
    lines = list(difflib.unified_diff(lines_of(reference), lines_of(got), "native stdout",
                                      whose, lineterm="", n=1))
    return lines[:MAX_SHOWN_LINES] or ["stdout differs in its line ends"]


def default_timeout():
    # Only a hang lasts that long; on a machine that does twenty other things a good run takes a minute.
    return 240.0 if os.environ.get("CI") else 60.0


def native_env():
    """The plain kernel means: none of our variables and nothing preloaded."""
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("WEFT")}


class Reference:
    """What the plain kernel does with a program.

    A native run that fails says that the program expects too much of the kernel (a futex waiter that was requeued
    goes back after a spurious wake-up, for one): it is made again, and named in the log.
    """

    def __init__(self, program, timeout_s):
        self.program, self.timeout_s = program, timeout_s
        self.failures = []  # lines about native runs that failed, where a later one did not
        for _ in range(1 + NATIVE_RETRIES):
            self.first = self.run()
            self.status = self.first.status
            problems = self.problems()
            if not problems or self.status == EXIT_SKIP:
                break
            self.failures += ["a native run failed:"] + problems
        self.others = []  # what later runs said, where they were asked and differed

    def problems(self):
        found = list(self.first.problems)
        if self.status != 0:
            found.append(show_status(self.status))
        if found:
            found += ["stderr: " + line for line in shown(self.first.stderr)]
        return found

    def run(self):
        return run_once([self.program], self.timeout_s, env=native_env())

    def says(self, stdout):
        """True when a native run prints this; a second one is only made when the first did not."""
        if stdout == self.first.stdout or stdout in self.others:
            return True
        for _ in range(NATIVE_RETRIES):
            again = self.run()
            if again.status != self.status or again.problems:
                continue
            if again.stdout not in [self.first.stdout] + self.others:
                self.others.append(again.stdout)
            if again.stdout == stdout:
                return True
        return False

    def variations(self):
        return [line for other in self.others for line in
                difference(self.first.stdout, other, "stdout of another native run")]


def run_weft(program, weft, workers, seed, reference, timeout_s):
    """One run under weft; the problems found, empty when it was as good as native."""
    command = [weft, "run", "--workers", str(workers)]
    if seed is not None:
        command += ["--seed", str(seed)]
    result = run_once(command + ["--", program], timeout_s, weft=weft)
    problems = result.problems
    if result.status is not None and result.status != reference.status:
        problems.append("%s, natively %s" % (show_status(result.status),
                                             show_status(reference.status)))
    if not reference.says(result.stdout):
        problems += difference(reference.first.stdout, result.stdout)
    if problems:
        settings = ["%s=%s" % item for item in os.environ.items() if item[0].startswith("WEFT")]
        problems.append("command: %s" % " ".join(settings + command + ["--", program]))
        problems += ["stderr: " + line for line in shown(result.stderr)]
    return problems


class Tap:
    """Counts and prints; `failed` is true once a line was not ok."""

    def __init__(self, planned):
        self.count = 0
        self.failed = False
        print("1..%d" % planned, flush=True)

    def line(self, is_ok, text, problems=()):
        self.count += 1
        self.failed = self.failed or not is_ok
        print("%s %d - %s" % ("ok" if is_ok else "not ok", self.count, text))
        for problem in problems:
            print("#   " + problem)
        sys.stdout.flush()


def test_program(tap, program, weft, workers, times, seed, timeout_s):
    name = os.path.basename(program)
    reference = Reference(program, timeout_s)
    native = reference.first
    if native.status == EXIT_SKIP and not native.problems:
        for _ in range(1 + len(workers)):
            reason = " ".join(shown(native.stderr)) or "cannot run here"
            tap.line(True, "%s # SKIP %s" % (name, reason))
        return
    problems = reference.problems()
    tap.line(not problems, "%s native" % name, reference.failures)
    for w in workers:
        if problems:
            tap.line(False, "%s workers=%d" % (name, w), ["no reference: the native run failed"])
            continue
        if not weft:
            tap.line(True, "%s workers=%d # SKIP no weft command given" % (name, w))
            continue
        bad = []
        for i in range(times):
            run_seed = None if seed is None else seed + i
            found = run_weft(program, weft, w, run_seed, reference, timeout_s)
            if found:
                with_seed = "" if seed is None else ", seed %d" % run_seed
                bad.append("run %d of %d%s:" % (i + 1, times, with_seed))
                bad += found
                break  # the first failure says enough; more would only cost timeouts
        tap.line(not bad, "%s workers=%d" % (name, w), bad + reference.variations())


def worker_list(text):
    return [int(part) for part in text.split(",") if part]


def add_common_arguments(parser):
    parser.add_argument("--weft", metavar="PATH",
                        help="the weft command; without it only the native run is made")
    parser.add_argument("--workers", type=worker_list, default=[1, 2, 4], metavar="N,N,...")
    parser.add_argument("--times", type=int, default=1, metavar="N")
    parser.add_argument("--seed", type=int, metavar="N",
                        help="passed to weft run; run i gets N + i")
    parser.add_argument("--timeout", type=float, default=default_timeout(), metavar="S")


def main():
    parser = argparse.ArgumentParser(description="Run one ABI program natively and under weft.")
    parser.add_argument("program")
    add_common_arguments(parser)
    args = parser.parse_args()
    become_subreaper()
    program = os.path.abspath(args.program)
    weft = os.path.abspath(args.weft) if args.weft else None
    tap = Tap(1 + len(args.workers))
    test_program(tap, program, weft, args.workers, args.times, args.seed, args.timeout)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
