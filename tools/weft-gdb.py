# SPDX-License-Identifier: Apache-2.0
"""The threads of a program under weft, in gdb: live or from a core file.

    (gdb) source weft-gdb.py
    info weft             every thread: state, what it waits for
    weft threads [TEXT]   the same with owners, times and switches; only lines with that text
    weft tree             groups below the threads that opened them, threads below their groups, with their scopes
    weft locks            mutexes that threads wait for, who holds them, and circles of those
    weft workers          workers and kernel threads
    weft bt TID           the stack of one thread
    weft apply all bt     the stacks of all
    weft thread TID bt    the same, and so with other commands: weft thread TID bt full, frame 2, info locals
    weft thread TID       go to a thread: bt, frame, up, info locals then show that one
    weft thread off       back to what gdb itself shows

Needs no headers and no debug information of weft: the library's symbol weft_inspect says where everything
is (src/obs/inspect.h). Nothing is written into the program and no register is changed, so core files work
alike: a thread that is not on a CPU is shown as the caller of gdb's current frame, by an unwinder of ours.
"""
import re
import struct
import time

import gdb
import gdb.unwinder

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
MAX_FRAMES = 256
LIMIT_S = 60  # for the reads of one command: the program may be somebody's who wants to keep us

SWITCH_REGISTERS = "rbx r12 r13 r14 r15 rbp rip".split()
UCONTEXT_REGISTERS = "r8 r9 r10 r11 r12 r13 r14 r15 rdi rsi rbp rbx rdx rax rcx rsp rip".split()


class Clock:
    """When the command that runs must have read all."""
    until = 0


def read(address, nr):
    if time.monotonic() > Clock.until:
        raise gdb.GdbError(f"gave up: reading the program's threads took more than {LIMIT_S} s")
    return bytes(gdb.selected_inferior().read_memory(address & 0xffffffffffffffff, nr))


def clean(name):
    """Without what a terminal would obey: names are the program's, and may be anything."""
    return "".join(c if c.isprintable() else "?" for c in name)


def text(raw):
    return clean(raw.split(b"\0")[0].decode("utf-8", "replace"))


def words(address, layout):
    return struct.unpack(layout, read(address, struct.calcsize(layout)))


def dynamic_symbol(start, name):
    """Address of a symbol of the object whose file begins at start, by its own hash table; None: it has none."""
    ident, phoff, phentsize, phnum = words(start, "=5s27xQ14xHH")
    if ident != b"\x7fELF\2" or phentsize != 56 or phnum > 64:
        return None
    base, dynamic, found = None, None, {}
    for i in range(phnum):
        kind, vaddr = words(start + phoff + i * phentsize, "=I12xQ")
        if kind == 1 and base is None:
            base = start - (vaddr & -4096)
        elif kind == 2:
            dynamic = vaddr
    for i in range(256 if base is not None and dynamic is not None else 0):
        tag, value = words(base + dynamic + i * 16, "=QQ")
        if tag == 0:
            break
        found[tag] = value if value >= base else base + value
    if not {5, 6, 0x6ffffef5} <= set(found):
        return None
    table = found[0x6ffffef5]
    nr_buckets, first, nr_bloom = words(table, "=III")
    code = 5381
    for c in name:
        code = (code * 33 + c) & 0xffffffff
    buckets = table + 16 + nr_bloom * 8
    index = words(buckets + code % nr_buckets * 4, "=I")[0] if nr_buckets else 0
    for i in range(index, index + 1000 if index >= first else index):
        chain = words(buckets + (nr_buckets + i - first) * 4, "=I")[0]
        at, section, value = words(found[6] + i * 24, "=I2xHQ")
        if chain | 1 == code | 1 and section and read(found[5] + at, len(name) + 1) == name + b"\0":
            return base + value
        if chain & 1:
            break
    return None


