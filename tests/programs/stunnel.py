#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stunnel: a TLS server in front of an echo server; thread per connection, OpenSSL, signals."""

import signal
import ssl

import clients
from harness import case, find_program, main

CONFIG = """
foreground = yes
pid =
output = {home}/stunnel.log
debug = info
syslog = no
TIMEOUTclose = 0
[echo]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{back_end}
cert = {certificate}/cert.pem
"""


def make_certificate(c):
    def make(path):
        c.call(find_program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
               "-subj", "/CN=localhost", "-keyout", path / "key.pem", "-out", path / "crt.pem",
               native=True)
        pem = path / "cert.pem"
        pem.write_bytes((path / "key.pem").read_bytes() + (path / "crt.pem").read_bytes())
        pem.chmod(0o600)
    return c.prepared("certificate", make)


def start(c):
    stunnel = find_program("stunnel4", "stunnel")
    port = clients.reserve_port(c)
    config = c.home / "stunnel.conf"
    config.write_text(CONFIG.format(home=c.home, port=port, certificate=make_certificate(c),
                                    back_end=clients.back_end(c, clients.EchoHandler)))
    server = c.start(stunnel, config)
    # Not by connecting: it listens before it handles signals, and a connection that comes to nothing
    # is a complaint in one log or the other.
    server.wait_for("accepts connections", lambda: "Accepting new connections" in log(c))
    c.runs_under_weft(server)
    return server, port


def log(c):
    path = c.home / "stunnel.log"
    return path.read_text(errors="replace") if path.exists() else ""


def talk(c, port, i, nr_round_trips):
    context = ssl.create_default_context(cafile=str(make_certificate(c) / "crt.pem"))
    context.check_hostname = False
    with context.wrap_socket(clients.connect(port)) as sock:
        for n in range(nr_round_trips):
            text = f"client {i} says {n} ".encode() * (1 + 40 * (n % 3))
            sock.sendall(text)
            assert clients.read_exactly(sock, len(text)) == text
    return True


def ends_clean(c, server, limit_s=10):
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, limit_s))
    c.log_is_clean("log", log(c))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def tls_echo_with_50_clients(c):
    server, port = start(c)
    clients.run_clients(server, 50, lambda i: talk(c, port, i, c.load(20, 3)))
    clients.run_clients(server, 50, lambda i: talk(c, port, i, c.load(20, 3)))
    c.idle(server)
    talk(c, port, 0, 3)
    ends_clean(c, server)


@case(compare=True)
def sighup_reloads_while_clients_talk(c):
    server, port = start(c)

    def nr_loaded():
        # That the configuration is good is said before the old socket is closed, with whoever waits on it.
        return log(c).count(f"bound to 127.0.0.1:{port}")
    with ssl._create_unverified_context().wrap_socket(clients.connect(port)) as kept:
        for _ in range(3):
            before = nr_loaded()
            server.send(signal.SIGHUP)
            server.wait_for("reloads on SIGHUP", lambda: nr_loaded() > before)
            kept.sendall(b"still here")
            assert clients.read_exactly(kept, 10) == b"still here"
            server.wait_for("accepts after SIGHUP", lambda: clients.accepts(port))
            clients.run_clients(server, 10, lambda i: talk(c, port, i, 3))
    ends_clean(c, server)


@case(compare=True)
def sigusr1_reopens_the_log(c):
    server, port = start(c)
    (c.home / "stunnel.log").rename(c.home / "old.log")
    server.send(signal.SIGUSR1)
    server.wait_for("opens a new log", (c.home / "stunnel.log").exists)
    talk(c, port, 0, 3)
    ends_clean(c, server)


@case(compare=True)
def sigterm_while_idle_stops_soon(c):
    server, _ = start(c)
    ends_clean(c, server, limit_s=2)


if __name__ == "__main__":
    main()
