# SPDX-License-Identifier: Apache-2.0
"""The program's memory: reads within a time, and names made plain."""
import struct
import time

import gdb

LIMIT_S = 60  # for the reads of one command: the program may be somebody's who wants to keep us


class Clock:
    """When the command that runs must have read all."""
    until = 0


def read(address, nr):
    if time.monotonic() > Clock.until:
        raise gdb.GdbError(f"gave up: reading the program's threads took more than {LIMIT_S} s")
    return bytes(gdb.selected_inferior().read_memory(address & 0xffffffffffffffff, nr))


def word(address):
    return int.from_bytes(read(address, 8), "little")


def clean(name):
    """Without what a terminal would obey: names are the program's, and may be anything."""
    return "".join(c if c.isprintable() else "?" for c in name)


def text(raw):
    return clean(raw.split(b"\0")[0].decode("utf-8", "replace"))


def words(address, layout):
    return struct.unpack(layout, read(address, struct.calcsize(layout)))
