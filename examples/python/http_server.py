#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python's own ThreadingHTTPServer: a thread per connection, kept alive.

Nothing here knows of the runtime below, so it runs natively and under `weft run` alike.
"/" is a page held in memory and "/stats" counts threads. SIGTERM and SIGINT stop it.
"""

import argparse
import json
import resource
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"""<!doctype html>
<html><head><title>one thread per connection</title></head>
<body>
<h1>It works.</h1>
<p>A Python thread of its own sent this page and now waits for your next request.</p>
</body></html>
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections alive
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one write

    def do_GET(self):
        if self.path == "/":
            self.reply("text/html", PAGE)
        elif self.path == "/stats":
            # All but the main thread belong to connections.
            stats = {"threads": {"live": threading.active_count() - 1}}
            self.reply("application/json", json.dumps(stats).encode())
        else:
            self.send_error(404)

    do_HEAD = do_GET

    def reply(self, content_type, body):
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True  # an idle connection must not keep a stopping server alive


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0, the default, picks a free one")
    parser.add_argument("--bind", default="127.0.0.1")
    options = parser.parse_args()

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    server = Server((options.bind, options.port), Handler)

    def stop(*_):
        # shutdown() waits for serve_forever(), which this very thread runs: ask from another one.
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    print("listening on {}:{}".format(*server.server_address), flush=True)
    server.serve_forever(poll_interval=0.1)
    server.server_close()


if __name__ == "__main__":
    main()
