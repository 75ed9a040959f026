# SPDX-License-Identifier: Apache-2.0
"""A filter that weft's own kernel threads cannot live under is not set for them, and one line says so each time.

    test_outside.py WEFT PROGRAM

PROGRAM sets one when it has one thread left, and goes on; so does a child of it before, where nobody may write then.
Output is TAP.
"""
import os
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
LINE = ("weft: its own kernel threads stay outside of the program's sandbox: "
        "its filter forbids what they need")


def main():
    weft, program = sys.argv[1:3]
    print("1..1")
    run = subprocess.run([weft, "run", "--", program], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    good = run.returncode == 0 and run.stderr.splitlines() == [LINE, LINE]
    print(f"{'ok' if good else 'not ok'} 1 - one line says who stays outside")
    if not good:
        print(f"# exit status {run.returncode}, standard error: {run.stderr!r}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
