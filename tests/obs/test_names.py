# SPDX-License-Identifier: Apache-2.0
"""Kernel threads say what they are; who dies has the name of its thread.

    test_names.py WEFT WAITERS CRASHES

Output is TAP.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

LIMIT_S = 240 if os.environ.get("CI") else 60
CARRIER = re.compile(r"^weft/\d+:w[aiters]*$")
nr = 0


def tell(good, what, said=""):
    global nr
    nr += 1
    if not good:
        print("#", said)
    print(f"{'ok' if good else 'not ok'} {nr} - {what}", flush=True)
    return good


def names_of(pid):
    """By kernel thread; one may just be ending."""
    found = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as f:
                found[int(tid)] = f.read().strip()
        except OSError:
            pass
    return found


def of_a_program(weft, program):
    with subprocess.Popen([weft, "run", "--workers", "2", "--", program], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            names = names_of(process.pid)
        finally:
            process.stdin.close()
            process.wait(LIMIT_S)
    own = names.pop(process.pid)
    return tell(own == "waiters" and len(names) >= 2 and all(CARRIER.match(n) or n.startswith("weft-") for n in names.values())
                and any(CARRIER.match(n) for n in names.values()),
                "the process has its name, its kernel threads say that they are weft's", f"{own} {names}")


def full_fifo(name):
    """Its reader; who writes to it waits."""
    os.mkfifo(name)
    reader = os.open(name, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(name, os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while os.write(writer, bytes(size)):
                pass
        except BlockingIOError:
            pass
    os.close(writer)
    os.set_blocking(reader, True)
    return reader


def of_one_that_dies(weft, program, how, signal):
    """The events go to a FIFO that is full: so it stands still at its end."""
    with tempfile.TemporaryDirectory(prefix="weft-names-") as d:
        os.chdir(d)  # where a core may go
        fifo = os.path.join(d, "events")
        reader = full_fifo(fifo)
        with subprocess.Popen([weft, "run", "--workers", "2", "--trace", fifo, "--", program, how],
                              stderr=subprocess.DEVNULL) as process:
            deadline = time.monotonic() + LIMIT_S
            names = {}
            while "dying" not in names.values() and time.monotonic() < deadline and process.poll() is None:
                names = names_of(process.pid)
            while os.read(reader, 1 << 16):
                pass
            os.close(reader)
            status = process.wait(LIMIT_S)
        os.chdir("/")
    return tell("dying" in names.values() and status == -signal, f"{how}: who dies has the name of its thread",
                f"{status} {names}")


def main():
    weft, waiters, crashes = map(os.path.abspath, sys.argv[1:4])
    print("1..3")
    good = of_a_program(weft, waiters)
    good &= of_one_that_dies(weft, crashes, "segv", 11)
    good &= of_one_that_dies(weft, crashes, "abort", 6)
    return not good


sys.exit(main())
