# SPDX-License-Identifier: Apache-2.0
"""A source for icecast2: so many bytes a second on the mount point /live, until killed."""

import base64
import socket
import sys
import time

STEP_S = 0.02


def main():
    port, rate = int(sys.argv[1]), int(sys.argv[2])
    password = base64.b64encode(b"source:secret").decode()
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(f"SOURCE /live HTTP/1.0\r\nAuthorization: Basic {password}\r\n"
                 "Content-Type: application/octet-stream\r\n\r\n".encode())
    sock.recv(4096)
    started, sent = time.monotonic(), 0
    while True:
        due = int((time.monotonic() - started) * rate) - sent
        sock.sendall(b"x" * due)
        sent += due
        time.sleep(STEP_S)


main()
