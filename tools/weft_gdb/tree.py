# SPDX-License-Identifier: Apache-2.0
"""Groups and scopes."""
import gdb

from .memory import read, text
from .runtime import Thread
from .waits import Waits, seconds


class Scope:
    """That it lies in, or a group's."""
    NEVER = (1 << 63) - 1

    def __init__(self, rt, address):
        state = rt.field(address, "wf_scope.state")
        deadline = rt.field(address, "wf_scope.deadline")
        self.address, self.owner = address, rt.field(address, "wf_scope.owner")
        self.outer = rt.field(address, "wf_scope.outer")
        self.deadline = deadline if deadline < self.NEVER else None
        self.is_cancelled = bool(state & rt.constant("scope_cancelled"))
        self.is_shield = bool(state & rt.constant("scope_shield"))
        name = rt.field(address, "wf_scope.name")
        try:
            self.name = text(read(name, 32)) if name else ""
        except gdb.MemoryError:
            self.name = ""

    def named(self, kind):
        return f"{kind} {self.name}" if self.name else f"{kind} without a name"


def left(now, deadline):
    return f"{seconds(deadline - now)} left" if deadline > now else f"over for {seconds(now - deadline)}"


class Tree:
    """Groups and scopes, as `weft dump --tree` shows them."""
    MOST_GROUPS, MOST_CHAIN, MOST_INDENT = 1 << 16, 64, 24

    def __init__(self, rt):
        if "wf_group.policy" not in rt.fields:
            raise gdb.GdbError("this weft does not tell of groups and scopes")
        self.rt, self.waits = rt, Waits(rt)
        self.below, self.waiters = {}, {}
        self.owners = groups = {g: t for t in self.waits.threads if t.scopes for g in self.opened(t.scopes)}
        for t in self.waits.threads:
            group = self.field(t.scopes, "wf_scopes.group") if t.scopes else 0
            if group:
                groups.setdefault(group, None)
            self.below.setdefault(group, []).append(t)
            if t.state == "parked" and t.wait == "group":
                self.waiters[t.what] = t
        self.groups_of = {}
        for g, owner in groups.items():
            self.groups_of.setdefault(owner and owner.tid, []).append(g)

    def field(self, address, field):
        try:
            return self.rt.field(address, field)
        except gdb.MemoryError:
            return 0

    def opened(self, scopes):
        head = scopes + self.rt.offset("wf_scopes.groups")[0]
        at, seen = self.field(head, "wf_list.next"), set()
        while at and at != head and at not in seen and len(seen) < self.MOST_GROUPS:
            seen.add(at)
            yield at - self.rt.offset("wf_group.link")[0]
            at = self.field(at, "wf_list.next")

    def scope_of(self, g):
        return Scope(self.rt, g + self.rt.offset("wf_group.scope")[0])

    def group_words(self, g):
        rt, now = self.rt, self.waits.now
        scope = self.scope_of(g)
        line = scope.named("group") + f": {rt.name('policy', rt.field(g, 'wf_group.policy'))}, {rt.field(g, 'wf_group.nr')} left"
        if rt.field(g, "wf_group.limit"):
            line += f", at most {rt.field(g, 'wf_group.limit')}"
        if scope.is_cancelled:
            line += ", cancelled"
        if scope.deadline is not None:
            line += (", " if scope.deadline > now else ", time ") + left(now, scope.deadline)
        if self.owners[g] is None:
            line += ", of a thread that is not shown"
        return line + (f", thread {self.waiters[g].tid} waits for it" if g in self.waiters else "")

    def reach(self, t):
        """(its innermost scope or None, the earliest deadline that counts or None, whether one that counts is cancelled)"""
        own, until, is_cancelled, counts = None, None, False, True
        at, base = (self.field(t.scopes, f"wf_scopes.{end}") for end in ("top", "base")) if t.scopes else (0, 0)
        is_own = True
        for _ in range(self.MOST_CHAIN):
            is_own = is_own and at != base
            if not at or not (is_own or counts):
                break
            try:
                scope = Scope(self.rt, at)
            except gdb.MemoryError:
                break
            if is_own and scope.owner != t.scopes:
                break  # something else lies there by now
            if counts and scope.deadline is not None:
                until = min(until or scope.deadline, scope.deadline)
            is_cancelled |= counts and scope.is_cancelled
            counts = counts and not scope.is_shield
            own = own or (scope if is_own else None)
            at = scope.outer
        return own, until, is_cancelled

    def thread_words(self, t):
        own, until, is_cancelled = self.reach(t)
        is_over = is_cancelled or (until is not None and until <= self.waits.now)
        line = t.doing() + self.waits.more(t)
        if t.what in self.owners and t.wait == "group":
            line = line.replace(f"group {t.what:#x}", self.scope_of(t.what).named("group"))
        if own or is_over:
            end = "cancelled" if is_cancelled else left(self.waits.now, until) if until is not None else ""
            line += "; " + ": ".join(part for part in (own and own.named("scope"), end) if part)
        return f'thread {t.tid} "{t.name}": {"OVERDUE, " if is_over and t.state == "parked" else ""}{line}'

    def lines(self):
        """Without a stack of ours, and each once: the depth is the program's choice."""
        seen, todo = set(), [(0, t) for t in reversed(self.below.get(0, []))]
        todo[:0] = [(0, g) for g in self.groups_of.get(None, [])]
        rest = [(0, t) for t in self.waits.threads]  # those on a circle, which only a program that lies has
        while todo or rest:
            depth, node = todo.pop() if todo else rest.pop()
            is_thread = isinstance(node, Thread)
            if (is_thread, node.tid if is_thread else node) in seen:
                continue
            seen.add((is_thread, node.tid if is_thread else node))
            below = self.groups_of.get(node.tid, []) if is_thread else self.below.get(node, [])
            try:
                line = self.thread_words(node) if is_thread else self.group_words(node)
            except gdb.MemoryError:
                line = node.words().strip() if is_thread else f"group at {node:#x}, which cannot be read"
            yield "  " * min(depth, self.MOST_INDENT) + line
            todo += [(depth + 1, b) for b in reversed(below)]
