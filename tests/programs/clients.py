# SPDX-License-Identifier: Apache-2.0
"""
Load for the servers under test: many clients at once, ports, and two small native back ends.

Used by the test scripts that drive a server. Everything here runs in the test script itself, never
under weft. Every socket has a timeout, so a server that stops answering fails its clients in time.
"""

import http.server
import socket
import socketserver
import threading
import time

from procs import PATIENCE, StepFailed

SOCKET_LIMIT_S = 30 * PATIENCE
LOOPBACK = "127.0.0.1"


def reserve_port(c):
    """
    A free port, kept out of the ephemeral pool until the case ends: a bound socket that does not
    listen lets a server with SO_REUSEADDR bind the same port, and nobody else by chance.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((LOOPBACK, 0))
    c.on_exit(holder.close)
    return holder.getsockname()[1]


def connect(port):
    sock = socket.create_connection((LOOPBACK, port), timeout=SOCKET_LIMIT_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def accepts(port):
    try:
        connect(port).close()
        return True
    except OSError:
        return False


def read_exactly(sock, nr_bytes):
    data = b""
    while len(data) < nr_bytes:
        chunk = sock.recv(nr_bytes - len(data))
        if not chunk:
            raise StepFailed(f"connection closed after {len(data)} of {nr_bytes} bytes")
        data += chunk
    return data


def run_clients(program, nr_clients, work, limit_s=60):
    """work(i) in nr_clients threads at once; the program is shown if they do not all finish."""
    errors = []

    def client(i):
        try:
            work(i)
        except Exception as err:        # reported below, by the thread that owns the case
            errors.append(f"client {i}: {type(err).__name__}: {err}")

    threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(nr_clients)]
    limit_s *= PATIENCE
    until = time.monotonic() + limit_s
    for t in threads:
        t.start()
    for t in threads:
        t.join(max(0.0, until - time.monotonic()))
    nr_stuck = sum(t.is_alive() for t in threads)
    if nr_stuck:
        program.fail(f"{nr_stuck} of {nr_clients} clients not served within {limit_s} s")
    if errors:
        program.fail(f"{len(errors)} of {nr_clients} clients failed; {errors[0]}")


class EchoHandler(socketserver.BaseRequestHandler):
    def handle(self):
        while True:
            try:
                data = self.request.recv(65536)
            except ConnectionError:
                return
            if not data:
                return
            self.request.sendall(data)


class Tcp(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass        # a client that went away is not our subject


class HttpHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = page(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def page(path):
    """What the HTTP back end answers: depends on the path, so that answers cannot be mixed up."""
    return (f"page {path}\n" * 50).encode()


def back_end(c, handler):
    """A native server thread for the case; its port."""
    server = Tcp((LOOPBACK, 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1},
                     daemon=True).start()
    c.on_exit(server.server_close)
    c.on_exit(server.shutdown)
    return server.server_address[1]
