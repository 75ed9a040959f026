#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memcached: an event loop per thread; nothing to win, nothing may break."""

import signal

import clients
from harness import case, find_program, main


class Client:
    def __init__(self, port):
        self.sock = clients.connect(port)
        self.lines = self.sock.makefile("rb")

    def ask(self, request):
        self.sock.sendall(request.encode() + b"\r\n")
        return self.lines.readline().strip().decode()

    def set(self, key, value):
        return self.ask(f"set {key} 0 0 {len(value)}\r\n{value}")

    def get(self, key):
        head = self.ask(f"get {key}")
        if head == "END":
            return None
        value = self.lines.read(int(head.split()[3]) + 2)[:-2].decode()
        assert self.lines.readline() == b"END\r\n"
        return value

    def close(self):
        self.lines.close()
        self.sock.close()


def start(c):
    memcached = find_program("memcached")
    port = clients.reserve_port(c)
    server = c.start(memcached, "-t", 4, "-l", "127.0.0.1", "-p", port, "-U", 0, "-u", "root",
                     "-m", 64, "-c", 256)
    server.wait_for("accepts connections", lambda: clients.accepts(port))
    c.runs_under_weft(server)
    return server, port


def work(port, i, nr):
    client = Client(port)
    for n in range(nr):
        value = f"value {i} {n} " * (1 + n % 50)
        assert client.set(f"key-{i}-{n}", value) == "STORED"
        assert client.get(f"key-{i}-{n}") == value
        assert client.get(f"no-{i}-{n}") is None
        assert client.ask("incr total 1").isdigit()
    client.close()


def ends_clean(c, server, limit_s=2):
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, limit_s))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def set_get_incr_with_50_clients(c):
    server, port = start(c)
    client = Client(port)
    c.equal(client.set("total", "0"), "STORED", "set")
    nr = c.load(50, 5)
    clients.run_clients(server, 50, lambda i: work(port, i, nr))
    c.equal(client.get("total"), str(50 * nr), "counter after all increments")
    client.close()
    c.idle(server)
    work(port, 99, 2)
    ends_clean(c, server)


@case(compare=True)
def values_expire(c):
    server, port = start(c)
    client = Client(port)
    c.equal(client.ask("set short 0 1 1\r\nx"), "STORED", "set")
    server.wait_for("value expires", lambda: client.get("short") is None)
    client.close()
    ends_clean(c, server)


@case(compare=True)
def sigint_while_idle_stops_soon(c):
    server, _ = start(c)
    c.same("exit status", server.stop(signal.SIGINT, 2))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def sigterm_with_open_connections(c):
    server, port = start(c)
    kept_open = [Client(port) for _ in range(20)]
    for i, client in enumerate(kept_open):
        c.equal(client.set(f"key{i}", "x"), "STORED", "set")
    ends_clean(c, server)
    for client in kept_open:
        client.close()


if __name__ == "__main__":
    main()
