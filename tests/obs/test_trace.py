#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft run --trace FILE writes the events of the scheduler when the program ends.

    test_trace.py WEFT PROGRAM       PROGRAM makes threads and exits by itself with status 0
"""

import os
import re
import subprocess
import sys
import tempfile

LINE = re.compile(r"^\d+ \d+ \d+ [a-z]+ 0x[0-9a-f]+ 0x[0-9a-f]+$")


def main():
    weft, program = sys.argv[1:3]
    print("1..2")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "events")
        run = subprocess.run([weft, "run", "--workers", "2", "--trace", path, "--", program],
                             stdout=subprocess.DEVNULL, timeout=240, check=False)
        lines = open(path).read().splitlines() if os.path.exists(path) else []
        good = run.returncode == 0 and all(LINE.match(x) for x in lines[1:])
        seen = {x.split()[3] for x in lines[1:] if len(x.split()) == 6}
        whole = good and {"spawn", "run", "exit"} <= seen
        print(("ok" if whole else "not ok"), "1 - events are written, one line each")
        bad = subprocess.run([weft, "run", "--", program],
                             env={**os.environ, "WEFT_TRACE": os.path.join(d, "no", "file")},
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=240, check=False)
        told = bad.returncode == 0 and b"cannot be written" in bad.stderr
        print(("ok" if told else "not ok"), "2 - a file that cannot be written costs one line, not the program")
    return 0 if whole and told else 1


sys.exit(main())
