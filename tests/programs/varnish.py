#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""varnish: a manager that forks the cache, pools of worker threads, threads that poll and expire."""

import http.client
import os
import signal

import clients
import procs
from harness import case, find_program, main


def start(c, *options):
    varnishd = find_program("varnishd")
    port = clients.reserve_port(c)
    origin = clients.back_end(c, clients.HttpHandler)
    server = c.start(varnishd, "-F", "-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{origin}",
                     "-n", c.home / "varnish", "-s", "malloc,16M", "-j", "none", "-T", "none",
                     "-p", "thread_pool_min=10", "-p", "thread_pool_max=200", *options,
                     env={"CCACHE_DISABLE": "1"})
    # It compiles its configuration with the C compiler first.
    server.wait_for("accepts connections", lambda: clients.accepts(port), limit_s=60)
    c.runs_under_weft(server)
    return server, port


def fetch(port, i, nr, modulus=None):
    conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    for n in range(nr):
        path = f"/{i % modulus if modulus else i}/{n}"
        conn.request("GET", path)
        answer = conn.getresponse()
        body = answer.read()
        assert answer.status == 200, (answer.status, body[:200])
        assert body == clients.page(path), body[:200]
    conn.close()


def ends_clean(c, server, number=signal.SIGTERM):
    server.become_idle()
    c.same("exit status", server.stop(number, 15))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def hits_and_misses_with_100_clients(c):
    server, port = start(c)
    clients.run_clients(server, 100, lambda i: fetch(port, i, c.load(20, 2), modulus=10))
    clients.run_clients(server, 50, lambda i: fetch(port, i, c.load(5, 1)))
    c.idle(server)
    fetch(port, 0, 2)
    ends_clean(c, server)


@case(compare=True)
def threads_come_and_go(c):
    """More connections than threads: the pools grow, and shrink again."""
    server, port = start(c, "-p", "thread_pools=1", "-p", "thread_pool_timeout=10",
                         "-p", "thread_pool_destroy_delay=0.01")
    for _ in range(2):
        clients.run_clients(server, 60, lambda i: fetch(port, i, 3))
    ends_clean(c, server)


@case(compare=True)
def manager_restarts_a_killed_cache(c):
    server, port = start(c)
    fetch(port, 0, 2)

    def nr_started():
        return server.err.count("Child launched OK")
    before = nr_started()
    os.kill(procs.descendants(server.pid)[0], signal.SIGKILL)
    server.wait_for("starts another cache", lambda: nr_started() > before)
    server.wait_for("accepts connections", lambda: clients.accepts(port))
    fetch(port, 1, 2)
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, 15))


@case(compare=True)
def sigint_while_idle_stops_soon(c):
    server, _ = start(c)
    ends_clean(c, server, signal.SIGINT)


if __name__ == "__main__":
    main()
