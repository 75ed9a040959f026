# SPDX-License-Identifier: Apache-2.0
"""An event loop that is alone waits in the kernel as it would natively, not in two system calls more.

    test_direct.py WEFT PROGRAM

PROGRAM serves a peer for thousands of rounds, with nothing else to do. Output is TAP.
"""
import os
import re
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
ROUNDS = 2000


def direct_waits(weft, program, workers):
    stats = subprocess.run([weft, "run", "--stats", "--workers", str(workers), "--", program],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           timeout=LIMIT_S, check=True, env={**os.environ}).stderr
    return int(re.search(r"direct waits +(\d+)", stats)[1])


def main():
    weft, program = sys.argv[1:3]
    print("1..2")
    # Another worker may be awake at some of them; on a busy machine it may take as long as all of them to begin.
    for _ in range(5):
        several = direct_waits(weft, program, 2)
        good = several > ROUNDS / 10
        if good:
            break
    print(f"{'ok' if good else 'not ok'} 1 - beside a worker that sleeps: {several} of {ROUNDS}")
    alone = direct_waits(weft, program, 1)
    print(f"{'ok' if not alone else 'not ok'} 2 - never instead of the only one: {alone}")
    return not good or alone != 0


if __name__ == "__main__":
    sys.exit(main())
