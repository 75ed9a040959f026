#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that uses the GS base itself is under weft; one that may filter its calls as well runs on plain NPTL, and says so.

    test_base.py WEFT PROGRAM PROGRAM_WITH_FILTERS
"""

import subprocess
import sys

LINE = "weft: running on plain NPTL: it uses the GS base itself, and may filter its own system calls (seccomp)"


def main():
    weft, plain, filters = sys.argv[1:4]
    failed = 0
    print("1..2")
    for i, (program, name, is_native) in enumerate([(plain, "one that uses the base is under weft", False),
                                                    (filters, "one that may filter as well is not", True)], 1):
        done = subprocess.run([weft, "run", "--workers=2", "--stats", "--", program],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False)
        err = done.stderr.decode()
        if done.returncode == 77:
            print(f"ok {i} - {name} # SKIP the processor or kernel has no WRGSBASE")
            continue
        is_good = done.returncode == 0 and is_native == (err.splitlines()[:1] == [LINE]) and \
            is_native != ("threads made    1" in err)
        failed += not is_good
        print("ok" if is_good else "not ok", i, "-", name)
        if not is_good:
            print("#", done.returncode, err.replace("\n", "\n# "))
    return failed


sys.exit(main())
