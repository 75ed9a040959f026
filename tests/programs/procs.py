# SPDX-License-Identifier: Apache-2.0
"""
Processes of the program tests: start, wait, look at, stop, and account for every one of them.

Used by: harness.py, which is what a test script imports.

Invariant: whatever a test starts stays a descendant of the test (we are the subreaper), in a
session of its own; so the tree below us is exactly what we may look at and kill, daemons included,
and a process that is still there after a case is one that the program left behind.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
MAX_TASKS_SHOWN = 40
MAX_PROCESSES_SHOWN = 20
DUMP_LIMIT_S = 10
# Limits are for machines that do little else; an automatic run may be on one that does.
PATIENCE = 4 if os.environ.get("CI") else 1


class StepFailed(Exception):
    """A step of a case did not give what the native program gives."""


class Skip(Exception):
    """The case cannot run here; the text says why."""


def note(text):
    """TAP diagnostics: every line gets a '#'."""
    for line in str(text).splitlines() or [""]:
        print("#", line, flush=True)


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def take_default_signals():
    """nohup, and a shell without job control in the background, ignore these; the programs would inherit it."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def stat_fields(pid):
    """The fields of /proc/PID/stat after the name, or None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def wants_processor(pid):
    """Whether a task of the process runs, or would if it got a processor, or waits for a disk."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    return any((stat_fields(f"{pid}/task/{tid}") or "Z")[0] in "RD" for tid in tasks)


def descendants(root=None):
    """All living processes below root (default: us), parents first, zombies left out."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(entry)
            if fields and fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [root or os.getpid()]
    while todo:
        below = children.get(todo.pop(0), [])
        found += below
        todo += below
    return found


def describe(pid):
    try:
        args = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return f"{pid} (gone)"
    return f"{pid} " + " ".join(a.decode(errors="replace") for a in args if a)[:200]


def read_proc(path):
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError as err:
        return f"({err.strerror})"


def weft_dump(pid, weft):
    """True if the process answered."""
    try:
        dump = subprocess.run([weft, "dump", str(pid)], timeout=DUMP_LIMIT_S,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        note(dump.stdout.decode(errors="replace"))
        return True
    except (OSError, subprocess.TimeoutExpired) as err:
        note(f"weft dump {pid}: {err}")
        return False


def show_tasks(pid):
    """The kernel's view of every task of a process."""
    status = read_proc(f"/proc/{pid}/status").splitlines()
    note("\n".join(line for line in status if line.startswith(("Sig", "Shd", "Threads"))))
    try:
        tasks = sorted(os.listdir(f"/proc/{pid}/task"), key=int)
    except OSError:
        return
    for tid in tasks[:MAX_TASKS_SHOWN]:
        task = f"/proc/{pid}/task/{tid}"
        fields = stat_fields(f"{pid}/task/{tid}") or ["?"]
        note(f"{tid} {read_proc(task + '/comm')}: state {fields[0]}, "
             f"ticks {'+'.join(fields[11:13])}, wchan {read_proc(task + '/wchan')}, "
             f"syscall {read_proc(task + '/syscall')}")
    if len(tasks) > MAX_TASKS_SHOWN:
        note(f"... and {len(tasks) - MAX_TASKS_SHOWN} more tasks")


def show_processes(pids, weft):
    """
    What hung processes do: weft's own dump first, then the kernel's view. One that does not answer
    ends the dumps, so that the time this takes has a bound.
    """
    for pid in pids[:MAX_PROCESSES_SHOWN]:
        note(f"--- process {describe(pid)}")
        if weft and not weft_dump(pid, weft):
            weft = None
        show_tasks(pid)
    if len(pids) > MAX_PROCESSES_SHOWN:
        note(f"... and {len(pids) - MAX_PROCESSES_SHOWN} more processes")


