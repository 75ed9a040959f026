# SPDX-License-Identifier: Apache-2.0
"""
The frame of a program test: cases, TAP, hard time limits, comparison with the native run.

A test script imports this, marks its cases with @case and ends with main(). Usage of every script:

    NAME.py --weft PATH|none [--workers 1,2] [--only CASE ...] [--list]

`--weft none` runs the programs natively: every case must pass so before it may fail under weft.
Under weft a case runs once for each number of workers. One marked compare=True runs natively first,
and what it saw then (exit status, complaints in its log, idle CPU time) is what it must show again. Where it shows something else it
runs natively some more times: what the program does in one of its native runs it may do under weft.

Invariants: a case ends within its limit, whatever the program does; on a hang every process it
started is shown before it is killed; nothing it started or wrote survives it.
"""

import argparse
import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import procs
from procs import Daemon, Program, Runner, Skip, StepFailed, note

GUESTS = Path(__file__).resolve().parent / "guests"
CASE_LIMIT_S = 100
IDLE_TICKS = 2
NATIVE_RETRIES = 3
MAX_SHOWN = 20
COMPLAINT = re.compile(r"error|warn|fail|fatal|critical|panic|assert|abort|\bweft:", re.I)
cases = []
kept = {}       # what prepared() has made, by key


def case(function=None, *, compare=False, limit_s=CASE_LIMIT_S):
    """Register a case; its name is the sentence under test."""
    def add(f):
        cases.append((f.__name__, f, compare, limit_s))
        return f
    return add(function) if function else add


