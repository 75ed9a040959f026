# SPDX-License-Identifier: Apache-2.0
"""Which calls of a program wait without a kernel thread, and which hold one.

    test_waits.py WEFT WAITS [--table]

WAITS starts one thread for every call that can wait for ever. When `weft dump` shows none of them on its way
any more, each must be parked, but for those of HOLD. Output is TAP, or with --table one line per call.
"""
import json
import os
import subprocess
import sys
import time

LIMIT_S = 240 if os.environ.get("CI") else 60

# Calls that nothing but a kernel thread can wait for; docs/limits.md says why.
HOLD = {"open_fifo", "connect_unix", "send_to_unix", "flock", "ofd_lock", "msgrcv", "msgsnd", "semop"}
# But these, where there is io_uring; by default only when many wait.
RING = {"wait4", "waitid", "shared_futex", "shared_vector"}


def state_of(thread):
    """In a call with a worker that has nothing else to do, it needs no kernel thread of its own."""
    return "parked" if thread.get("direct") else "in call" if "call" in thread else thread["state"]


def dump(weft, pid):
    text = subprocess.run([weft, "dump", "--json", str(pid)], stdout=subprocess.PIPE,
                          timeout=LIMIT_S, check=True).stdout
    threads = json.loads(text)["threads"]
    return ({t["name"]: state_of(t)
             for t in threads if t["name"] != "waits"},
            sum(t["name"] == "waits" for t in threads) == 1)


def is_settled(threads):
    """Every call is in its wait: parked, or for good in the kernel with its worker gone."""
    return all(state == "parked" or (state == "in call" and name in HOLD)
               for name, state in threads.items())


def end(victim):
    """Its exit status."""
    victim.stdin.close()
    try:
        return victim.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        victim.kill()
        return "none in time"


def states(weft, program, workers):
    victim = subprocess.Popen([weft, "run", "--workers", str(workers), "--", program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        if victim.stdout.readline() != "ready\n":
            raise SystemExit("Bail out! the program did not start")
        until = time.monotonic() + LIMIT_S
        while True:
            threads, are_all_named = dump(weft, victim.pid)
            if (are_all_named and is_settled(threads)) or time.monotonic() > until:
                break
            time.sleep(0.05)
    finally:
        status = end(victim)
    if status != 0: # it left something behind, for one
        raise SystemExit(f"Bail out! exit status {status}")
    return threads


def has_ring(weft):
    text = subprocess.run([weft, "doctor", "--json"], stdout=subprocess.PIPE, timeout=LIMIT_S).stdout
    return any(c["id"] == "io-uring" and c["level"] == "ok" for c in json.loads(text)["checks"])


def main():
    weft, program = sys.argv[1:3]
    if os.environ.get("WEFT_IO_URING") != "always" or not has_ring(weft):
        HOLD.update(RING)
    if sys.argv[3:] == ["--table"]:
        for name, state in sorted(states(weft, program, 2).items()):
            print(f"{name:16} {state}")
        return 0
    failed = 0
    number = 0
    for workers in (1, 2):
        for name, state in sorted(states(weft, program, workers).items()):
            number += 1
            good = state == "parked" or name in HOLD
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}, {workers} workers: {state}")
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