def reap_orphans(known):
    """Collect dead children that are not ours by Popen: daemons and orphans that came to us."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in known:
            continue
        fields = stat_fields(entry)
        if fields and fields[0] == "Z" and int(fields[1]) == os.getpid():
            try:
                os.waitpid(int(entry), os.WNOHANG)
            except ChildProcessError:
                pass


def kill_below():
    """Kill everything below us; again while killing makes new orphans appear."""
    for _ in range(20):
        pids = descendants()
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.05)


def leftovers(known, grace_s=3.0 * PATIENCE):
    """What still lives below us after a grace period; empty is right."""
    until = time.monotonic() + grace_s
    while True:
        reap_orphans(known)
        pids = descendants()
        if not pids or time.monotonic() > until:
            return pids
        time.sleep(0.02)


class Runner:
    """How programs are started: natively (weft is None), or by `weft run` with so many workers."""

    def __init__(self, weft, workers):
        self.weft = weft
        self.workers = workers

    def argv(self, argv):
        return [self.weft, "run", "--", *argv] if self.weft else list(argv)

    def env(self, home, extra):
        keep = {k: v for k, v in os.environ.items()
                if k != "LD_PRELOAD" and (self.weft or not k.startswith("WEFT"))}
        keep.update(LC_ALL="C.UTF-8", HOME=str(home), TMPDIR=str(home),
                    PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
        if self.weft:
            keep["WEFT_WORKERS"] = str(self.workers)
        keep.update(extra or {})
        return keep


class Program:
    """One started program. Output goes to files: a pipe would let a grandchild hold us up."""

    def __init__(self, runner, argv, *, home, tag, stdin=None, env=None, cwd=None):
        self.runner = runner
        self.name = os.path.basename(argv[0])
        self.out_path = Path(home, f"{tag}.out")
        self.err_path = Path(home, f"{tag}.err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(
                runner.argv(argv), stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=err,
                env=runner.env(home, env), cwd=cwd or home, start_new_session=True)
        self.pid = self.popen.pid

    @property
    def out(self):
        return self.out_path.read_text(errors="replace")

    @property
    def err(self):
        return self.err_path.read_text(errors="replace")

    def is_alive(self):
        return self.popen.poll() is None

    def fail(self, why):
        """Say what a program that misbehaves is doing, end it, and fail the case."""
        if self.is_alive():
            show_processes([self.pid, *descendants(self.pid)], self.runner.weft)
        self.kill()
        raise StepFailed(f"{self.name}: {why}")

    def wait(self, limit_s):
        """The exit status (negative: signal); a program that does not end in time is a failure."""
        limit_s *= PATIENCE
        try:
            return self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {limit_s} s")

    def wait_for(self, what, is_ready, limit_s=20):
        """Poll is_ready() until true; fail when the program ends or time is over."""
        limit_s *= PATIENCE
        until = time.monotonic() + limit_s
        while not is_ready():
            if not self.is_alive():
                if is_ready():          # it ended after the first look
                    return
                self.fail(f"ended with status {self.popen.returncode} before: {what}")
            if time.monotonic() > until:
                self.fail(f"{what}: not within {limit_s} s")
            time.sleep(0.01)

    def wait_line(self, prefix, limit_s=20):
        """Wait for a line with that prefix on stdout; the rest of the line."""
        found = []

        def look():
            found[:] = [line[len(prefix):] for line in self.out.splitlines(True)
                        if line.startswith(prefix) and line.endswith("\n")]
            return bool(found)
        self.wait_for(f"line '{prefix}'", look, limit_s)
        return found[-1].strip()

    def send(self, number):
        os.kill(self.pid, number)

    def stop(self, number=signal.SIGTERM, limit_s=10):
        """Send the signal and return the exit status."""
        if not self.is_alive():
            self.fail(f"ended on its own with status {self.popen.returncode}")
        self.send(number)
        return self.wait(limit_s)

    def become_idle(self, quiet_s=0.3, limit_s=2):
        """
        Wait until it has reached its wait: none of its tasks has wanted a processor for a while. Servers test
        a flag and then poll, so a signal in between is lost natively too, and nothing in /proc says, under
        weft as without, where a thread waits.
        """
        pids = [self.pid, *descendants(self.pid)]
        quiet_since = time.monotonic()
        until = quiet_since + limit_s * PATIENCE
        while (now := time.monotonic()) < until and now - quiet_since < quiet_s:
            if any(wants_processor(pid) for pid in pids):
                quiet_since = now
            time.sleep(0.01)

    def ticks(self):
        fields = stat_fields(self.pid)
        if not fields:
            self.fail("gone while its CPU time was read")
        return int(fields[11]) + int(fields[12])

    def idle_ticks(self, good_enough, windows=5):
        """
        CPU ticks used in one second of idleness: the best of a few windows, because a server may
        tidy up after load. A spinning or ticking program is over the limit in all of them.
        """
        best = None
        for _ in range(windows):
            before = self.ticks()
            time.sleep(1.0)
            used = self.ticks() - before
            best = used if best is None else min(best, used)
            if best <= good_enough:
                break
        return best

    def is_under_weft(self):
        return "libweft" in read_proc(f"/proc/{self.pid}/maps")

    def kill(self):
        below = descendants(self.pid) if self.is_alive() else []
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        for pid in below:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            self.popen.wait(5)
        except subprocess.TimeoutExpired:
            print(f"# {self.name}: {self.pid} does not die", file=sys.stdout, flush=True)


class Child:
    """The part of Popen that Program needs, for a child that came to us as an orphan."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def poll(self):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # It writes its pid file while the process that made it may still be about to end.
                if not stat_fields(self.pid):
                    raise
                return None
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, limit_s):
        until = time.monotonic() + limit_s
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), limit_s)
            time.sleep(0.01)
        return self.returncode


class Daemon(Program):
    """A program that put itself into the background; found by its pid file."""

    def __init__(self, runner, pid_file, *, home, name):
        self.runner = runner
        self.name = name
        self.out_path = self.err_path = Path(home, f"{name}.none")
        self.out_path.touch()
        until = time.monotonic() + 10 * PATIENCE
        while not (pid := read_proc(pid_file)).isdigit():
            if time.monotonic() > until:
                raise StepFailed(f"{name}: no pid file {pid_file}")
            time.sleep(0.01)
        self.pid = int(pid)
        self.popen = Child(self.pid)
