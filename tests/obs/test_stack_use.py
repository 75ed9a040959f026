# SPDX-License-Identifier: Apache-2.0
"""`weft dump --stacks` says how much of their stacks threads have used, by the function that they began with.

    test_stack_use.py WEFT USES_STACK

Output is TAP.
"""
import json
import os
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
KIB = 1024
nr = 0


def tell(good, what, said=""):
    global nr
    nr += 1
    for line in [] if good else said.splitlines()[:30]:
        print("#", line)
    print(f"{'ok' if good else 'not ok'} {nr} - {what}", flush=True)
    return good


def dump(weft, *args):
    return subprocess.run([weft, "dump", "--stacks", *map(str, args)], capture_output=True, text=True,
                          timeout=LIMIT_S, check=False)


def look(weft, program, count):
    """What is said of a process with so many shallow threads: JSON, text."""
    with subprocess.Popen([weft, "run", "--workers", "2", "--", program, str(count)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            return dump(weft, "--json", process.pid), dump(weft, process.pid)
        finally:
            process.stdin.close()
            process.wait(LIMIT_S)


def main():
    weft, program = sys.argv[1:3]
    print("1..5")
    said, text = look(weft, program, 5)
    found = json.loads(said.stdout) if said.returncode == 0 else {"stacks": []}
    by_start = {s["start"]: s for s in found["stacks"]}
    shallow, deep, own = (by_start.get(n) for n in ("is_shallow", "is_deep", "main"))
    good = bool(shallow and deep and own) and found["nr_threads"] == 9 and found["nr_unknown"] == 0
    good = tell(good and shallow["threads"] == 5 and deep["threads"] == 3 and own["threads"] == 1,
                "threads are counted by the function that they began with", said.stdout + said.stderr)
    if good:
        good &= tell(300 * KIB <= deep["used_bytes"] <= 340 * KIB and shallow["used_bytes"] <= 32 * KIB
                     and 1000 * KIB <= deep["size_bytes"] <= 1032 * KIB and shallow["size_bytes"] <= 72 * KIB,
                     "what they used is what they touched", said.stdout)
        good &= tell(deep["proposed_bytes"] >= 2 * deep["used_bytes"] and shallow["proposed_bytes"] == 64 * KIB
                     and all(s["proposed_bytes"] % (16 * KIB) == 0 for s in found["stacks"]),
                     "twice that is proposed", said.stdout)
    good &= tell(text.returncode == 0 and "is_deep" in text.stdout and "from" in text.stdout, "as text", text.stdout)
    said, _ = look(weft, program, 8300)
    groups = [s for s in json.loads(said.stdout)["stacks"] if s["start"] == "is_shallow"] if said.returncode == 0 else []
    good &= tell(sum(s["threads"] for s in groups) == 8300 and all(s["used_bytes"] <= 32 * KIB for s in groups),
                 "a guard inside a mapping is not taken for use", said.stdout + said.stderr)
    return not good


sys.exit(main())
