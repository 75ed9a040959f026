#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ruby: threads, queues, timeouts, processes, and WEBrick under load."""

import http.client
import signal

import clients
from harness import GUESTS, Skip, add_guest_cases, case, find_program, main


def ask(port, i, nr_requests):
    conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    for n in range(nr_requests):
        conn.request("GET", f"/{i}/{n}")
        answer = conn.getresponse()
        body = answer.read().decode()
        assert (answer.status, body) == (200, f"you asked for /{i}/{n}\n"), (answer.status, body)
    conn.close()


@case(compare=True)
def webrick_under_load(c):
    ruby = find_program("ruby")
    if c.call(ruby, "-e", "require 'webrick'", native=True, status=None).status != 0:
        raise Skip("ruby-webrick is not installed")
    server = c.start(ruby, GUESTS / "webrick_server.rb")
    port = int(server.wait_line("port "))
    c.runs_under_weft(server)
    clients.run_clients(server, 50, lambda i: ask(port, i, c.load(20, 4)))
    c.idle(server)
    ask(port, 0, 3)
    c.same("exit status", server.stop(signal.SIGTERM))
    c.equal(server.out.splitlines()[1:], ["closed"], "stdout")
    c.log_is_clean("log", server.err)


add_guest_cases(["ruby"], "ruby_cases.rb")

if __name__ == "__main__":
    main()
