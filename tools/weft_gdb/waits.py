# SPDX-License-Identifier: Apache-2.0
"""Waits for mutexes, ends of threads and tasks, with their owners."""
import struct
import time

import gdb

from .memory import read


def seconds(ns):
    return f"{ns / 1e9:.1f} s" if ns < 100e9 else f"{ns / 60e9:.0f} min"


class Waits:
    """Who waits for whom, over mutexes and joins, as `weft dump` sees it."""

    MUTEX = struct.Struct("=IIIIi")  # libc's: lock word, count, owner, number of users, kind

    def __init__(self, rt):
        self.threads = list(rt.threads())
        self.by_tid = {t.tid: t for t in self.threads}
        self.by_child_tid = {t.child_tid: t for t in self.threads if t.child_tid}
        self.mutexes = {}
        self.tasks = rt.tasks()
        self.fibers = rt.fibers()
        self.takers = {}
        for tid, (_, forker) in self.tasks.items():
            if forker and tid in self.by_tid:
                self.takers.setdefault(forker, []).append(self.by_tid[tid].name)
        connection = getattr(gdb.selected_inferior(), "connection", None)
        is_live = connection is not None and connection.type == "native"
        # A core does not say when it was made; the runtime's own clock is at most a little older.
        self.now = time.monotonic_ns() if is_live else rt.field(rt.roots["wf_runtime"], "wf_runtime.coarse_now")

    def holder(self, address):
        """The thread that has the mutex there, if it is one."""
        if address not in self.mutexes:
            try:
                lock, _, owner, users, kind = self.MUTEX.unpack(read(address, self.MUTEX.size))
            except gdb.MemoryError:
                lock = owner = users = kind = 0
            is_held = lock and owner and users and 0 <= kind < 1024
            self.mutexes[address] = self.by_tid.get(owner) if is_held else None
        return self.mutexes[address]

    def joined(self, t):
        return self.by_child_tid.get(t.what) if t.is_at_futex() else None

    def owner(self, t):
        return self.joined(t) or (self.holder(t.what) if t.is_at_futex() else None)

    def age(self, t):
        return self.now - t.since if t.since and self.now > t.since and t.state in ("parked", "parking") else None

    def words(self, t):
        return t.words() + self.more(t) + f"; {t.nr_switches} switches, {t.run_ns / 1e6:.0f} ms of CPU time"

    def more(self, t):
        """Of its wait, its tasks and its fibers."""
        line, owner, age = "", self.owner(t), self.age(t)
        if owner and self.joined(t):
            line += f': end of thread {owner.tid} "{owner.name}"'
        elif owner:
            line += f': mutex held by thread {owner.tid} "{owner.name}"'
        if age is not None:
            line += f", for {seconds(age)}"
        return line + self.tasks_words(t) + self.fibers_words(t)

    def fibers_words(self, t):
        nr, running = self.fibers.get(t.tid, (0, None))
        if not nr:
            return ""
        return "; " + (f"in fiber {running} of " if running else "") + f"{nr} fiber{'' if nr == 1 else 's'}"

    def tasks_words(self, t):
        waiting, forker = self.tasks.get(t.tid, (0, 0))
        takers = self.takers.get(t.tid, [])
        nr, words = waiting + len(takers), ""
        if nr:
            words = f"; {nr} task{'' if nr == 1 else 's'} forked"
        if takers:
            words += f", {len(takers)} stolen by {', '.join(takers[:4])}"
        if len(takers) > 4:
            words += f" and {len(takers) - 4} more"
        if forker in self.by_tid:
            words += f'; at a task of thread {forker} "{self.by_tid[forker].name}"'
        return words

    def circles(self):
        """Each waits for one other at most, so that walks end in a circle or nowhere; a mark says in which walk."""
        walk = {}
        for first in self.threads:
            t, path = first, []
            while t and t.tid not in walk:
                walk[t.tid] = first.tid
                path.append(t)
                t = self.owner(t)
            if t and walk[t.tid] == first.tid:
                yield path[path.index(t):]
