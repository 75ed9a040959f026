#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that is killed leaves its counters and events, and the status that it has natively.

    test_crash.py WEFT CRASHES       CRASHES dies in the way that its argument names
"""
import os
import signal
import subprocess
import sys
import tempfile
import threading

LIMIT_S = 240 if os.environ.get("CI") else 60
ONE = ("segv", "bus", "fpe", "ill", "trap", "abort", "term", "int", "quit", "hup", "usr1", "sent-segv")
nr = 0


def tell(good, what, said=b""):
    global nr
    nr += 1
    if not good:
        for line in said.decode(errors="replace").splitlines()[:20]:
            print("#", line)
    print(f"{'ok' if good else 'not ok'} {nr} - {what}", flush=True)
    return good


def status_of(command, **streams):
    """The whole status, with the flag of a core, and standard error."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **streams)
    guard = threading.Timer(LIMIT_S, process.kill)  # one that hangs
    guard.start()
    said = process.stderr.read()
    status = os.waitpid(process.pid, 0)[1]
    process.returncode = status
    guard.cancel()
    process.stderr.close()
    return status, said


def under_weft(weft, program, how, path):
    """Status, standard error, events; the files of one way to die are its own."""
    status, said = status_of([weft, "run", "--workers", "2", "--stats", "--trace", path, "--", program, how])
    events = open(path).read().splitlines() if os.path.exists(path) else []
    return status, said, events


def main():
    weft, program = map(os.path.abspath, sys.argv[1:3])
    good = True
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # by nohup, and by a shell's `&`
        signal.signal(ignored, signal.SIG_DFL)
    print(f"1..{len(ONE) + 4}")
    with tempfile.TemporaryDirectory(prefix="weft-crash-") as d:
        os.chdir(d)  # where a core may go
        for how in ONE:
            native, _ = status_of([program, how])
            status, said, events = under_weft(weft, program, how, os.path.join(d, how))
            good &= tell(status == native and said.count(b"weft: statistics") == 1 and len(events) > 1
                         and any(x.split()[3] == "spawn" for x in events[1:]),
                         f"{how}: status {status}, natively {native}, {len(events)} lines of events", said)
        status, said, events = under_weft(weft, program, "all", os.path.join(d, "all"))
        good &= tell(os.WTERMSIG(status) == signal.SIGSEGV and said.count(b"weft: statistics") == 1
                     and len(events) > 20 and events[-1].count(" ") == 5,
                     "of many that crash at once one writes, and all of it", said)
        status, said, events = under_weft(weft, program, "exit-too", os.path.join(d, "exit-too"))
        died = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
        left = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7
        good &= tell((died or left) and said.count(b"weft: statistics") == 1 and len(events) > 20,
                     "crashes and exits at once write once, too", said)
        for how in ("recorder", "recorder-exit"):
            status, said, _ = under_weft(weft, program, how, os.path.join(d, how))
            good &= tell(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV
                         and said.count(b"weft: statistics") == 1,
                         f"{how}: who crashes in what is written dies of it", said)
    return not good


sys.exit(main())
