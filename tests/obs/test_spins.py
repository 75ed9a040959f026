# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for each other in loops hand over sooner than threads that compute.

    test_spins.py WEFT SPINS

SPINS waits in two threads for as much of the processor as half a second. Output is TAP.
"""
import os
import re
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60


def preemptions(weft, *command):
    stats = subprocess.run([weft, "run", "--stats", "--workers", "1", "--", *command],
                           stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=True).stderr
    return int(re.search(r"preempt\w* +(\d+)", stats)[1])


def main():
    weft, program = sys.argv[1:3]
    print("1..1")
    # On a busy machine both may be kept waiting for much longer than their slices.
    for _ in range(5):
        computing, waiting = preemptions(weft, program), preemptions(weft, program, "says so")
        good = waiting >= 2 * computing
        if good:
            break
    print(f"{'ok' if good else 'not ok'} 1 - slices ended: {waiting} where they wait, else {computing}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
