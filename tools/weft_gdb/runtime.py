# SPDX-License-Identifier: Apache-2.0
"""The program's runtime and threads, read as the library describes itself (src/obs/inspect.h)."""
import struct
import time

import gdb

from .description import find_description
from .memory import Clock, LIMIT_S, read, text, word, words

MAGIC = b"weftview"
VERSION = 3
FIELD = struct.Struct("=40sII")
VALUE = struct.Struct("=8s24sQ")
ROOT = struct.Struct("=40sQ")
HEAD = struct.Struct("=8sIIIIQQQ")
MAX_ROWS = 4096
MAX_SLOTS = 1 << 20
CHUNK_SLOTS = 1024

MAX_STRUCTURE = 1 << 20
MAX_CHUNK = 4 << 20

SWITCH_REGISTERS = "rbx r12 r13 r14 r15 rbp rip".split()
UCONTEXT_REGISTERS = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip".split()


class Runtime:
    """The layout, and objects read by it."""

    def __init__(self):
        Clock.until = time.monotonic() + LIMIT_S
        address = find_description()
        magic, version, nr_fields, nr_values, nr_roots, fields, values, roots = HEAD.unpack(
            read(address, HEAD.size))
        if magic != MAGIC:
            raise gdb.GdbError("weft's description of itself cannot be read")
        if version != VERSION:
            raise gdb.GdbError(f"the program's weft has layout version {version}, "
                               f"this script knows version {VERSION}")
        self.fields = {text(n): (o, s) for n, o, s in self.rows(FIELD, fields, nr_fields)}
        for field, (offset, size) in self.fields.items():
            within = self.fields.get(field.split(".")[0], (0, MAX_STRUCTURE))[1]
            if within > MAX_STRUCTURE or offset + size > within:
                raise gdb.GdbError(f"the program has another build of weft, or describes itself wrongly: {field}")
        self.values = {(text(s), v): text(n) for s, n, v in self.rows(VALUE, values, nr_values)}
        self.roots = {text(n): a for n, a in self.rows(ROOT, roots, nr_roots)}
        if not self.field(self.roots["wf_runtime"], "wf_runtime.started"):
            raise gdb.GdbError("weft has not begun: the program has made no thread yet")

    @staticmethod
    def rows(row, address, nr):
        nr = min(nr, MAX_ROWS)
        return list(row.iter_unpack(read(address, row.size * nr)))

    def name(self, what, value):
        return self.values.get((what, value), "?")

    def constant(self, name):
        return next((value for (what, value), known in self.values.items() if what == "const" and known == name), 0)

    def offset(self, field):
        try:
            return self.fields[field]
        except KeyError:
            raise gdb.GdbError(f"the program has another build of weft, without {field}")

    def field(self, address, field):
        offset, size = self.offset(field)
        return int.from_bytes(read(address + offset, min(size, 8)), "little")

    def get(self, raw, field, base=0):
        offset, size = self.offset(field)
        offset += base
        return int.from_bytes(raw[offset:offset + min(size, 8)], "little")

    def threads(self):
        table = self.roots["wf_thread_table"]
        slots = self.field(table, "wf_thread_table.slots")
        nr_bytes = self.field(table, "wf_thread_table.object_bytes")
        nr = min(self.field(table, "wf_thread_table.nr_slots"), MAX_SLOTS)
        if not self.offset("lx_thread")[1] <= nr_bytes <= MAX_STRUCTURE:
            raise gdb.GdbError("the program describes itself wrongly: the size of a thread")
        at_once = min(CHUNK_SLOTS, MAX_CHUNK // nr_bytes)
        for first in range(0, nr, at_once):
            raw = read(slots + first * nr_bytes, min(nr - first, at_once) * nr_bytes)
            for at in range(0, len(raw), nr_bytes):
                t = Thread(self, slots + first * nr_bytes + at, raw[at:at + nr_bytes])
                if t.state not in ("free", "dead") and (t.state, t.wait) != ("parked", "unused"):
                    yield t

    def thread(self, tid):
        for t in self.threads():
            if t.tid == tid:
                return t
        raise gdb.GdbError(f"weft knows no thread {tid}; see 'info weft'")

    def kthreads(self):
        rt = self.roots["wf_runtime"]
        at = self.field(rt, "wf_runtime.kthreads")
        nr = self.field(rt, "wf_runtime.nr_kthreads")
        return [word(at + i * 8) for i in range(min(nr, MAX_ROWS))]

    def tasks(self):
        """Of each thread that has or runs some: (how many wait for somebody who calls them, whose task it is at or 0)."""
        found, seen = {}, set()
        root = self.roots.get("wf_tasks")
        at = word(root) if root and "wf_tasks.runs_of" in self.fields else 0
        while at and at not in seen and len(seen) < MAX_SLOTS:
            seen.add(at)
            try:
                top, bottom = (word(self.field(at, "wf_tasks." + end)) for end in ("top", "bottom"))
                waiting = bottom - top if 0 <= bottom - top < 1 << 30 else 0
                found[self.field(at, "wf_tasks.tid")] = waiting, self.field(at, "wf_tasks.runs_of")
                at = self.field(at, "wf_tasks.next")
            except gdb.MemoryError:
                break
        return found

    def fibers(self):
        """Of each thread that has some: (how many, the name of the one that it is in or None)."""
        found, seen = {}, set()
        root = self.roots.get("wf_fibers")
        at = word(root) if root and "wf_fiber_shown.name" in self.fields else 0
        while at and at not in seen and len(seen) < MAX_SLOTS:
            seen.add(at)
            try:
                if self.field(at, "wf_fibers.tid"):
                    found[self.field(at, "wf_fibers.tid")] = self.fibers_of(at)
                at = self.field(at, "wf_fibers.next")
            except gdb.MemoryError:
                break
        return found

    def fibers_of(self, record):
        owner, page = self.field(record, "wf_fibers.id"), self.field(record, "wf_fibers.page")
        nr, running, seen, size = 0, None, set(), self.offset("wf_fiber_shown")[1]
        while page and page not in seen and len(seen) < MAX_ROWS:
            seen.add(page)
            count = min(self.field(page, "wf_fibers_page.nr"), MAX_SLOTS)
            places = words(page + self.offset("wf_fibers_page")[1], f"={count}Q")
            for f in (place for place in places if place and not place & 1):
                raw = read(f, size)
                if self.get(raw, "wf_fiber_shown.home_id") != owner:
                    continue
                nr += 1
                if self.name("fiber", self.get(raw, "wf_fiber_shown.state")) == "running":
                    running = self.fiber_name(f)
            page = self.field(page, "wf_fibers_page.next")
        return nr, running

    def fiber_name(self, fiber):
        name = self.field(fiber, "wf_fiber_shown.name")
        try:
            return f'"{text(read(name, 32))}"' if name else hex(fiber)
        except gdb.MemoryError:
            return hex(fiber)

    def workers(self):
        rt = self.roots["wf_runtime"]
        at = self.field(rt, "wf_runtime.workers")
        nr = self.field(rt, "wf_runtime.nr_workers")
        size = self.offset("wf_worker")[1]
        return [at + i * size for i in range(min(nr, MAX_ROWS))]


class Thread:
    def __init__(self, rt, address, raw):
        def get(field):
            return rt.get(raw, "wf_thread." + field)

        name_at, name_bytes = rt.offset("lx_thread.name")
        self.rt = rt
        self.address = address
        self.tid = get("tid")
        self.state = rt.name("state", get("state") & 0xff)
        self.wait = rt.name("wait", get("wait_kind"))
        self.what = get("wait_what")
        self.is_preempted = bool(get("is_preempted"))
        self.sp = get("sp")
        self.since = get("wait_since")
        self.nr_switches = get("nr_switches")
        self.run_ns = get("run_ns")
        self.child_tid = rt.get(raw, "lx_thread.child_tid")
        self.scopes = get("scopes") if "wf_thread.scopes" in rt.fields else 0
        self.name = text(raw[name_at:name_at + name_bytes])
        self.kernel_tid = 0
        k = get("kthread")
        if k and rt.field(k, "wf_kthread.cur") == address:
            self.kernel_tid = rt.field(k, "wf_kthread.tid")

    def words(self):
        return f"{self.tid:>9}  {self.name:15}  {self.doing()}"

    def doing(self):
        if self.kernel_tid:
            return f"{self.state} on kernel thread {self.kernel_tid}"
        if self.state in ("parked", "parking"):
            what = hex(self.what) if self.wait in ("futex", "event", "group") else str(self.what)
            if self.wait == "sleep":
                return f"{self.state}, sleeps"
            if self.wait in ("recv", "send"):
                return f"{self.state}, {'receives from' if self.wait == 'recv' else 'sends to'} {self.channel()}"
            if self.wait == "signal":
                what = ""
            if self.wait == "select":
                what = f"over {what}"
            return f"{self.state}, waits for {self.wait} {what}".rstrip()
        return self.state + (", preempted" if self.is_preempted else "")

    def channel(self):
        """That it waits for. Its name is the program's memory, and may be anything, or nowhere."""
        try:
            name = self.rt.field(self.what, "wf_chan.name")
            return "channel " + (text(read(name, 64)) if name else hex(self.what))
        except gdb.error:
            return f"channel {hex(self.what)}"

    def is_at_futex(self):
        return self.state == "parked" and self.wait == "futex" and self.what != 0

    def registers(self):
        """Of a thread that is on no CPU."""
        if self.is_preempted:
            uc = self.rt.field(self.sp, "wf_resume.uc")
            return {name: self.rt.field(uc, "wf_ucontext." + name) for name in UCONTEXT_REGISTERS}
        registers = {name: self.rt.field(self.sp, "wf_switch_frame." + name) for name in SWITCH_REGISTERS}
        registers["rsp"] = self.sp + self.rt.offset("wf_switch_frame")[1]
        return registers
