# SPDX-License-Identifier: Apache-2.0
"""A ThreadingHTTPServer on a free port, run by ../python.py; prints the port, ends on SIGINT."""

import http.server


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = f"you asked for {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))[::-1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


if __name__ == "__main__":
    with Server(("127.0.0.1", 0), Handler) as server:
        print("port", server.server_address[1], flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    print("closed", flush=True)
