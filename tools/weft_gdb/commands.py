# SPDX-License-Identifier: Apache-2.0
"""The commands; to make an object of each makes gdb know it."""
import gdb

from .runtime import Runtime
from .stacks import go_to, print_stack, run_in, unwinder
from .tree import Tree
from .waits import Waits


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


class WeftThreads(gdb.Command):
    """weft threads [TEXT]: every thread with what it waits for, who has that, since when, its tasks and fibers, and what it has used."""

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


COMMANDS = (InfoWeft, Weft, WeftBt, WeftApply, WeftThread, WeftThreads, WeftTree, WeftLocks, WeftWorkers)
