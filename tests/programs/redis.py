#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""redis: one event loop, I/O threads beside it, and background threads; snapshots by fork."""

import signal

import clients
from harness import case, find_program, main


class Client:
    def __init__(self, port):
        self.sock = clients.connect(port)
        self.lines = self.sock.makefile("rb")

    def answer(self):
        line = self.lines.readline()
        assert line.endswith(b"\r\n"), line
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.lines.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        assert kind in b"+:", line
        return rest.decode()

    def send(self, *words):
        text = b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in (str(x).encode() for x in words))
        self.sock.sendall(b"*%d\r\n" % len(words) + text)

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def close(self):
        self.lines.close()
        self.sock.close()


def start(c, *options, log_name="redis.log"):
    redis = find_program("redis-server")
    port = clients.reserve_port(c)
    server = c.start(redis, "--port", port, "--bind", "127.0.0.1", "--dir", c.home, "--save", "",
                     "--logfile", c.home / log_name, *options)
    server.wait_for("says that it is ready",
                    lambda: "Ready to accept connections" in log(c, log_name))
    c.runs_under_weft(server)
    return server, port


def log(c, name="redis.log"):
    path = c.home / name
    return path.read_text(errors="replace") if path.exists() else ""


def work(port, i, nr):
    client = Client(port)
    for n in range(nr):
        value = f"value {i} {n} " * (1 + n % 50)
        assert client.ask("set", f"key-{i}-{n}", value) == "OK"
        assert client.ask("get", f"key-{i}-{n}") == value
        assert client.ask("get", f"no-{i}-{n}") is None
        assert client.ask("incr", "total").isdigit()
    # A pipeline: the I/O threads parse and answer many at once.
    for n in range(nr):
        client.send("get", f"key-{i}-{n}")
    for n in range(nr):
        assert client.answer().startswith(f"value {i} {n} ")
    client.close()


def ends_clean(c, server, limit_s=5):
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, limit_s))
    c.log_is_clean("log", log(c))
    c.log_is_clean("stderr", server.err)


def serve(c, *options):
    server, port = start(c, *options)
    nr = c.load(20, 5)
    clients.run_clients(server, 50, lambda i: work(port, i, nr))
    client = Client(port)
    c.equal(client.ask("get", "total"), str(50 * nr), "counter after all increments")
    client.close()
    c.idle(server)
    work(port, 99, 2)
    ends_clean(c, server)


@case(compare=True)
def one_event_loop_with_50_clients(c):
    serve(c)


@case(compare=True)
def io_threads_with_50_clients(c):
    serve(c, "--io-threads", 4, "--io-threads-do-reads", "yes")


@case(compare=True)
def blocked_clients_and_subscribers_are_woken(c):
    server, port = start(c, "--io-threads", 2)

    def wait_and_push(i):
        client = Client(port)
        if i % 2:
            assert client.ask("blpop", f"list-{i}", 20) == [f"list-{i}", str(i)]
            assert client.ask("rpush", f"back-{i}", i) == "1"
        else:
            assert client.ask("rpush", f"list-{i + 1}", i + 1).isdigit()
            assert client.ask("blpop", f"back-{i + 1}", 20) == [f"back-{i + 1}", str(i + 1)]
        client.close()
    clients.run_clients(server, 40, wait_and_push)
    listener, speaker = Client(port), Client(port)
    c.equal(listener.ask("subscribe", "news"), ["subscribe", "news", "1"], "subscription")
    for n in range(20):
        c.equal(speaker.ask("publish", "news", n), "1", "number of receivers")
        c.equal(listener.answer(), ["message", "news", str(n)], "message")
    for client in listener, speaker:
        client.close()
    ends_clean(c, server)


@case(compare=True)
def data_survives_a_restart(c):
    """A snapshot by a fork child, an append-only file rewritten by another, lazy freeing threads."""
    server, port = start(c, "--appendonly", "yes", "--appendfsync", "everysec", "--io-threads", 2)
    client = Client(port)
    for n in range(200):
        c.equal(client.ask("rpush", f"big-{n % 2}", "x" * 1000), str(n // 2 + 1), "rpush")
    c.equal(client.ask("unlink", "big-0"), "1", "unlink")
    for command, done in [("bgsave", "Background saving terminated with success"),
                          ("bgrewriteaof", "AOF rewrite finished successfully")]:
        client.ask(command)
        server.wait_for(f"{command} ends", lambda: done in log(c))
    client.close()
    c.equal(server.stop(signal.SIGTERM, 5), 0, "exit status of the first server")
    server, port = start(c, "--appendonly", "yes", log_name="again.log")
    client = Client(port)
    server.wait_for("has the list again", lambda: client.ask("llen", "big-1") == "100")
    c.equal(client.ask("exists", "big-0"), "0", "the unlinked list")
    client.close()
    ends_clean(c, server)
    c.log_is_clean("second log", log(c, "again.log"))


@case(compare=True)
def sigint_while_idle_stops_soon(c):
    server, _ = start(c, "--io-threads", 4)
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGINT, 3))
    c.log_is_clean("log", log(c))


if __name__ == "__main__":
    main()