def find_description():
    """Where weft_inspect is: by the memory of the library, whose file may be another one by now; else as gdb knows."""
    row = re.compile(r"\s*0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x[0-9a-f]+\s+0x0\s.*/libweft[^/]*$")
    try:
        mappings = gdb.execute("info proc mappings", to_string=True).splitlines()
    except gdb.error:
        mappings = []
    for m in [m for m in map(row.match, mappings) if m][:64]:
        try:
            address = dynamic_symbol(int(m.group(1), 16), b"weft_inspect")
        except gdb.MemoryError:
            continue  # a core may lack that part
        if address:
            return address
    try:
        return int(gdb.parse_and_eval("(unsigned long)&weft_inspect"))
    except gdb.error:
        raise gdb.GdbError("this program runs without weft: its threads are gdb's own")


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
        return [int.from_bytes(read(at + i * 8, 8), "little") for i in range(min(nr, MAX_ROWS))]

    def tasks(self):
        """Of each thread that has or runs some: (how many wait for somebody who calls them, whose task it is at or 0)."""
        found, seen = {}, set()
        root = self.roots.get("wf_tasks")
        at = int.from_bytes(read(root, 8), "little") if root and "wf_tasks.runs_of" in self.fields else 0
        while at and at not in seen and len(seen) < MAX_SLOTS:
            seen.add(at)
            try:
                top, bottom = (int.from_bytes(read(self.field(at, "wf_tasks." + end), 8), "little") for end in ("top", "bottom"))
                waiting = bottom - top if 0 <= bottom - top < 1 << 30 else 0
                found[self.field(at, "wf_tasks.tid")] = waiting, self.field(at, "wf_tasks.runs_of")
                at = self.field(at, "wf_tasks.next")
            except gdb.MemoryError:
                break
        return found

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
        """Of its wait and its tasks."""
        line, owner, age = "", self.owner(t), self.age(t)
        if owner and self.joined(t):
            line += f': end of thread {owner.tid} "{owner.name}"'
        elif owner:
            line += f': mutex held by thread {owner.tid} "{owner.name}"'
        if age is not None:
            line += f", for {seconds(age)}"
        return line + self.tasks_words(t)

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


class FrameId:
    def __init__(self, sp, pc):
        pointer = gdb.lookup_type("unsigned long")
        self.sp, self.pc = gdb.Value(sp).cast(pointer), gdb.Value(pc).cast(pointer)


class ParkedUnwinder(gdb.unwinder.Unwinder):
    """Makes the chosen thread the caller of the innermost frame."""

    def __init__(self):
        super().__init__("weft")
        self.registers = None

    def choose(self, registers):
        self.registers = registers
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if not self.registers or pending.level() != 0:
            return None
        # An address below the thread's stack: gdb insists that callers lie above those they called.
        info = pending.create_unwind_info(FrameId(self.registers["rsp"] - 256,
                                                  int(pending.read_register("rip"))))
        for name, value in self.registers.items():
            kind = pending.read_register(name).type
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info


