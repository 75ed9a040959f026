#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deadlines around any code, by libweft's scopes: weft run -- python3 deadline.py

What waits inside, in libraries written in C as well, fails with TimeoutError when the time is over."""
import contextlib
import ctypes
import socket
import time

weft = ctypes.CDLL(None)  # `weft run` has loaded it
weft.weft_now.restype = ctypes.c_int64


@contextlib.contextmanager
def deadline(seconds):
    scope = (ctypes.c_uint64 * 8)()  # weft_scope
    weft.weft_scope_open(scope, ctypes.c_int64(weft.weft_now() + int(seconds * 1e9)), None)
    try:
        yield
    finally:
        weft.weft_scope_close(scope)


if __name__ == "__main__":
    ours, theirs = socket.socketpair()
    began = time.monotonic()
    try:
        with deadline(0.05):
            ours.recv(1)
    except TimeoutError as e:
        print(f"recv() ended after {(time.monotonic() - began) * 1000:.0f} ms: {e}")
    theirs.send(b"x")
    with deadline(5):
        print("recv() in time:", ours.recv(1).decode())
