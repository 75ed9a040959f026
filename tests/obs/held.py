# SPDX-License-Identifier: Apache-2.0
"""What the descriptors of a process are, which opens and closes them meanwhile."""
import os
import re


def fd_infos(pid):
    """What the kernel says of each; nothing of one that is closed meanwhile."""
    infos = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                infos[fd] = f.read()
        except OSError:
            continue
    return infos


def held_by(pid):
    """The processes whose end wakes it, and that it has not waited for. A descriptor alone may be closed again at once."""
    pids, woken_by = {}, set()
    for fd, text in fd_infos(pid).items():
        pids |= {fd: int(other) for other in re.findall(r"^Pid:\t(\d+)$", text, re.M)}
        woken_by |= set(re.findall(r"^tfd: +(\d+) ", text, re.M))
    return {other for fd, other in pids.items() if fd in woken_by}
