# SPDX-License-Identifier: Apache-2.0
"""Stacks: gdb is made to show a thread that is on no CPU, as the caller of its current frame."""
import contextlib

import gdb
import gdb.unwinder

from .memory import clean

MAX_FRAMES = 256


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


def first_frame(thread):
    """The innermost frame of a thread; gdb's view is that thread's from then on."""
    if thread.kernel_tid:
        unwinder.choose(None)
        select_kernel_thread(thread.kernel_tid)
        return gdb.newest_frame()
    unwinder.choose(thread.registers())
    return gdb.newest_frame().older()


@contextlib.contextmanager
def view_kept():
    """gdb's view is afterwards what it was before."""
    before, chosen = gdb.selected_thread(), unwinder.registers
    try:
        yield
    finally:
        unwinder.choose(chosen)
        if before and before.is_valid():
            before.switch()


def frames_of(thread):
    """(frame, number) of a thread."""
    with view_kept():
        frame, number = first_frame(thread), 0
        while frame and frame.is_valid() and number < MAX_FRAMES:
            yield frame, number
            number += 1
            frame = frame.older()


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


def go_to(thread):
    """True: its stack begins at gdb's frame 1."""
    frame = first_frame(thread)
    if not thread.kernel_tid:
        frame.select()
    return not thread.kernel_tid


def run_in(thread, command):
    """A command of gdb's in the view of that thread."""
    with view_kept():
        go_to(thread)
        gdb.execute(command)
