#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""xz -T4: four computing threads that hand blocks over; the bytes must be the native ones."""

import hashlib
import random

from harness import case, find_program, main

SIZE = 32 << 20
ARGUMENTS = ["-T4", "-0", "--block-size=4MiB"]


def make_input(path):
    """32 MB that compress to about a third and are the same everywhere."""
    rng = random.Random(7)
    words = [rng.randbytes(rng.randint(3, 40)) for _ in range(4000)]
    piece = b"".join(rng.choices(words, k=50_000))
    with open(path, "wb") as f:
        left = SIZE
        while left:
            # Another order per piece, so that no two blocks are alike.
            cut = rng.randrange(len(piece))
            data = (piece[cut:] + rng.randbytes(65536) + piece[:cut])[:left]
            left -= f.write(data)


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while data := f.read(1 << 20):
            h.update(data)
    return h.hexdigest()


def inputs(c):
    """A directory with data, and data.native.xz."""
    def make(path):
        make_input(path / "data")
        c.call(find_program("xz"), *ARGUMENTS, "-k", path / "data", native=True, limit_s=60)
        (path / "data.xz").rename(path / "data.native.xz")
    return c.prepared("inputs", make)


@case
def four_threads_compress_to_the_same_bytes(c):
    xz = find_program("xz")
    native = inputs(c)
    (c.home / "data").symlink_to(native / "data")
    c.call(xz, *ARGUMENTS, "-k", "-f", c.home / "data", limit_s=60)
    c.equal(digest(c.home / "data.xz"), digest(native / "data.native.xz"), "compressed data")
    (c.home / "data").unlink()
    c.call(xz, "-T4", "-d", "-k", c.home / "data.xz", limit_s=60)
    c.equal(digest(c.home / "data"), digest(native / "data"), "decompressed data")
    c.call(xz, "-T4", "-t", c.home / "data.xz", limit_s=60)


@case
def pipes_through_four_threads(c):
    xz = find_program("xz")
    data = inputs(c) / "data"
    shell = find_program("sh")
    c.call(shell, "-c", 'head -c 16000000 "$1" | "$0" -T4 -0 --block-size=1MiB | "$0" -dcT4 > back',
           xz, data, limit_s=60)
    with open(data, "rb") as f:
        expected = f.read(16_000_000)
    c.check((c.home / "back").read_bytes() == expected, "data differs after a round trip")


@case
def damaged_input_is_refused(c):
    xz = find_program("xz")
    (c.home / "data").write_bytes(random.Random(1).randbytes(4_000_000))
    c.call(xz, "-T4", "-0", "--block-size=1MiB", c.home / "data", native=True)
    packed = bytearray((c.home / "data.xz").read_bytes())
    packed[len(packed) // 2] ^= 0xff
    (c.home / "data.xz").write_bytes(packed)
    result = c.call(xz, "-T4", "-t", c.home / "data.xz", status=1)
    c.check("corrupt" in result.err, f"stderr: {result.err!r}")


if __name__ == "__main__":
    main()
