#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft run --children=no: the program runs under weft, what it executes does not.

    test_children.py WEFT PROGRAM OTHER    PROGRAM makes threads and exits; OTHER is a library to preload as well
"""

import os
import subprocess
import sys

TUNABLES = "glibc.malloc.arena_max=2"


def run(weft, other, *command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT") or k == "WEFT_LIBRARY"}
    env.update(LD_PRELOAD=other, GLIBC_TUNABLES=TUNABLES)
    done = subprocess.run([weft, "run", "--children=no", "--workers=2", "--stats", "--seed=1", "--", *command],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def main():
    weft, program, other = sys.argv[1:4]
    print("1..3")
    status, _, err = run(weft, other, program)
    itself = status == 0 and "threads made" in err
    print("ok" if itself else "not ok", "1 - the program is under weft")
    status, out, _ = run(weft, other, "sh", "-c", "env")
    env = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    rest = {k for k in env if k.startswith("WEFT_") and k != "WEFT_LIBRARY"}
    left = status == 0 and env.get("LD_PRELOAD") == other and env.get("GLIBC_TUNABLES") == TUNABLES and not rest
    print("ok" if left else "not ok", "2 - the environment is as it was before weft")
    status, _, err = run(weft, other, "sh", "-c", f"'{program}'; exit $?")
    child = status == 0 and "threads made" not in err
    print("ok" if child else "not ok", "3 - the child is not")
    return 0 if itself and left and child else 1


sys.exit(main())
