#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runtime starts as many workers as weft doctor says, also under a quota of a control group, of either version.

    test_quota.py WEFT PROGRAM       PROGRAM makes threads and exits by itself with status 0
"""
import json
import os
import re
import subprocess
import sys

LIMIT_S = 240 if os.environ.get("CI") else 60
QUOTA = {"cpu.max": "100000 100000", "cpu.cfs_quota_us": "100000"}  # one processor


def workers(weft, program):
    """What the runtime has, and what doctor says."""
    run = subprocess.run([weft, "run", "--stats", "--", program], capture_output=True, text=True, timeout=LIMIT_S,
                         check=True)
    doctor = subprocess.run([weft, "doctor", "--json"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    said = [c["value"] for c in json.loads(doctor.stdout)["checks"] if c["id"] == "workers"][0]
    return int(re.search(r"workers +(\d+)", run.stderr)[1]), int(said.split()[0])


def make_group():
    """A group with a quota for our children; or None, where that is not allowed."""
    for base in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"):
        path = os.path.join(base, f"weft-quota-{os.getpid()}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        for name, value in QUOTA.items():
            try:
                with open(os.path.join(path, name), "r+") as f:
                    f.write(value)
                return path
            except OSError:
                pass
        os.rmdir(path)
    return None


def main():
    weft, program = sys.argv[1:3]
    print("1..2")
    has, said = workers(weft, program)
    good = has == said
    print(f"{'ok' if good else 'not ok'} 1 - {has} workers, doctor says {said}")
    group = make_group()
    if not group:
        print("ok 2 - with a quota # SKIP no control group can be made here")
        return not good
    try:
        done = subprocess.run([sys.executable, __file__, "--inside", group, weft, program], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
    finally:
        os.rmdir(group)
    if done.returncode == 77:
        print("ok 2 - with a quota # SKIP no process can be moved there")
        return not good
    good &= done.stdout.split() == ["1", "1"]
    print(f"{'ok' if done.stdout.split() == ['1', '1'] else 'not ok'} 2 - with a quota of one processor both say one")
    print("#", done.stdout.strip(), done.stderr.strip().replace("\n", "\n# "))
    return not good


def inside(group, weft, program):
    try:
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(os.getpid()))
    except OSError:
        return 77
    print(*workers(weft, program))
    return 0


sys.exit(inside(*sys.argv[2:]) if sys.argv[1] == "--inside" else main())
