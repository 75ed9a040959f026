#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus itself, the server and its checker, reads what `weft metrics` says. Without them: skipped."""
import json
import os
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import obstest
from obstest import ObsTest, weft

CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: weft
    static_configs: [{{targets: ["127.0.0.1:{}"]}}]
"""


class Prometheus(ObsTest):
    def started(self, *command, **how):
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **how)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)
        return p

    def needs(self, program):
        if not shutil.which(program):
            self.skipTest(f"no {program} (Debian: prometheus)")

    def test_the_checker_has_nothing_to_say(self):
        self.needs("promtool")
        v = self.victim(threads=20)
        text = weft("metrics", "-f", "text", v.pid).stdout
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_server_has_the_same_figures(self):
        self.needs("prometheus")
        v = self.victim(threads=20)
        server = self.started(obstest.WEFT, "metrics", "--listen", "0", str(v.pid), stderr=subprocess.PIPE,
                              env=obstest.environment())
        port = re.search(r"127\.0\.0\.1:(\d+)/", server.stderr.readline())[1]
        config = os.path.join(self.directory(), "prometheus.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(CONFIG.format(port))
        p = self.started("prometheus", "--config.file=" + config, "--storage.tsdb.path=" + self.directory(),
                         "--web.listen-address=127.0.0.1:0", "--log.format=json", stderr=subprocess.PIPE)
        where = None
        while True:
            line = p.stderr.readline()
            self.assertTrue(line, "the server has ended")
            said = json.loads(line)
            if said.get("msg") == "Listening on":
                where = said["address"]
            elif said.get("msg") == "Server is ready to receive web requests.":
                break

        def ask(query):
            url = f"http://{where}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            with urllib.request.urlopen(url, timeout=obstest.LIMIT_S) as answer:
                return [float(r["value"][1]) for r in json.load(answer)["data"]["result"]]
        deadline = time.monotonic() + obstest.LIMIT_S
        while not ask("weft_workers") and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(ask("up"), [1])
        self.assertEqual(ask("weft_workers"), [2])
        self.assertEqual(ask("sum(weft_threads)"), [20 + 14])
        self.assertEqual(ask('weft_threads{state="parked",wait="poll"}'), [1])
        self.assertEqual(len(ask("weft_process_info")), 1)
        own = float(re.search(r"^weft_parks_total (\d+)$", weft("metrics", v.pid).stdout, re.M)[1])
        seen = ask("weft_parks_total")[0]
        self.assertGreater(seen, 0)
        self.assertLessEqual(seen, own)
        with urllib.request.urlopen(f"http://{where}/api/v1/metadata?metric=weft_parks_total", timeout=obstest.LIMIT_S) as f:
            kinds = json.load(f)["data"] or {}
        if kinds:
            self.assertEqual([k["type"] for k in kinds["weft_parks_total"]], ["counter"])


obstest.main()
