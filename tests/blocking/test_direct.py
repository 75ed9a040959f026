# SPDX-License-Identifier: Apache-2.0
"""An event loop that is alone waits in the kernel as it would natively, not in two system calls more.

    test_direct.py WEFT PROGRAM

PROGRAM serves a peer for thousands of rounds, with nothing else to do; with an argument beside a thread that waits for a
descriptor. Output is TAP.
"""
import os
import re
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
ROUNDS = 2000


def direct_waits(weft, workers, *program):
    stats = subprocess.run([weft, "run", "--stats", "--workers", str(workers), "--", *program],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           timeout=LIMIT_S, check=True, env={**os.environ}).stderr
    return int(re.search(r"direct waits +(\d+)", stats)[1])


def many(*args):
    """Other work may be about at some of the rounds; on a busy machine it may take as long as all of them to begin."""
    for _ in range(5):
        nr = direct_waits(*args)
        if nr > ROUNDS / 10:
            break
    return nr > ROUNDS / 10, nr


def main():
    weft, program = sys.argv[1:3]
    results = []
    for text, (good, nr) in (
            ("beside a worker that sleeps", many(weft, 2, program, "beside")),
            ("while nobody else waits for a descriptor", many(weft, 2, program)),
            ("also with the only worker", many(weft, 1, program))):
        results.append((good, f"{text}: {nr} of {ROUNDS}"))
    nr = direct_waits(weft, 1, program, "beside")
    results.append((nr == 0, f"not with the only worker beside one that does: {nr}"))
    print(f"1..{len(results)}")
    for number, (good, text) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {text}")
    return not all(good for good, _ in results)


if __name__ == "__main__":
    sys.exit(main())
