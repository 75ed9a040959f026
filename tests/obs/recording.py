# SPDX-License-Identifier: Apache-2.0
"""What the tests of recorded events share: a victim that does the same on every word, and what `weft trace` wrote of it.

WEFT_COMMAND names the command, RECORDED the victim (recorded.c). Invariant: no victim outlives its case.
"""
import os
import re
import select
import subprocess
import time

import check_trace
import obstest
from obstest import ObsTest, weft

RECORDED = os.environ["RECORDED"]
LINE = re.compile(r"(\d+\.\d{9}) +(\d+) +(\d+) (.{15}) ([a-z]+)(?: (.*))?$")
WROTE = re.compile(r"wrote (\S+): ([\d.e+-]+) s, (\d+) workers?, ([\d,]+) threads?, ([\d,]+) events, ([\d,]+) lost"
                   r"(; open it at https://ui.perfetto.dev)?\n")


class RecordTest(ObsTest):
    def setUp(self):
        self.dir = self.directory()

    def path(self, name):
        return os.path.join(self.dir, name)

    def start(self, *options, rounds=50, workers=2, **changes):
        """The victim, when it is quiet."""
        p = subprocess.Popen([obstest.WEFT, "run", "--workers", str(workers), *options, "--", RECORDED, str(rounds)],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=self.dir, env=obstest.environment(**changes))
        self.addCleanup(self.stop, p)
        self.answer(p, "ready")
        return p

    def stop(self, p):
        if p.poll() is None:
            p.kill()
        p.wait()
        for stream in (p.stdin, p.stdout, p.stderr):
            stream.close()

    def answer(self, p, word="done"):
        self.assertTrue(select.select([p.stdout], [], [], obstest.LIMIT_S)[0], "no answer")
        self.assertEqual(p.stdout.readline(), word + "\n")

    def ask(self, p, word):
        p.stdin.write(word + "\n")
        p.stdin.flush()
        self.answer(p)

    def write(self, *args, **changes):
        """What the last line says: file, seconds, workers, threads, events, lost."""
        done = weft("trace", *args, **changes)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = WROTE.fullmatch(done.stdout)
        self.assertTrue(found, done.stdout)
        return [found[1], float(found[2]), *(int(n.replace(",", "")) for n in found.groups()[2:6]), found[7]]

    def lines(self, *args):
        """The events as text, and how many the last line says."""
        file = self.path("t.txt")
        said = self.write("-f", "text", "-o", file, *args)
        with open(file, encoding="utf-8") as f:
            events = [LINE.match(line.rstrip("\n")) for line in f if not line.startswith("#")]
        self.assertTrue(all(events))
        self.assertEqual(len(events), said[4])
        return [(float(e[1]), int(e[2]), int(e[3]), e[5], e[6] or "") for e in events], said

    def check(self, *args):
        file = self.path("t.pftrace")
        said = self.write("-o", file, *args)
        return check_trace.read(file), said

    def both(self, pid):
        """The same events in both formats: when it has said that it is ready, its workers may still be on the way to rest."""
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            events, said = self.lines(pid)
            trace, again = self.check(pid)
            if said[2:6] == again[2:6]:
                return events, trace, said
        self.fail("it does not become quiet")
