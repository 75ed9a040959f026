#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile and run every ABI program without a build system.

    run-all.py BUILD [--sources DIR] [--weft PATH] [--workers 1,2,4] [--times N] [--jobs N] [--only WORD]...

BUILD is a directory for the programs; it is made when missing and only what is out of date is
compiled, with gcc and g++ of this machine. Used by `make distros` inside a chroot and by
`make soak`. Needs Python, gcc and g++, nothing else. Output is TAP, as in run.py.

Several programs run at a time (--jobs), each under a process of its own that judges and ends what the
program leaves behind. A program's lines come together, when it is done.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # the tree may be read-only, and is not ours to litter
sys.path.insert(0, HERE)
import run  # noqa: E402

COMMON = ["-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-pthread"]
LIBS = ["-ldl", "-lrt", "-lm"]
LINK = {
    "lib_syscalls_execstack.c": ["-Wl,-z,execstack"],
    "lib_syscalls_textrel.c": ["-Wl,-z,notext"],
}  # the same in meson.build

# They measure time, or take processors from all others: alone, after the rest.
ALONE = ["fifo_yield", "prompt", "sched_realtime", "spin_pages", "timer_fast"]


def command_for(source, target):
    c = [os.environ.get("CC", "gcc"), "-std=gnu17"]
    cxx = [os.environ.get("CXX", "g++"), "-std=gnu++17"]
    compiler = cxx if source.endswith(".cc") else c
    kind = ["-shared", "-fPIC"] if os.path.basename(source).startswith("lib_") else []
    link = LINK.get(os.path.basename(source), []) + LIBS
    return compiler + COMMON + kind + ["-o", target, source] + link


def is_current(target, sources):
    try:
        made = os.stat(target).st_mtime
    except OSError:
        return False
    return all(os.stat(s).st_mtime <= made for s in sources)


def build(build_dir, source_dir, only):
    """Returns (programs, [(name, compiler output)] of those that do not compile)."""
    os.makedirs(build_dir, exist_ok=True)
    header = os.path.join(source_dir, "check.h")
    jobs, programs, broken = [], [], []
    for name in sorted(os.listdir(source_dir)):
        stem, ext = os.path.splitext(name)
        if ext not in (".c", ".cc"):
            continue
        is_lib = stem.startswith("lib_")
        if only and not is_lib and not any(word in stem for word in only):
            continue
        source = os.path.join(source_dir, name)
        target = os.path.join(build_dir, stem + (".so" if is_lib else ""))
        jobs.append((stem, source, target, is_lib))

    def compile_one(job):
        stem, source, target, _ = job
        if is_current(target, [source, header]):
            return None
        done = subprocess.run(command_for(source, target), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        return done.stdout.decode("utf-8", "replace") if done.returncode else None

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for job, error in zip(jobs, pool.map(compile_one, jobs)):
            if error is not None:
                broken.append((job[0], error))
            elif not job[3]:
                programs.append(job[2])
    return programs, broken


class Lines:
    """Has what a Tap would print."""

    def __init__(self):
        self.lines = []

    def line(self, is_ok, text, problems=()):
        self.lines.append((is_ok, text, list(problems)))


def start(program, test):
    """A process that tests the program: its ID, and the file that it writes the lines to."""
    out = tempfile.TemporaryFile("w+")
    pid = os.fork()
    if pid:
        return pid, out
    try:
        run.become_subreaper()
        found = Lines()
        test(found, program)
        json.dump(found.lines, out)
        out.flush()
    except BaseException:  # also an interrupt from the terminal: nothing of this process goes on in the other's code
        traceback.print_exc()
    finally:
        os._exit(0)  # whoever reads the lines sees whether they are there


def run_all(tap, programs, test, nr_lines, jobs):
    """Test programs, so many at a time, in their order; all have nr_lines lines."""
    waiting, running = list(programs), {}
    while waiting or running:
        while waiting and len(running) < jobs:
            program = waiting.pop(0)
            pid, out = start(program, test)
            running[pid] = program, out
        pid, _ = os.wait()
        if pid not in running:
            continue  # somebody's orphan, where this is process 1
        program, out = running.pop(pid)
        with out:
            out.seek(0)
            text = out.read()
        name = os.path.basename(program)
        for line in json.loads(text) if text else [(False, "%s is tested" % name, [])] * nr_lines:
            tap.line(*line)


def main():
    parser = argparse.ArgumentParser(description="Compile and run all ABI programs.")
    parser.add_argument("build")
    parser.add_argument("--sources", default=HERE, metavar="DIR",
                        help="directory of the programs; default: this one")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="only programs with WORD in their name; may be repeated")
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1, metavar="N",
                        help="so many programs at a time; default: one more than there are processors")
    run.add_common_arguments(parser)
    args = parser.parse_args()
    build_dir = os.path.abspath(args.build)
    programs, broken = build(build_dir, os.path.abspath(args.sources), args.only)
    weft = os.path.abspath(args.weft) if args.weft else None
    nr_lines = 1 + len(args.workers)
    tap = run.Tap(len(broken) + len(programs) * nr_lines)
    for name, error in broken:
        tap.line(False, "%s compiles" % name, error.splitlines())

    def test(lines, program):
        run.test_program(lines, program, weft, args.workers, args.times, args.seed, args.timeout)

    alone = [program for program in programs if os.path.basename(program) in ALONE]
    run_all(tap, [program for program in programs if program not in alone], test, nr_lines, args.jobs)
    run_all(tap, alone, test, nr_lines, 1)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
