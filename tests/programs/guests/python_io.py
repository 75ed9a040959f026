# SPDX-License-Identifier: Apache-2.0
"""What Python programs wait for outside of themselves: sockets, pipes, files, event loops; see cases.py."""

import asyncio
import hashlib
import os
import select
import socket
import socketserver
import sqlite3
import tempfile
import threading
import time

from cases import case, in_threads, main


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


@case
def socketserver_serves_threads():
    socketserver.ThreadingTCPServer.request_queue_size = 128
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Upper) as server:
        runner = threading.Thread(target=server.serve_forever, args=(0.05,))
        runner.start()

        def client(i):
            with socket.create_connection(server.server_address, timeout=20) as sock:
                lines = sock.makefile("rwb")
                for n in range(20):
                    lines.write(f"line {i} {n}\n".encode())
                    lines.flush()
                    assert lines.readline() == f"LINE {i} {n}\n".encode()
        in_threads(50, client)
        server.shutdown()
        runner.join()


@case
def udp_and_unix_sockets():
    def echo(i):
        a, b = socket.socketpair()
        a.settimeout(10)
        t = threading.Thread(target=lambda: b.sendall(b.recv(100)))
        t.start()
        a.sendall(b"%d" % i)
        assert a.recv(100) == b"%d" % i
        t.join()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", 0))
            udp.settimeout(10)
            udp.sendto(b"x%d" % i, udp.getsockname())
            assert udp.recv(100) == b"x%d" % i
        a.close()
        b.close()
    in_threads(30, echo)


@case
def socket_timeouts_expire():
    def work(_):
        a, b = socket.socketpair()
        with a, b:
            a.settimeout(0.1)
            begin = time.monotonic()
            try:
                a.recv(1)
                assert False
            except TimeoutError:
                assert time.monotonic() - begin >= 0.099
    in_threads(20, work)


@case
def name_lookups_in_threads():
    def work(_):
        for _ in range(5):
            assert socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    in_threads(20, work)


@case
def big_transfer_through_a_pipe():
    r, w = os.pipe()
    block, nr = os.urandom(100_000), 100
    sums = [hashlib.sha256(block * nr).hexdigest()]

    def write():
        for _ in range(nr):
            view = memoryview(block)
            while view:
                view = view[os.write(w, view):]
        os.close(w)
    t = threading.Thread(target=write)
    t.start()
    got = hashlib.sha256()
    while data := os.read(r, 65536):
        got.update(data)
    t.join()
    assert got.hexdigest() == sums[0]


@case
def asyncio_with_threads():
    async def echo(reader, writer):
        while data := await reader.readline():
            writer.write(data)
            await writer.drain()
        writer.close()

    async def client(port, i):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n in range(10):
            writer.write(f"{i} {n}\n".encode())
            assert await reader.readline() == f"{i} {n}\n".encode()
        writer.close()
        await writer.wait_closed()

    async def story():
        values = await asyncio.gather(*[asyncio.to_thread(pow, n, 2) for n in range(100)])
        assert values == [n * n for n in range(100)]
        server = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=128)
        port = server.sockets[0].getsockname()[1]
        await asyncio.gather(*[client(port, i) for i in range(50)])
        server.close()
        await server.wait_closed()
        child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        out, _ = await child.communicate(b"through cat")
        assert out == b"through cat" and child.returncode == 0
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.05)
            assert False
        except asyncio.TimeoutError:
            pass
        loop, called = asyncio.get_running_loop(), asyncio.Event()
        threading.Timer(0.05, loop.call_soon_threadsafe, [called.set]).start()
        await asyncio.wait_for(called.wait(), 20)
    asyncio.run(story())


def wait_and_wake(wait):
    """In 20 threads: nothing ready within a timeout, then one byte makes it ready."""
    def work(_):
        r, w = os.pipe()
        assert not wait(r, 0.05)
        t = threading.Timer(0.05, os.write, [w, b"x"])
        t.start()
        assert wait(r, 30)
        assert os.read(r, 1) == b"x"
        t.join()
        os.close(r)
        os.close(w)
    in_threads(20, work)


@case
def select_in_threads():
    wait_and_wake(lambda fd, limit_s: select.select([fd], [], [], limit_s)[0] == [fd])


@case
def poll_in_threads():
    def wait(fd, limit_s):
        p = select.poll()
        p.register(fd, select.POLLIN)
        return p.poll(limit_s * 1000) == [(fd, select.POLLIN)]
    wait_and_wake(wait)


@case
def epoll_in_threads():
    def wait(fd, limit_s):
        with select.epoll() as ep:
            ep.register(fd, select.EPOLLIN)
            return ep.poll(limit_s) == [(fd, select.EPOLLIN)]
    wait_and_wake(wait)


@case
def sqlite_in_threads():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "db")
        with sqlite3.connect(path) as db:
            db.execute("pragma journal_mode=wal")
            db.execute("create table t (thread int, n int)")
        db.close()

        def work(i):
            db = sqlite3.connect(path, timeout=60)
            for n in range(20):
                with db:
                    db.execute("insert into t values (?, ?)", (i, n))
            assert db.execute("select count(*) from t where thread = ?", (i,)).fetchone() == (20,)
            db.close()
        in_threads(10, work)
        db = sqlite3.connect(path)
        assert db.execute("select count(*), sum(n) from t").fetchone() == (200, 1900)
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        db.close()


@case
def files_in_threads():
    with tempfile.TemporaryDirectory() as folder:
        def work(i):
            path = os.path.join(folder, str(i))
            for n in range(10):
                with open(path, "a") as f:
                    f.write(f"{i} {n}\n")
                    f.flush()
                    os.fsync(f.fileno())
            with open(path) as f:
                assert f.read() == "".join(f"{i} {n}\n" for n in range(10))
        in_threads(20, work)
        assert sorted(os.listdir(folder), key=int) == [str(i) for i in range(20)]


if __name__ == "__main__":
    main()
