#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython: threads, pools, signals, processes, and an HTTP server under load."""

import http.client
import signal

import clients
from harness import GUESTS, add_guest_cases, case, find_program, main

# The system's interpreter first: another one in PATH may be a wrapper.
INTERPRETER = ("/usr/bin/python3", "python3")


def ask(port, i, nr_requests, nr_per_connection):
    for first in range(0, nr_requests, nr_per_connection):
        conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
        for n in range(first, first + nr_per_connection):
            if n % 10 == 9:
                conn.request("POST", "/", body=f"{i}-{n}" * 100)
                expected = (f"{i}-{n}" * 100)[::-1]
            else:
                conn.request("GET", f"/{i}/{n}")
                expected = f"you asked for /{i}/{n}\n"
            answer = conn.getresponse()
            body = answer.read().decode()
            assert (answer.status, body) == (200, expected), (answer.status, body, expected)
        conn.close()


@case(compare=True)
def http_server_under_load(c):
    server = c.start(find_program(*INTERPRETER), GUESTS / "http_server.py")
    port = int(server.wait_line("port "))
    c.runs_under_weft(server)
    clients.run_clients(server, 50, lambda i: ask(port, i, c.load(100, 10), 10))
    c.idle(server)
    ask(port, 0, 10, 1)
    c.same("exit status", server.stop(signal.SIGINT))
    c.equal(server.out.splitlines()[1:], ["interrupted", "closed"], "stdout")
    c.equal(server.err, "", "stderr")


@case(compare=True)
def http_server_ends_on_sigterm(c):
    server = c.start(find_program(*INTERPRETER), GUESTS / "http_server.py")
    port = int(server.wait_line("port "))
    kept_open = [clients.connect(port) for _ in range(20)]
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, limit_s=2))
    for sock in kept_open:
        sock.close()


for part in ("threads", "io", "signals", "processes"):
    add_guest_cases(INTERPRETER, f"python_{part}.py")

if __name__ == "__main__":
    main()