unwinder = ParkedUnwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def inner_number(tid):
    """The number that a kernel thread of ours has in its own PID namespace."""
    try:
        with open(f"/proc/{tid}/status", encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("NSpid:"):
                    return int(line.split()[-1])
    except OSError:
        pass  # it has ended
    return tid


def select_kernel_thread(tid):
    connection = getattr(gdb.selected_inferior(), "connection", None)
    is_live = connection is None or connection.type == "native"
    for t in gdb.selected_inferior().threads():
        if (inner_number(t.ptid[1]) if is_live else t.ptid[1]) == tid:
            t.switch()
            return
    raise gdb.GdbError(f"gdb does not know kernel thread {tid}")


def frames_of(thread):
    """(frame, number) of a thread, and gdb's view restored afterwards."""
    before, chosen = gdb.selected_thread(), unwinder.registers
    try:
        if thread.kernel_tid:
            unwinder.choose(None)
            select_kernel_thread(thread.kernel_tid)
            frame = gdb.newest_frame()
        else:
            unwinder.choose(thread.registers())
            frame = gdb.newest_frame().older()
        number = 0
        while frame and frame.is_valid() and number < MAX_FRAMES:
            yield frame, number
            number += 1
            frame = frame.older()
    finally:
        unwinder.choose(chosen)
        if before and before.is_valid():
            before.switch()


def print_stack(thread):
    print(thread.words().strip())
    for frame, number in frames_of(thread):
        line = f"#{number:<3} {frame.pc():#018x} in {clean(frame.name() or '??')}"
        sal = frame.find_sal()
        if sal and sal.symtab and sal.line:
            line += f" at {clean(sal.symtab.filename)}:{sal.line}"
        else:
            line += f" from {clean(gdb.solib_name(frame.pc()) or 'the program')}"
        print(line)


def thread_argument(argument):
    try:
        return Runtime().thread(int(argument.strip()))
    except ValueError:
        raise gdb.GdbError("which thread? a number of 'info weft'")


class InfoWeft(gdb.Command):
    """Every thread of the program under weft."""

    def __init__(self):
        super().__init__("info weft", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for t in Runtime().threads():
            print(t.words())


class Weft(gdb.Command):
    """Threads of a program under weft: bt, apply, thread, workers."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, prefix=True)


class WeftBt(gdb.Command):
    """weft bt TID: the stack of one thread."""

    def __init__(self):
        super().__init__("weft bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        print_stack(thread_argument(argument))


class WeftApply(gdb.Command):
    """weft apply all bt: the stacks of all threads."""

    def __init__(self):
        super().__init__("weft apply", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument.split() != ["all", "bt"]:
            raise gdb.GdbError("usage: weft apply all bt")
        for t in list(Runtime().threads()):
            try:
                print_stack(t)
            except (gdb.error, gdb.MemoryError) as e:
                print(f"    {e}")
            print()


def go_to(t):
    """True: its stack begins at gdb's frame 1."""
    if t.kernel_tid:
        unwinder.choose(None)
        select_kernel_thread(t.kernel_tid)
        return False
    unwinder.choose(t.registers())
    gdb.newest_frame().older().select()
    return True


def run_in(t, command):
    """A command of gdb's in the view of that thread; gdb's own view afterwards."""
    before, chosen = gdb.selected_thread(), unwinder.registers
    try:
        go_to(t)
        gdb.execute(command)
    finally:
        unwinder.choose(chosen)
        if before and before.is_valid():
            before.switch()


class WeftThreads(gdb.Command):
    """weft threads [TEXT]: every thread with what it waits for, who has that, since when, its tasks, and what it has used."""

    def __init__(self):
        super().__init__("weft threads", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        waits = Waits(Runtime())
        for t in waits.threads:
            line = waits.words(t)
            if argument.strip().lower() in line.lower():
                print(line)


class WeftTree(gdb.Command):
    """Groups below the threads that opened them, threads below their groups, with the scopes that end what they wait for."""

    def __init__(self):
        super().__init__("weft tree", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for line in Tree(Runtime()).lines():
            print(line)


class WeftLocks(gdb.Command):
    """Mutexes that threads wait for, who holds them, and threads that wait for one another in a circle."""

    def __init__(self):
        super().__init__("weft locks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        waits, waiters = Waits(Runtime()), {}
        for t in waits.threads:
            if t.is_at_futex() and not waits.joined(t) and waits.holder(t.what):
                waiters.setdefault(t.what, []).append(t)
        if not waiters:
            print("no thread waits for a mutex whose owner is known")
        for address, them in sorted(waiters.items(), key=lambda item: -len(item[1])):
            print(f"mutex {address:#x}: held by {waits.words(waits.holder(address)).strip()}")
            for t in them:
                print(f"    waits {waits.words(t).strip()}")
        for circle in waits.circles():
            print(f"DEADLOCK of {len(circle)} threads: " + ", ".join(f'{t.tid} "{t.name}"' for t in circle))


class WeftThread(gdb.Command):
    """weft thread TID: make gdb's own commands show that thread. weft thread off: no longer.

    weft thread TID COMMAND: only that command does."""

    def __init__(self):
        super().__init__("weft thread", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument.strip() == "off":
            unwinder.choose(None)
            return
        tid, _, command = argument.strip().partition(" ")
        t = thread_argument(tid)
        if command.strip() == "bt":
            print_stack(t)
            return
        if command.strip():
            run_in(t, command.strip())
            return
        if go_to(t):
            print("frame 0 is gdb's current thread; the stack of this one begins at frame 1")
        print(t.words().strip())


class WeftWorkers(gdb.Command):
    """Workers and kernel threads."""

    def __init__(self):
        super().__init__("weft workers", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        rt = Runtime()
        rq = rt.offset("wf_worker.rq")[0]
        for w in rt.workers():
            k = rt.field(w, "wf_worker.kthread")
            is_vacant = rt.field(w, "wf_worker.is_vacant") or not k
            where = "vacant" if is_vacant else f"on kernel thread {rt.field(k, 'wf_kthread.tid')}"
            if rt.field(w, "wf_worker.rests"):
                where += ", rests"
            print(f"worker {rt.field(w, 'wf_worker.index')}: {where}, "
                  f"{rt.field(w + rq, 'wf_runq.nr')} queued")
        for k in rt.kthreads():
            cur = rt.field(k, "wf_kthread.cur")
            role = "door" if rt.field(k, "wf_kthread.is_door") else \
                "poller" if rt.field(k, "wf_kthread.is_poller") else \
                "ring" if rt.field(k, "wf_kthread.is_helper") else \
                "bound" if rt.field(k, "wf_kthread.bound") else \
                "waits with its thread" if rt.field(k, "wf_kthread.direct") else \
                "worker" if rt.field(k, "wf_kthread.worker") else \
                "in a call" if rt.field(k, "wf_kthread.insys") else "spare"
            if not rt.field(k, "wf_kthread.tid"):
                continue  # a spare that has ended
            has = f", has thread {rt.field(cur, 'wf_thread.tid')}" if cur else ""
            print(f"kernel thread {rt.field(k, 'wf_kthread.tid')}: {role}{has}")


# The kick that interrupts workers is no event of the program.
gdb.execute("handle SIG33 nostop noprint pass", to_string=True)
for command in (InfoWeft, Weft, WeftBt, WeftApply, WeftThread, WeftThreads, WeftTree, WeftLocks, WeftWorkers):
    command()
