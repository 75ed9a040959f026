#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile and run every ABI program without a build system.

    run-all.py BUILD [--sources DIR] [--weft PATH] [--workers 1,2,4] [--times N] [--only WORD]...

BUILD is a directory for the programs; it is made when missing and only what is out of date is
compiled, with gcc and g++ of this machine. Used by `make distros` inside a chroot and by
`make soak`. Needs Python, gcc and g++, nothing else. Output is TAP, as in run.py.
"""

import argparse
import os
import subprocess
import sys
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


def main():
    parser = argparse.ArgumentParser(description="Compile and run all ABI programs.")
    parser.add_argument("build")
    parser.add_argument("--sources", default=HERE, metavar="DIR",
                        help="directory of the programs; default: this one")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="only programs with WORD in their name; may be repeated")
    run.add_common_arguments(parser)
    args = parser.parse_args()
    build_dir = os.path.abspath(args.build)
    programs, broken = build(build_dir, os.path.abspath(args.sources), args.only)
    run.become_subreaper()  # only now: the compilers' children are not ours to judge
    weft = os.path.abspath(args.weft) if args.weft else None
    tap = run.Tap(len(broken) + len(programs) * (1 + len(args.workers)))
    for name, error in broken:
        tap.line(False, "%s compiles" % name, error.splitlines())
    for program in programs:
        run.test_program(tap, program, weft, args.workers, args.times, args.seed, args.timeout)
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
