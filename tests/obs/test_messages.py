# SPDX-License-Identifier: Apache-2.0
"""Who always finds a message lets others run, whichever call it is received with.

    test_messages.py WEFT MESSAGES

MESSAGES counts the turns of another thread beside three families of calls. Output is TAP.
"""
import os
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
FAMILIES = ("recv", "recvmsg", "recvmmsg")


def main():
    weft, program = sys.argv[1:3]
    print("1..1")
    # Turns go by the clock: on a busy machine those of one family may be few.
    for _ in range(5):
        out = subprocess.run([weft, "run", "--workers", "1", "--", program], stdout=subprocess.PIPE,
                             text=True, timeout=LIMIT_S, check=True).stdout
        turns = [int(n) for n in out.split()]
        good = len(turns) == 3 and min(turns) > 0 and 3 * min(turns) >= max(turns)
        if good:
            break
    print(f"{'ok' if good else 'not ok'} 1 - turns of another thread: "
          + ", ".join(f"{n} beside {f}" for n, f in zip(turns, FAMILIES)))
    return not good


if __name__ == "__main__":
    sys.exit(main())
