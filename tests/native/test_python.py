#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/python/deadline.py: a deadline around socket.recv(), by ctypes."""
import os
import subprocess
import sys
import unittest

WEFT = os.environ["WEFT_COMMAND"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "examples", "python")


def run(*args):
    env = {**os.environ, "PYTHONPATH": FOLDER}
    return subprocess.run([WEFT, "run", "--", sys.executable, *args], capture_output=True, text=True, timeout=60, check=False,
                          env=env)


class Python(unittest.TestCase):
    def test_a_blocked_call_raises_TimeoutError_and_one_in_time_does_not(self):
        done = run(os.path.join(FOLDER, "deadline.py"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^recv\(\) ended after \d+ ms: \[Errno 110\].*\nrecv\(\) in time: x\n$")

    def test_an_inner_deadline_ends_before_an_outer_one_in_a_thread(self):
        source = """
import socket, threading
from deadline import deadline
a, b = socket.socketpair()
def work():
    with deadline(60):
        try:
            with deadline(0.02):
                a.recv(1)
        except TimeoutError:
            b.send(b"y")
            print(a.recv(1).decode())
t = threading.Thread(target=work)
t.start()
t.join()
"""
        done = run("-c", source)
        self.assertEqual((done.returncode, done.stdout), (0, "y\n"), done.stderr)


unittest.main()