def find_program(*names):
    """The path of the first program found, in PATH or where daemons live; skips without one."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return found
    raise Skip(f"{names[-1]} is not installed")


def complaints(text):
    """The lines that complain, without what differs from run to run."""
    lines = (line for line in text.splitlines() if COMPLAINT.search(line))
    return {re.sub(r"weft-programs-\w+|0x[0-9a-fA-F]+|\d+", "N", line).strip() for line in lines}


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Case:
    """What a case function works with: a home directory, programs, checks."""

    def __init__(self, runner, home, native=None, is_reference=False):
        self.runner = runner
        self.is_reference = is_reference    # the native run before one under weft
        self.home = Path(home)
        self.native = native            # what the native run recorded, or None
        self.seen = {}                  # what this run recorded
        self.reasons = {}               # why tests of a suite failed, by their names
        self.programs = []
        self.closers = []

    def load(self, full, small):
        """How much load: a reference run shows the log and the exit, it need not prove anything."""
        return small if self.is_reference else full

    @property
    def is_weft(self):
        return self.runner.weft is not None

    def prepared(self, key, make):
        """A directory that make(path) fills for the first case that asks; for reading only, or to be copied."""
        if key not in kept:
            path = Path(tempfile.mkdtemp(prefix="weft-programs-"))
            atexit.register(shutil.rmtree, path, ignore_errors=True)
            make(path)
            kept[key] = path
        return kept[key]

    def start(self, *argv, native=False, **options):
        """Start a program and return at once; native=True keeps a mere client out of weft."""
        runner = Runner(None, 0) if native else self.runner
        tag = f"{len(self.programs)}-{os.path.basename(str(argv[0]))}"
        program = Program(runner, [str(a) for a in argv], home=self.home, tag=tag, **options)
        self.programs.append(program)
        return program

    def call(self, *argv, limit_s=30, status=0, **options):
        """Run a program to its end; the status must be as given (None: any)."""
        program = self.start(*argv, **options)
        ended = program.wait(limit_s)
        if status is not None and ended != status:
            raise StepFailed(f"{program.name}: exit status {ended}, expected {status}")
        return Result(ended, program.out, program.err)

    def adopt(self, pid_file, name):
        """A daemon that a program left on purpose: ours to watch and to stop from now on."""
        daemon = Daemon(self.runner, pid_file, home=self.home, name=name)
        self.programs.append(daemon)
        return daemon

    def check(self, is_true, text):
        if not is_true:
            raise StepFailed(text)

    def equal(self, value, expected, text):
        self.check(value == expected, f"{text}: {value!r}, expected {expected!r}")

    def same(self, key, value):
        """Record a value; under weft it must be the one of a native run."""
        self.seen[key] = value

    def runs_under_weft(self, program):
        """Guard against a test that passes because weft was never there. A program may be within an exec just now."""
        if self.is_weft:
            program.wait_for("has libweft mapped", program.is_under_weft)

    def idle(self, program):
        """An idle program uses no CPU time: 2 ticks a second, or what it uses natively and one."""
        limit = max(IDLE_TICKS, (self.native or {}).get("idle ticks", 0) + 1)
        used = program.idle_ticks(IDLE_TICKS if self.native is None else limit)
        self.seen["idle ticks"] = max(used, self.seen.get("idle ticks", 0))
        note(f"{program.name}: {used} ticks in one idle second")
        if self.is_weft and used > limit:
            program.fail(f"{used} ticks in one idle second, limit {limit}")

    def log_is_clean(self, key, text):
        """No complaint in a log that no native run has."""
        self.seen[key] = complaints(text)

    def same_tests(self, found, reasons):
        """What became of each test of a suite, by name; and why, where somebody may want to know."""
        self.seen["tests"] = found
        self.reasons = reasons

    def on_exit(self, function):
        self.closers.append(function)

    def close(self):
        """End what the case started; a process that is still below us then was left behind."""
        for function in reversed(self.closers):
            function()
        for program in self.programs:
            if program.is_alive():
                program.kill()
        known = {p.pid for p in self.programs if p.popen.returncode is None}
        left = procs.leftovers(known)
        if left:
            names = ", ".join(procs.describe(pid) for pid in left)
            procs.kill_below()
            raise StepFailed(f"left running: {names}")


class Watchdog:
    """
    The last limit: shows and kills everything below us, so that the case wakes up and fails. If the
    script itself stays stuck after that, it ends the script.
    """

    def __init__(self, limit_s, weft):
        self.fired = False
        self.weft = weft
        self.timer = threading.Timer(limit_s, self.fire)
        self.timer.daemon = True

    def fire(self):
        self.fired = True
        note("time is over for this case")
        procs.show_processes(procs.descendants(), self.weft)
        procs.kill_below()
        self.timer = threading.Timer(30, self.give_up)
        self.timer.daemon = True
        self.timer.start()

    def give_up(self):
        traceback.print_stack(sys._current_frames()[threading.main_thread().ident], file=sys.stdout)
        print("Bail out! the test script is stuck", flush=True)
        procs.kill_below()
        os._exit(1)

    def __enter__(self):
        self.timer.start()
        return self

    def __exit__(self, *_):
        self.timer.cancel()


def show_files(home):
    """The ends of what the programs of a failed case wrote: output and logs."""
    for path in sorted(home.iterdir()):
        if path.suffix in (".out", ".err", ".log") and path.is_file() and path.stat().st_size:
            note(f"--- end of {path.name}")
            note("\n".join(path.read_text(errors="replace").splitlines()[-20:]))


def run_once(function, runner, limit_s, native=None, is_reference=False):
    """One run of a case in a fresh home; returns what it recorded."""
    home = tempfile.mkdtemp(prefix="weft-programs-")
    c = Case(runner, home, native, is_reference)
    limit_s *= procs.PATIENCE
    with Watchdog(limit_s, runner.weft) as watchdog:
        try:
            try:
                function(c)
            finally:
                c.close()
        except Exception as err:
            if not isinstance(err, Skip):
                show_files(c.home)
            raise
        finally:
            procs.kill_below()
            shutil.rmtree(home, ignore_errors=True)
    if watchdog.fired:
        raise StepFailed(f"not done after {limit_s} s")
    return c


def differences(seen, natives):
    """What the run under weft shows and none of the native runs does, as lines of text."""
    found = []
    for key, value in seen.items():
        known = [native.get(key) for native in natives]
        if key == "idle ticks":
            continue                    # judged on the spot, with a margin
        if isinstance(value, set):
            found += [f"{key}: new complaint: {line}"
                      for line in sorted(value - set().union(*filter(None, known)))]
        elif isinstance(value, dict):
            tests = [k or {} for k in known]
            found += [f"{name}: {value.get(name, 'not run')} (natively: {tests[0].get(name, 'not run')})"
                      for name in sorted(value.keys() | tests[0].keys())
                      if all(value.get(name) != t.get(name) for t in tests)]
        elif value not in known:
            found.append(f"{key}: {value!r} (natively: {known[0]!r})")
    return found


def run_natively(function, limit_s):
    """A program that fails now and then natively is asked again: that says nothing of weft."""
    for attempt in range(1 + NATIVE_RETRIES):
        try:
            return run_once(function, Runner(None, 0), limit_s, is_reference=True).seen
        except StepFailed as err:
            note(f"fails natively: {err}")
            if attempt == NATIVE_RETRIES:
                raise StepFailed(f"fails natively: {err}") from None


def run_case(function, runner, compare, limit_s, natives):
    """natives: what the native runs of the case have shown so far, for all numbers of workers."""
    if not compare or not runner.weft:
        run_once(function, runner, limit_s)
        return
    if not natives:
        natives.append(run_natively(function, limit_s))
    c = run_once(function, runner, limit_s, natives[0])
    while left := differences(c.seen, natives):
        text = "\n".join(["other than natively:", *left[:MAX_SHOWN]])
        if len(natives) > NATIVE_RETRIES:
            raise StepFailed(text)
        note(text)
        for name in [line.split(":")[0] for line in left][:MAX_SHOWN]:
            note("\n".join(c.reasons.pop(name, "").splitlines()[-30:]))
        natives.append(run_natively(function, limit_s))


def preload_takes(c):
    result = c.call(find_program("cat"), "/proc/self/maps")
    c.check("libweft" in result.out, "libweft is not mapped in a program started by weft run")


def add_guest_cases(interpreter, script, *, limit_s=30):
    """Every case that a guest script lists becomes one case, in a process of its own."""
    try:
        program = find_program(*interpreter)
    except Skip as skip:
        reason = str(skip)

        def skipped(_):
            raise Skip(reason)
        cases.append((Path(script).stem, skipped, False, limit_s))
        return
    procs.become_subreaper()
    home = tempfile.mkdtemp(prefix="weft-programs-")
    try:
        lister = Program(Runner(None, 0), [program, str(GUESTS / script), "--list"],
                         home=home, tag="list")
        lister.wait(20)
        names = lister.out.split()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    for name in names:
        def run(c, name=name):
            result = c.call(program, GUESTS / script, name, limit_s=limit_s)
            if result.out.splitlines()[-1:] != [f"ok {name}"]:
                raise StepFailed(f"the output does not end with 'ok {name}'")
            c.equal(result.err, "", "stderr")
        cases.append((name, run, False, limit_s + 60))


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--weft", required=True, help="path of the weft command, or none")
    parser.add_argument("--workers", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--apart", action="store_true", help=argparse.SUPPRESS)     # see run_apart()
    args = parser.parse_args()
    args.weft = None if args.weft == "none" else os.path.abspath(args.weft)
    return args


class Tap:
    def __init__(self):
        self.count = self.nr_failed = 0

    def add(self, is_ok, text):
        self.count += 1
        self.nr_failed += not is_ok
        print(f"{'ok' if is_ok else 'not ok'} {self.count} {text}")

    def run(self, name, function, *args):
        """One line for function(*args); true unless it failed."""
        started = time.monotonic()
        is_ok = True
        try:
            function(*args)
            self.add(True, f"- {name}")
        except Skip as skip:
            self.add(True, f"- {name} # SKIP {skip}")
        except Exception as err:        # a broken case must not hide the ones after it
            is_ok = False
            if not isinstance(err, StepFailed):
                note(traceback.format_exc())
            note(f"{type(err).__name__}: {err}")
            self.add(False, f"- {name}")
        note(f"{time.monotonic() - started:.1f} s")
        return is_ok


class Apart:
    """Cases of this script that run in a process of their own."""

    def __init__(self, name):
        self.name = name
        self.output = tempfile.TemporaryFile("w+")
        self.popen = subprocess.Popen([sys.executable, *sys.argv, "--apart", "--only", name],
                                      stdin=subprocess.DEVNULL, stdout=self.output)

    def report(self, tap):
        self.output.seek(0)
        failed_before = tap.nr_failed
        for line in self.output.read().splitlines():
            if found := re.match(r"(not )?ok \d+ (.*)", line):
                tap.add(not found[1], found[2])
            elif not line.startswith("1.."):
                print(line)
        if self.popen.returncode and tap.nr_failed == failed_before:
            tap.add(False, f"- {self.name}: ended with status {self.popen.returncode}")


def run_apart(names, at_once, tap):
    """The cases of these names, so many of them side by side."""
    todo, running = list(names), []
    try:
        while todo or running:
            while todo and len(running) < at_once:
                running.append(Apart(todo.pop(0)))
            for apart in [a for a in running if a.popen.poll() is not None]:
                running.remove(apart)
                apart.report(tap)
            time.sleep(0.02)
    finally:
        for apart in running:
            apart.popen.terminate()     # it clears up after itself
        for apart in running:
            apart.popen.wait()
        procs.kill_below()


def main(at_once=1):
    """at_once: so many cases run side by side, where most of what they do is waiting."""
    args = parse_arguments()
    sys.stdout.reconfigure(line_buffering=True)
    runners = [Runner(args.weft, w) for w in args.workers] if args.weft else [Runner(None, 0)]
    todo = [entry for entry in cases if not args.only or entry[0] in args.only]
    apart = [entry[0] for entry in todo] if at_once > 1 and not args.apart else []
    if apart:
        todo = []
    if args.weft and not args.apart:
        todo.insert(0, ("preload_takes", preload_takes, False, 60))
    if args.list:
        print("\n".join([entry[0] for entry in todo] + apart))
        return
    procs.become_subreaper()
    procs.take_default_signals()
    # If somebody ends us (a test driver's timeout), the clean-up is done, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    tap = Tap()
    for name, function, compare, limit_s in todo:
        natives = []
        for runner in runners:
            label = f"{name} workers={runner.workers}" if runner.weft else name
            is_ok = tap.run(label, run_case, function, runner, compare, limit_s, natives)
            if not is_ok and function is preload_takes:
                print("Bail out! weft does not run the simplest program")
                sys.exit(1)
    run_apart(apart, at_once, tap)
    print(f"1..{tap.count}", flush=True)
    sys.exit(1 if tap.nr_failed else 0)
