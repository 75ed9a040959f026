#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""apache2: processes with threads; a worker and an event MPM; graceful and hard restarts, stop."""

import http.client
import signal
from pathlib import Path

import clients
import procs
from harness import Skip, case, find_program, main

MODULES = Path("/usr/lib/apache2/modules")
CONFIG = """
ServerRoot {home}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {home}/apache.pid
ErrorLog {home}/error.log
LogLevel info
DocumentRoot {home}/www
Mutex {mutex}
LoadModule mpm_{mpm}_module {modules}/mod_mpm_{mpm}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule cgid_module {modules}/mod_cgid.so
StartServers 2
ServerLimit 4
ThreadsPerChild 25
MaxRequestWorkers 100
MinSpareThreads 10
MaxSpareThreads 100
MaxConnectionsPerChild {per_child}
GracefulShutdownTimeout 5
Timeout 30
KeepAliveTimeout 2
ScriptSock {home}/cgid.sock
ScriptAlias /cgi/ {home}/cgi/
"""
SCRIPT = """#!/bin/sh
printf 'Content-Type: text/plain\\r\\n\\r\\n%s\\n' "$QUERY_STRING"
"""


def start(c, mpm, mutex="default", per_child=0):
    apache = find_program("apache2")
    if not (MODULES / f"mod_mpm_{mpm}.so").exists():
        raise Skip(f"apache2 has no mpm_{mpm}")
    port = clients.reserve_port(c)
    (c.home / "www").mkdir()
    (c.home / "cgi").mkdir()
    (c.home / "cgi/echo").write_text(SCRIPT)
    for directory in c.home, c.home / "www", c.home / "cgi", c.home / "cgi/echo":
        directory.chmod(0o755)
    for n in range(20):
        (c.home / f"www/{n}").write_bytes(clients.page(f"/{n}") * (1 + 20 * (n % 3)))
    config = c.home / "apache.conf"
    config.write_text(CONFIG.format(home=c.home, port=port, mpm=mpm, mutex=mutex,
                                    modules=MODULES, per_child=per_child))
    server = c.start(apache, "-f", config, "-DFOREGROUND")
    wait_until_up(c, server, port, 1)
    c.runs_under_weft(server)
    return server, port


def log(c):
    path = c.home / "error.log"
    return path.read_text(errors="replace") if path.exists() else ""


def wait_until_up(c, server, port, times):
    server.wait_for("resumes normal operations",
                    lambda: log(c).count("resuming normal operations") >= times)
    server.wait_for("accepts connections", lambda: clients.accepts(port))


def fetch(port, i, nr):
    conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    for n in range(nr):
        path = f"/{(i + n) % 20}"
        try:
            conn.request("GET", path)
            answer = conn.getresponse()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not n:
                raise
            conn.close()        # a kept connection may be closed between two requests
            conn.request("GET", path)
            answer = conn.getresponse()
        body = answer.read()
        assert answer.status == 200, answer.status
        assert body == clients.page(path) * (1 + 20 * ((i + n) % 20 % 3)), body[:200]
    conn.close()


def run_script(port, i):
    conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
    conn.request("GET", f"/cgi/echo?client{i}")
    answer = conn.getresponse()
    assert (answer.status, answer.read()) == (200, f"client{i}\n".encode())
    conn.close()


# A child of the event MPM that ends has closed its poll set, and a worker may still come to keep its connection there.
# Apache says so natively, too, once in some hundred restarts: more seldom than a case asks it again.
ENDING = "apr_pollset_add failure for keep alive"


def ends_clean(c, server, number=signal.SIGTERM, limit_s=12):
    server.become_idle()
    c.same("exit status", server.stop(number, limit_s))
    c.log_is_clean("log", "\n".join(line for line in log(c).splitlines() if ENDING not in line))
    c.log_is_clean("stderr", server.err)
    c.check(not (c.home / "apache.pid").exists(), "the pid file is still there")


def serve(c, mpm, **options):
    server, port = start(c, mpm, **options)
    clients.run_clients(server, 60, lambda i: fetch(port, i, c.load(20, 3)))
    clients.run_clients(server, 10, lambda i: run_script(port, i))
    c.idle(server)
    for pid in procs.descendants(server.pid):
        c.check(not c.is_weft or "libweft" in procs.read_proc(f"/proc/{pid}/maps"),
                f"a child is not under weft: {procs.describe(pid)}")
    fetch(port, 0, 2)
    ends_clean(c, server)


@case(compare=True)
def worker_with_60_clients(c):
    serve(c, "worker")


@case(compare=True)
def event_with_60_clients(c):
    serve(c, "event")


@case(compare=True)
def worker_with_an_accept_mutex_shared_by_processes(c):
    serve(c, "worker", mutex="pthread")


@case(compare=True)
def children_end_after_some_connections(c):
    server, port = start(c, "worker", per_child=20)
    for _ in range(2):
        clients.run_clients(server, 40, lambda i: fetch(port, i, 2))
    ends_clean(c, server)


def restart(c, mpm):
    server, port = start(c, mpm)
    for times, number in enumerate([signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR1], 2):
        fetch(port, 0, 3)
        server.send(number)
        wait_until_up(c, server, port, times)
        clients.run_clients(server, 20, lambda i: fetch(port, i, 3))
    ends_clean(c, server)


@case(compare=True)
def worker_restarts_on_sighup_and_sigusr1(c):
    restart(c, "worker")


@case(compare=True)
def event_restarts_on_sighup_and_sigusr1(c):
    restart(c, "event")


@case(compare=True)
def sigwinch_stops_gracefully(c):
    server, port = start(c, "worker")
    fetch(port, 0, 3)
    ends_clean(c, server, signal.SIGWINCH)


if __name__ == "__main__":
    main()
