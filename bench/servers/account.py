# SPDX-License-Identifier: Apache-2.0
"""
What a server and its children used: CPU seconds, context switches, memory; read from /proc.

Used by: run. A process tree is looked at as a whole, because servers fork and because a program under weft has
other kernel threads than it has threads. Switches are those of living kernel threads plus what the kernel
reports of a process at its end, so they are totals over a server's whole life.
"""

import os
from pathlib import Path

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
KERNEL_STACK_KB = 16


def fields_of(pid):
    """The fields of /proc/PID/stat after the name, or None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def tree(root):
    """root and all its living descendants."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = fields_of(entry)
            if fields and fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [root], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def cpu_s(pids):
    """User and system seconds of these processes and of the children that they waited for."""
    total = 0
    for pid in pids:
        fields = fields_of(pid)
        if fields:
            total += sum(int(f) for f in fields[11:15])
    return total * TICK_S


def status(path):
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def memory(pids):
    """Kernel threads; and KiB: private memory, page tables, a kernel stack for each kernel thread."""
    threads = kb = 0
    for pid in pids:
        fields = status(f"/proc/{pid}/status")
        if "Threads" not in fields or "VmRSS" not in fields:
            continue
        nr = int(fields["Threads"][0])
        pss = status(f"/proc/{pid}/smaps_rollup").get("Pss", fields["VmRSS"])
        threads += nr
        kb += int(pss[0]) + int(fields["VmPTE"][0]) + nr * KERNEL_STACK_KB
    return threads, kb
