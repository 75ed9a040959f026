#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tinyproxy: a thread per connection that polls two sockets; fork at start when it is a daemon."""

import http.client
import os
import signal

import clients
from harness import case, find_program, main

CONFIG = """
Port {port}
Listen 127.0.0.1
Allow 127.0.0.1
MaxClients 200
Timeout 60
LogFile "{home}/tinyproxy.log"
LogLevel Info
PidFile "{home}/tinyproxy.pid"
"""


def configure(c):
    port = clients.reserve_port(c)
    config = c.home / "tinyproxy.conf"
    config.write_text(CONFIG.format(home=c.home, port=port))
    return port, config


def start(c):
    tinyproxy = find_program("tinyproxy")
    port, config = configure(c)
    server = c.start(tinyproxy, "-d", "-c", config)
    wait_until_up(c, server, port)
    return server, port


def log(c):
    path = c.home / "tinyproxy.log"
    return path.read_text(errors="replace") if path.exists() else ""


def wait_until_up(c, server, port):
    # It listens before it installs its signal handlers, and says so after both.
    server.wait_for("enters its main loop", lambda: "Accepting connections" in log(c))
    server.wait_for("accepts connections", lambda: clients.accepts(port))
    c.runs_under_weft(server)


def fetch(port, origin, i, nr_requests):
    for n in range(nr_requests):
        conn = http.client.HTTPConnection(clients.LOOPBACK, port, timeout=clients.SOCKET_LIMIT_S)
        conn.request("GET", f"http://127.0.0.1:{origin}/{i}/{n}")
        answer = conn.getresponse()
        body = answer.read()
        assert answer.status == 200, answer.status
        assert body == clients.page(f"/{i}/{n}"), body[:200]
        conn.close()


def tunnel(port, echo, i):
    with clients.connect(port) as sock:
        sock.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.0\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += clients.read_exactly(sock, 1)
        assert b" 200 " in head.splitlines()[0], head
        for n in range(20):
            text = f"client {i} line {n}".encode()
            sock.sendall(text)
            assert clients.read_exactly(sock, len(text)) == text


def ends_clean(c, server, limit_s=2):
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, limit_s))
    c.log_is_clean("log", log(c))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def proxy_with_50_clients(c):
    server, port = start(c)
    origin = clients.back_end(c, clients.HttpHandler)
    clients.run_clients(server, 50, lambda i: fetch(port, origin, i, c.load(20, 3)))
    c.idle(server)
    fetch(port, origin, 0, 2)
    ends_clean(c, server)


@case(compare=True)
def tunnels_with_50_clients(c):
    server, port = start(c)
    echo = clients.back_end(c, clients.EchoHandler)
    clients.run_clients(server, 50, lambda i: tunnel(port, echo, i))
    ends_clean(c, server)


@case(compare=True)
def sigterm_while_idle_stops_soon(c):
    server, _ = start(c)
    ends_clean(c, server)


def reload(c, server, port, number):
    # A reload closes the listening socket; who connects in between is refused natively too.
    def nr_reloads():
        return log(c).count("Reloading config file finished")
    before = nr_reloads()
    server.become_idle()
    server.send(number)
    server.wait_for(f"reloads on {number.name}", lambda: nr_reloads() > before)
    server.wait_for("accepts after the reload", lambda: clients.accepts(port))


@case(compare=True)
def sigusr1_reloads_and_keeps_it_serving(c):
    server, port = start(c)
    origin = clients.back_end(c, clients.HttpHandler)
    for _ in range(2):
        reload(c, server, port, signal.SIGUSR1)
        fetch(port, origin, 0, 3)
    ends_clean(c, server)


@case(compare=True)
def daemon_serves_and_stops(c):
    tinyproxy = find_program("tinyproxy")
    port, config = configure(c)
    starter = c.start(tinyproxy, "-c", config)
    c.equal(starter.wait(10), 0, "exit status of the process that starts the daemon")
    daemon = c.adopt(c.home / "tinyproxy.pid", "tinyproxy")
    wait_until_up(c, daemon, port)
    origin = clients.back_end(c, clients.HttpHandler)
    clients.run_clients(daemon, 20, lambda i: fetch(port, origin, i, 3))
    reload(c, daemon, port, signal.SIGHUP)
    fetch(port, origin, 0, 3)
    daemon.become_idle()
    c.same("exit status", daemon.stop(signal.SIGTERM, 2))
    c.check(not os.path.exists(c.home / "tinyproxy.pid"), "the pid file is still there")
    c.log_is_clean("log", log(c))


if __name__ == "__main__":
    main()
