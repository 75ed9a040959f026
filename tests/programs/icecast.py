#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""icecast2: threads for connections and for sources, locks between them, streams to listeners."""

import base64
import signal
import threading

import clients
from harness import case, find_program, main

CONFIG = """<icecast>
<limits><clients>300</clients><sources>4</sources><queue-size>524288</queue-size>
<client-timeout>30</client-timeout><header-timeout>15</header-timeout>
<source-timeout>10</source-timeout><burst-size>0</burst-size></limits>
<authentication><source-password>secret</source-password>
<admin-user>admin</admin-user><admin-password>secret</admin-password></authentication>
<hostname>localhost</hostname>
<listen-socket><port>{port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
<fileserve>1</fileserve>
<paths><basedir>{home}</basedir><logdir>{home}</logdir><webroot>{home}/web</webroot>
<adminroot>/usr/share/icecast2/admin</adminroot></paths>
<logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog>
<loglevel>4</loglevel></logging>
<security><chroot>0</chroot>{owner}</security>
</icecast>
"""
BLOCK = 1000


def start(c):
    icecast = find_program("icecast2")
    port = clients.reserve_port(c)
    (c.home / "web").mkdir()
    (c.home / "web/page.txt").write_bytes(clients.page("/page.txt"))
    c.home.chmod(0o777)
    config = c.home / "icecast.xml"
    # It refuses to run as root.
    config.write_text(CONFIG.format(home=c.home, port=port, owner="<changeowner><user>nobody</user>"
                                    "<group>nogroup</group></changeowner>"))
    server = c.start(icecast, "-c", config)
    # Not by connecting: a client that comes before all of its threads are up can crash it natively.
    # Some of them say so, but not always.
    server.wait_for("opens its sockets", lambda: "No SSL capability" in log(c))
    server.become_idle()
    c.runs_under_weft(server)
    return server, port


def log(c):
    path = c.home / "error.log"
    return path.read_text(errors="replace") if path.exists() else ""


def read_head(sock):
    head = b""
    while b"\r\n\r\n" not in head:
        head += clients.read_exactly(sock, 1)
    return head


def request(port, text):
    sock = clients.connect(port)
    sock.sendall(text.encode())
    return sock


def source(port, mount):
    password = base64.b64encode(b"source:secret").decode()
    sock = request(port, f"SOURCE {mount} HTTP/1.0\r\nAuthorization: Basic {password}\r\n"
                         "Content-Type: application/octet-stream\r\n\r\n")
    head = read_head(sock)
    assert b" 200 " in head.splitlines()[0], head
    return sock


def block(n):
    return f"{n:08d}".encode() * (BLOCK // 8)


def listener(port, mount, door):
    """Joins somewhere in the stream; from there on no byte may be missing."""
    with door:      # its listen queue has five places, and a connection that finds none waits long
        sock = request(port, f"GET {mount} HTTP/1.0\r\n\r\n")
        head = read_head(sock)
    with sock:
        assert b" 200 " in head.splitlines()[0], head
        data = clients.read_exactly(sock, 50 * BLOCK)
        numbers = [int(data[i:i + 8]) for i in range(0, len(data), 8)]
        steps = {b - a for a, b in zip(numbers, numbers[1:])}
        assert steps <= {0, 1}, f"the stream jumps: {sorted(steps)[:5]}"


def stream(c, server, port, nr_listeners):
    door = threading.Lock()
    is_over = threading.Event()

    def feed():
        with source(port, "/live") as sock:
            n = 0
            source_ready.set()
            while not is_over.is_set():
                sock.sendall(block(n))
                n += 1
                is_over.wait(0.002)
    source_ready = threading.Event()
    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    c.check(source_ready.wait(20), "the source was not accepted")
    try:
        clients.run_clients(server, nr_listeners, lambda _: listener(port, "/live", door))
    finally:
        is_over.set()
        feeder.join(20)


def fetch(port):
    with request(port, "GET /page.txt HTTP/1.0\r\n\r\n") as sock:
        head = read_head(sock)
        assert b" 200 " in head.splitlines()[0], head
        assert clients.read_exactly(sock, len(clients.page("/page.txt"))) == clients.page("/page.txt")


def ends_clean(c, server, number=signal.SIGTERM, limit_s=8):
    server.become_idle()
    c.same("exit status", server.stop(number, limit_s))
    c.log_is_clean("log", log(c))
    c.log_is_clean("stderr", server.err)


@case(compare=True)
def one_source_and_40_listeners(c):
    server, port = start(c)
    stream(c, server, port, c.load(40, 5))
    c.idle(server)
    ends_clean(c, server)


@case(compare=True)
def files_with_some_clients(c):
    server, port = start(c)
    clients.run_clients(server, 4, lambda _: [fetch(port) for _ in range(c.load(20, 3))])
    ends_clean(c, server)


@case(compare=True)
def sighup_reloads_while_a_source_plays(c):
    server, port = start(c)

    def nr_reloads():
        return log(c).count("re-reading config")
    with source(port, "/live") as kept:
        for n in range(3):
            before = nr_reloads()
            server.send(signal.SIGHUP)
            server.wait_for("reloads on SIGHUP", lambda: nr_reloads() > before)
            kept.sendall(block(n))
            fetch(port)
    ends_clean(c, server)


@case(compare=True)
def sigint_while_idle_stops_soon(c):
    server, _ = start(c)
    ends_clean(c, server, signal.SIGINT)


if __name__ == "__main__":
    main()
