#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""haproxy: an event loop per thread, each bound to processors, with much static TLS; no win, no break."""

import http.client
import signal
import socket

import clients
from harness import case, find_program, main

# The checks are there for their timers: on a busy machine one that comes late must not take a server away.
CONFIG = """
global
    nbthread 4
    maxconn 500
    stats socket {home}/stats mode 600 level admin
    hard-stop-after 5s
defaults
    mode http
    timeout connect 10s
    timeout client 30s
    timeout server 30s
frontend f
    bind 127.0.0.1:{port}
    default_backend b
backend b
    balance roundrobin
    default-server check inter 200ms fall 1000
    server s1 127.0.0.1:{one}
    server s2 127.0.0.1:{two}
"""


def start(c, *options):
    haproxy = find_program("haproxy")
    port = clients.reserve_port(c)
    config = c.home / "haproxy.cfg"
    config.write_text(CONFIG.format(home=c.home, port=port,
                                    one=clients.back_end(c, clients.HttpHandler),
                                    two=clients.back_end(c, clients.HttpHandler)))
    server = c.start(haproxy, "-f", config, *options)
    server.wait_for("accepts connections", lambda: clients.accepts(port))
    server.wait_for("answers on its stats socket", lambda: "nbthread" in ask(c, "show info") or
                    "Nbthread" in ask(c, "show info"))
    c.runs_under_weft(server)
    return server, port


def ask(c, command):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        try:
            sock.connect(str(c.home / "stats"))
            sock.sendall(f"{command}\n".encode())
            return sock.makefile().read()
        except OSError:
            return ""


def fetch(port, i, nr):
    conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    for n in range(nr):
        conn.request("GET", f"/{i}/{n}")
        answer = conn.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body[:200])
        assert body == clients.page(f"/{i}/{n}"), body[:200]
    conn.close()


def ends_clean(c, server, number=signal.SIGTERM, limit_s=8):
    server.become_idle()
    c.same("exit status", server.stop(number, limit_s))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def four_threads_with_50_clients(c):
    server, port = start(c, "-db")
    c.check("Nbthread: 4" in ask(c, "show info"), "it does not have four threads")
    clients.run_clients(server, 50, lambda i: fetch(port, i, c.load(20, 3)))
    c.idle(server)
    fetch(port, 0, 2)
    ends_clean(c, server)


@case(compare=True)
def commands_reach_every_thread(c):
    """Each of these stops all threads for a moment, or must be seen by all of them."""
    server, port = start(c, "-db")
    for n in range(3):
        for state in "maint", "ready":
            ask(c, f"set server b/s1 state {state}")
            fetch(port, n, 3)
    c.check("Thread 4" in ask(c, "show threads"), "'show threads' does not show the last one")
    ends_clean(c, server)


@case(compare=True)
def sigusr1_lets_clients_finish(c):
    server, port = start(c, "-db")
    kept = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    kept.request("GET", "/a")
    kept.getresponse().read()
    server.become_idle()
    server.send(signal.SIGUSR1)
    server.wait_for("stops accepting", lambda: not clients.accepts(port))
    kept.close()
    c.same("exit status", server.wait(8))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def master_reloads_its_worker_on_sigusr2(c):
    server, port = start(c, "-Ws", "-S", f"{c.home}/master")

    def nr_loaded():
        return server.err.count("Loading success")

    def nr_ended():
        return server.err.count("Former worker")
    server.wait_for("has loaded", nr_loaded)
    for _ in range(2):
        before = nr_loaded()
        server.become_idle()        # while it starts anew it takes no signal
        server.send(signal.SIGUSR2)
        server.wait_for("loads the new worker", lambda: nr_loaded() > before)
        # until then clients may still reach the former one, which closes their connections between two requests
        server.wait_for("ends the former worker", lambda: nr_ended() > before - 1)
        clients.run_clients(server, 10, lambda i: fetch(port, i, 3))
    ends_clean(c, server)


@case(compare=True)
def sigint_while_idle_stops_soon(c):
    server, _ = start(c, "-db")
    ends_clean(c, server, signal.SIGINT, 3)


if __name__ == "__main__":
    main()
