# SPDX-License-Identifier: Apache-2.0
"""What a program and its operator see where there is too little of something, or a call is refused.

    test_limits.py WEFT LIMITS

LIMITS is limits.c; what it prints under weft is what it prints natively. Output is TAP.
"""
import os
import resource
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
MB = 1000000
# By number, as this machine's Python may not know them.
CALLS = {"sigaltstack": 131, "eventfd2": 290, "epoll_create1": 291, "epoll_ctl": 233,
         "tgkill": 234, "rt_sigtimedwait": 128, "membarrier": 324}
NICE_TO_HAVE = {"timerfd_create": 283, "rseq": 334, "madvise": 28}
weft, program = sys.argv[1:3]
number = failed = 0


def run(args, addresses=None, before=(), workers=2, under=True):
    """(output, the lines of weft's own, what --stats says); before: a command that runs the command."""
    def limit():
        if addresses:
            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    command = [weft, "run", f"--workers={workers}", "--stats", "--"] if under else []
    done = subprocess.run([*before, *command, program, *map(str, args)], preexec_fn=limit,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)
    lines = done.stderr.splitlines()
    own = [line for line in lines if line.startswith("weft: ") and not line.startswith("weft:  ")
           and "statistics" not in line]
    out = done.stdout if done.returncode == 0 else f"status {done.returncode}: {done.stdout}"
    return out, own, "threads made" in done.stderr


def report(name, problems, skip=None):
    global number, failed
    number += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {number} - {name}" + (f" # SKIP {skip}" if skip else ""),
          flush=True)
    for problem in problems:
        print("#  ", problem)


def check(name, got, out=None, words=(), is_weft=True):
    """As natively, with one line of these words, or none."""
    problems = []
    if out is not None and got[0] != out:
        problems.append(f"says {got[0]!r}, not {out!r}")
    if len(got[1]) != bool(words) or any(word not in got[1][0] for word in words):
        problems.append(f"lines {got[1]}, not one with {words}")
    if got[2] != is_weft:
        problems.append("is under weft" if got[2] else "is not under weft")
    report(name, problems)


def addresses():
    for megabytes in (400, 700, 760, 1000):
        native = run(["threads", 40], megabytes * MB, under=False)[0]
        check(f"40 threads in {megabytes} MB", run(["threads", 40], megabytes * MB), native)


def no_room_for_tables():
    """Where one thread of the program fits, and what weft needs beside it does not."""
    for kilobytes in range(11000, 15000, 125):
        got = run(["threads", 1], kilobytes * 1000)
        if got[1] and got[0] == "made 1, no error\n":
            check(f"plain NPTL in {kilobytes} KB", got, None, ("plain NPTL", "RLIMIT_AS"), False)
            return
    report("plain NPTL for want of addresses", [], "it always fits, or nothing does")


def refused():
    as_natively = "made 5, no error\n"
    for name, nr in CALLS.items():
        got = run(["threads", 5], before=[program, "refuse", str(nr)])
        check(f"{name} is refused", got, as_natively, ("plain NPTL", name, "filter"), False)
    for name, nr in NICE_TO_HAVE.items():
        got = run(["threads", 5], before=[program, "refuse", str(nr)])
        check(f"{name} is refused, and not needed", got, as_natively)


def tasks():
    if os.geteuid() != 0:
        report("kernel threads", [], "only root may become somebody else")
        return
    check("no first thread, then some", run(["later", 10]), "made 10, no error\n")
    check("one kernel thread for all", run(["few", 10]), "made 10, no error\n",
          ("no further kernel thread", "RLIMIT_NPROC"))


def gives_way():
    """A thread that has no room for another one lets those run whose end makes some."""
    out = run(["retries", 200], workers=1)[0].split()
    good = out[-4:-2] == ["made", "200,"] and int(out[-1]) < 2000
    report("who tries again gives way", [] if good else [out])


def main():
    addresses()
    no_room_for_tables()
    refused()
    tasks()
    gives_way()
    check("what is reserved is in no core file", run(["reserved"]), None)
    out = run(["reserved"])[0].split("\n")[1]
    big = int(out.split()[1]) >= 65536
    report("and that is nearly all without access", [out] if big else [])
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
