#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/native, each attached and natively: what they answer, and that they end when they are told to."""
import os
import select
import signal
import socket
import subprocess
import threading
import unittest

EXAMPLES = os.environ["EXAMPLES"]
LIMIT = 60


def output(name, *args):
    done = subprocess.run([os.path.join(EXAMPLES, name), *args], stdout=subprocess.PIPE, timeout=LIMIT, check=True)
    return done.stdout.decode()


def child(h, i):
    mask = 2**64 - 1
    h = (h + (i + 1) * 0x9E3779B97F4A7C15) & mask
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & mask
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & mask
    return h ^ (h >> 31)


def fnv(text):
    h = 0xCBF29CE484222325
    for _ in range(10):
        for c in text:
            h = ((h ^ c) * 0x100000001B3) % 2**64
    return h


class Examples(unittest.TestCase):
    def test_the_sieve_finds_the_primes_in_order(self):
        primes = [n for n in range(2, 501) if all(n % d for d in range(2, n))]
        self.assertEqual(output("sieve", "500").split(), [str(p) for p in primes])

    def test_the_tree_search_counts_every_node(self):
        nodes, left = 1, [child(0, i) for i in range(300)]
        while left:
            h = left.pop()
            nodes += 1
            if h & 255 < 31:
                left += [child(h, i) for i in range(8)]
        self.assertEqual(output("uts", "300").split()[:2], [str(nodes), "nodes"])

    def test_the_pipeline_keeps_the_order_of_its_lines(self):
        lines = b"".join(b"line %d\n" % i for i in range(1000)) + b"no newline"
        done = subprocess.run([os.path.join(EXAMPLES, "pipeline"), "5"], input=lines, stdout=subprocess.PIPE, timeout=LIMIT, check=True)
        self.assertEqual(done.stdout, b"".join(b"%016x %s\n" % (fnv(x), x) for x in lines.split(b"\n")))
        self.assertEqual(subprocess.run([os.path.join(EXAMPLES, "pipeline")], input=b"", stdout=subprocess.PIPE, timeout=LIMIT).stdout, b"")

    def eyeballs(self, *args):
        done = subprocess.run([os.path.join(EXAMPLES, "eyeballs"), *args], stdout=subprocess.PIPE, timeout=LIMIT)
        return done.returncode, done.stdout.decode().strip()

    def test_happy_eyeballs_takes_the_first_that_answers(self):
        with socket.create_server(("127.0.0.2", 0)) as server:
            port = str(server.getsockname()[1])
            self.assertEqual(self.eyeballs(port, "127.0.0.3", "127.0.0.2", "127.0.0.4"), (0, "127.0.0.2"))
            self.assertEqual(self.eyeballs(port, "127.0.0.3"), (1, "nobody answers"))

    def test_happy_eyeballs_leaves_one_that_is_silent(self):
        if os.environ["WEFT"] == "0":
            self.skipTest("natively a scope reaches libweft's own waits only")
        # A listener whose queue is full drops what comes: connect() waits.
        with socket.socket() as silent, socket.socket() as filler, socket.create_server(("127.0.0.2", 0)) as server:
            port = server.getsockname()[1]
            silent.bind(("127.0.0.3", port))
            silent.listen(0)
            filler.connect(("127.0.0.3", port))
            self.assertEqual(self.eyeballs(str(port), "127.0.0.3", "127.0.0.2"), (0, "127.0.0.2"))

    def echo(self, silence):
        server = subprocess.Popen([os.path.join(EXAMPLES, "echo"), "0", silence], stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        port = int(server.stdout.readline().split()[1])
        clients = [socket.create_connection(("127.0.0.1", port), LIMIT) for _ in range(20)]
        for c in clients:
            self.addCleanup(c.close)
        return server, clients

    def test_the_echo_server_answers_all_and_ends_when_told(self):
        server, clients = self.echo("60000")
        for i, c in enumerate(clients):
            c.sendall(b"hello %02d" % i)
        for i, c in reversed(list(enumerate(clients))):
            self.assertEqual(c.recv(8, socket.MSG_WAITALL), b"hello %02d" % i)
        if os.environ["WEFT"] == "0":
            return  # natively a scope reaches libweft's own waits only
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.stdout.read(), b"ended\n")
        self.assertEqual(server.wait(LIMIT), 0)
        self.assertEqual(clients[0].recv(1), b"")

    def test_the_echo_server_closes_a_silent_connection(self):
        if os.environ["WEFT"] == "0":
            self.skipTest("natively a scope reaches libweft's own waits only")
        _, clients = self.echo("50")
        for c in clients:
            self.assertEqual(c.recv(1), b"")

    def started(self, *args):
        server = subprocess.Popen([os.path.join(EXAMPLES, args[0]), *args[1:]], stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return server, int(server.stdout.readline().split()[1])

    def client(self, port):
        c = socket.create_connection(("127.0.0.1", port), LIMIT)
        self.addCleanup(c.close)
        f = c.makefile("rb")
        self.addCleanup(f.close)
        return c, f

    def chat(self, port, name):
        c, f = self.client(port)
        c.sendall(b"/nick " + name + b"\n")
        while f.readline() != b"* ok\n":
            pass
        return c, f

    def test_the_chat_server_tells_all_others_and_nobody_holds_it_up(self):
        server, port = self.started("chat", "0")
        ann, ann_reads = self.chat(port, b"ann")
        _, bob_reads = self.chat(port, b"bob")
        self.assertEqual(ann_reads.readline(), b"guest 2 is here\n")
        self.assertEqual(ann_reads.readline(), b"bob was guest 2\n")
        ann.sendall(b"/nick bob\n/unknown\nhel")
        self.assertEqual(ann_reads.readline(), b"* no: it is taken, or no name\n")
        self.assertEqual(ann_reads.readline(), b"* /nick NAME, /leave\n")
        ann.sendall(b"lo\x1b\r\n")
        self.assertEqual(bob_reads.readline(), b"ann: hello?\n")

        eve, eve_reads = self.chat(port, b"eve")
        eve.sendall(b"x" * 400)
        self.assertEqual(eve_reads.readline(), b"* too long\n")
        while bob_reads.readline() != b"eve has left\n":
            pass

        # One that reads nothing is let go when its buffers and its channel are full; bob reads every line meanwhile.
        lazy = socket.socket()
        self.addCleanup(lazy.close)
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect(("127.0.0.1", port))
        self.assertEqual(bob_reads.readline(), b"guest 4 is here\n")
        gone = False
        for i in range(100000):
            ann.sendall(b"%d %s\n" % (i, b"y" * 380))
            line = bob_reads.readline()
            if line == b"guest 4 has left\n":
                gone = True
                line = bob_reads.readline()
            self.assertEqual(line[:5 + len(str(i))], b"ann: %d" % i)
            if gone:
                break
        self.assertTrue(gone)

        ann.sendall(b"/leave\n")
        self.assertEqual(bob_reads.readline(), b"ann has left\n")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.stdout.read(), b"ended\n")
        self.assertEqual(server.wait(LIMIT), 0)
        self.assertEqual(bob_reads.read(), b"")

    def site(self, answer):
        """A server that calls answer(path, connection), in a thread for each connection."""
        listener = socket.create_server(("127.0.0.1", 0))

        def serve(c):
            with c, c.makefile("rb") as f:
                path = f.readline().split()[1].decode()
                while f.readline().strip():
                    pass
                answer(path, c)

        def accept():
            while True:
                try:
                    c = listener.accept()[0]
                except OSError:
                    return
                threading.Thread(target=serve, args=(c,), daemon=True).start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        self.addCleanup(listener.close)
        self.addCleanup(acceptor.join)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return str(listener.getsockname()[1])

    def crawler(self, *args):
        done = subprocess.run([os.path.join(EXAMPLES, "crawler"), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
        return done.returncode, sorted(done.stdout.decode().splitlines()), done.stderr.decode()

    def test_the_crawler_gets_each_page_once_and_so_many_at_a_time(self):
        lock, asked, now, most = threading.Lock(), [], [0], [0]
        full = threading.Event()

        def answer(path, c):
            with lock:
                asked.append(path)
                now[0] += 1
                most[0] = max(most[0], now[0])
                if now[0] == 3:
                    full.set()
            if path.startswith("/p"):
                full.wait(LIMIT)  # the first ones stay until there are three
            with lock:
                now[0] -= 1
            links = ["/p%d#x" % i for i in range(20)] + ["/", "/none", "/odd", "/shut", "//else/where", "mailto:a", "/a b", "/" + "l" * 600]
            body = "".join('<a href="%s">' % x for x in links) + '\0<a href="/unfinished'
            head = {"/none": "HTTP/1.1 404 No", "/odd": "what?", "/shut": ""}.get(path, "HTTP/1.1 200 OK")
            c.sendall(("%s\r\n\r\n%s" % (head, body)).encode() if head else b"")

        code, lines, errors = self.crawler(self.site(answer), "/", "3")
        pages = ["/"] + ["/p%d" % i for i in range(20)]
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(lines, sorted(["200 " + p for p in pages] + ["404 /none", "/odd: Protocol error", "/shut: Protocol error"]))
        self.assertEqual(sorted(asked), sorted(pages + ["/none", "/odd", "/shut"]))
        self.assertEqual(most[0], 3)

    def test_the_crawler_ends_in_time_whatever_the_server_does(self):
        if os.environ["WEFT"] == "0":
            self.skipTest("natively a scope reaches libweft's own waits only")
        over = threading.Event()
        self.addCleanup(over.set)

        def answer(path, c):
            if path == "/":
                c.sendall(b'HTTP/1.1 200 OK\r\n\r\n<a href="/silent">')
            else:
                over.wait(LIMIT)

        code, lines, errors = self.crawler(self.site(answer), "/", "3", "500")
        self.assertEqual((code, lines[:1]), (1, ["200 /"]))
        self.assertEqual(errors, "crawler: Connection timed out\n")

    def test_the_crawler_says_that_nobody_listens(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.assertEqual(self.crawler(str(s.getsockname()[1]), "/")[1], ["/: Connection refused"])

    def response(self, f, body=True):
        status, fields = f.readline().split(b" ", 2), {}
        for line in iter(f.readline, b"\r\n"):
            name, value = line.split(b": ")
            fields[name] = value.strip()
        return int(status[1]), fields[b"Connection"], f.read(int(fields[b"Content-Length"])) if body else b""

    def test_the_http_server_keeps_a_connection_and_answers_in_order(self):
        server, port = self.started("http", "0")
        c, f = self.client(port)
        c.sendall(b"GET / HTTP/1.1\r\n\r\nHEAD /big HTTP/1.1\r\nA: b\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /n")
        self.assertEqual(self.response(f), (200, b"keep-alive", b"hello\n"))
        self.assertEqual(self.response(f, body=False), (200, b"keep-alive", b""))
        self.assertEqual(self.response(f), (405, b"keep-alive", b"Method Not Allowed"))
        c.sendall(b"one HTTP/1.1\r\n\r\nGET /big HTTP/1.0\r\n\r\nGET / HTTP/1.1\r\n\r\n")
        self.assertEqual(self.response(f), (404, b"keep-alive", b"Not Found"))
        self.assertEqual(self.response(f), (200, b"close", b"." * 2**20))
        if os.environ["WEFT"] == "0":
            return  # natively a scope reaches libweft's own waits only
        idle, _ = self.client(port)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.stdout.read(), b"ended\n")
        self.assertEqual(server.wait(LIMIT), 0)

    def test_the_http_server_refuses_what_it_does_not_understand(self):
        _, port = self.started("http", "0")
        for request, status in (
            (b"nonsense\r\n\r\n", 400),
            (b"\r\n\r\n", 400),
            (b"GET / HTTP/1.1 x\r\n\r\n", 400),
            (b"GET /\0 HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\n", 400),
            (b"GET /" + b"l" * 300 + b" HTTP/1.1\r\n\r\n", 400),
            (b"GET / HTTP/1.1\r\ncontent-length: 5\r\n\r\n", 413),
            (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 413),
            (b"GET / HTTP/1.1\r\nA: " + b"a" * (8192 - 19), 431),
        ):
            c, f = self.client(port)
            c.sendall(request)
            self.assertEqual(self.response(f)[:2], (status, b"close"), request)
            self.assertEqual(f.read(), b"")

    def test_the_http_server_bounds_connections_and_their_time(self):
        if os.environ["WEFT"] == "0":
            self.skipTest("natively a scope reaches libweft's own waits only")
        _, port = self.started("http", "0", "2", "200")
        (slow, slow_reads), (_, idle_reads) = self.client(port), self.client(port)
        slow.sendall(b"GET / HT")
        third, third_reads = self.client(port)
        third.sendall(b"GET / HTTP/1.1\r\n\r\n")  # served when one of the others has been let go
        self.assertEqual(self.response(third_reads)[0], 200)
        self.assertTrue(select.select([slow, idle_reads], [], [], 0)[0])
        self.assertEqual(self.response(slow_reads)[:2], (408, b"close"))
        self.assertEqual(idle_reads.read(), b"")

    def send_until_closed(self, c, data):
        try:
            c.sendall(data)
        except OSError:
            pass

    def test_the_loop_and_the_blocking_code_do_the_same(self):
        for name in ("loop_before", "loop_after"):
            with self.subTest(name):
                server, port = self.started(name, "0", "60000")
                a, a_reads = self.client(port)
                b, b_reads = self.client(port)
                a.sendall(b"one\ntwo\none\nth")
                self.assertEqual([a_reads.readline() for _ in range(3)], [b"1 one\n", b"1 two\n", b"2 one\n"])
                b.sendall(b"two\nbye\ntwo\n")
                self.assertEqual(b_reads.readline(), b"2 two\n")
                with self.client(port)[0] as c:
                    c.sendall(b"l" * 64)
                    self.assertEqual(c.recv(1), b"")
                a.sendall(b"ree\ntwo\n")
                self.assertEqual([a_reads.readline() for _ in range(2)], [b"1 three\n", b"3 two\n"])

                # More answers than the buffers between hold: the server waits until they are read.
                sender = threading.Thread(target=self.send_until_closed, args=(a, b"x\n" * 1000000))
                sender.start()
                for i in range(1, 5001):
                    self.assertEqual(a_reads.readline(), b"%d x\n" % i)
                a.shutdown(socket.SHUT_RDWR)
                sender.join()

                if name == "loop_after" and os.environ["WEFT"] == "0":
                    continue  # natively a scope reaches libweft's own waits only
                server.send_signal(signal.SIGTERM)
                self.assertEqual(server.stdout.read(), b"ended\n")
                self.assertEqual(server.wait(LIMIT), 0)

                _, port = self.started(name, "0", "50")
                slow, _ = self.client(port)
                slow.sendall(b"no end")
                self.assertEqual(slow.recv(1), b"")


if __name__ == "__main__":
    unittest.main()
