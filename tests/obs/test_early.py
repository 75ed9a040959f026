#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that makes its first thread before all constructors is under weft.

    test_early.py WEFT PROGRAM
"""

import subprocess
import sys


def main():
    weft, program = sys.argv[1:3]
    done = subprocess.run([weft, "run", "--workers=2", "--stats", "--", program],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, check=False)
    err = done.stderr.decode()
    under = done.returncode == 0 and "threads made" in err and "plain NPTL" not in err
    print("1..1")
    print("ok" if under else "not ok", "1 - a program with early threads is under weft")
    if not under:
        print("#", done.returncode, err.replace("\n", "\n# "))
    return 0 if under else 1


sys.exit(main())
