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
import importlib.util
import os
import sys

import gdb

NAME = "weft_gdb"


def load(folder):
    """The module of the commands, anew each time: it may be another version's by now."""
    for name in [name for name in sys.modules if name.split(".")[0] == NAME]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(NAME, os.path.join(folder, "__init__.py"),
                                                  submodule_search_locations=[folder])
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # else a gdb of root's leaves files where weft is installed
    try:
        sys.modules[NAME] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
        return importlib.import_module(NAME + ".commands")
    finally:
        sys.dont_write_bytecode = before


def main():
    folder = os.path.join(os.path.dirname(os.path.realpath(__file__)), NAME)
    if not os.path.isdir(folder):
        gdb.write(f"weft-gdb.py: its modules are missing: there is no folder {folder}; copy it along with the script\n",
                  gdb.STDERR)
        return
    # The kick that interrupts workers is no event of the program.
    gdb.execute("handle SIG33 nostop noprint pass", to_string=True)
    for command in load(folder).COMMANDS:
        command()


main()
