#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Firefox without a screen: a browser whose sandboxes for libraries use the GS base, and whose processes filter their calls."""

import http.server
import threading

from harness import case, find_program, main

ROUNDS = 3
PAGE = b"<!doctype html><title>weft</title><body style='background: #369'><h1>A page</h1><p>of some words.</p>"
LINE = "weft: running on plain NPTL: it uses the GS base itself, and may filter its own system calls (seccomp)"


class Server:
    """One page, on loopback; counts who came for it."""

    def __init__(self):
        server = self
        self.nr_served = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/page":
                    server.nr_served += 1
                self.send_response(200 if self.path == "/page" else 404)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                if self.path == "/page":
                    self.wfile.write(PAGE)

            def log_message(self, format, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}/page"

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def picture(c, firefox, server, i):
    """What a fresh profile makes of the page."""
    profile, shot = c.home / f"profile{i}", c.home / f"shot{i}.png"
    profile.mkdir()
    result = c.call(firefox, "--headless", "--no-remote", "--profile", profile, "--screenshot", shot, server.url,
                    limit_s=90)
    c.equal(server.nr_served, i + 1, "pages served")
    data = shot.read_bytes()
    c.check(data.startswith(b"\x89PNG\r\n"), f"no picture: {data[:8]!r}")
    c.equal(LINE in result.err, c.is_weft, "the line that says why")
    return data


@case(limit_s=300)
def it_takes_pictures_of_a_page(c):
    firefox = find_program("firefox-esr")
    server = Server()
    c.on_exit(server.close)
    pictures = [picture(c, firefox, server, i) for i in range(ROUNDS)]
    c.check(all(p == pictures[0] for p in pictures), "one page, several pictures")


if __name__ == "__main__":
    main()
