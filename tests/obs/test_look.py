# SPDX-License-Identifier: Apache-2.0
"""`weft ps`, `weft metrics` and `weft top`: looking at running programs without stopping them."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import obstest
from obstest import ObsTest, weft

STORIES = 14  # threads of the victim: main, and one for each way to wait


class Look(ObsTest):
    def setUp(self):
        """A victim whose name no other test's has."""
        self.name = f"looked-at-{os.getpid()}"
        path = os.path.join(self.directory(), self.name)
        shutil.copy(obstest.WAITERS, path)
        before, obstest.WAITERS = obstest.WAITERS, path
        self.addCleanup(setattr, obstest, "WAITERS", before)

    def ended(self, process):
        process.kill()
        process.communicate()

    def started(self, command, **changes):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=obstest.environment(**changes))
        self.addCleanup(self.ended, process)
        return process


class Ps(Look):
    def listed(self):
        done = weft("ps", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {p["pid"]: p for p in json.loads(done.stdout)["processes"]}

    def test_a_process_is_listed_with_its_figures(self):
        v = self.victim(threads=50)
        row = self.listed()[v.pid]
        self.assertEqual(row["program"], self.name)
        self.assertEqual(row["name"], self.name[:15])
        self.assertEqual(row["uid"], os.getuid())
        self.assertEqual(row["state"], "weft")
        self.assertEqual(row["workers"], 2)
        self.assertEqual(row["threads"], 50 + STORIES)
        self.assertGreaterEqual(row["kernel_threads"], 3)
        self.assertNotIn("why", row)
        line = [line for line in weft("ps").stdout.splitlines() if line.split()[0] == str(v.pid)][0]
        self.assertIn(self.name[:16], line)
        self.assertTrue(line.endswith("weft"), line)
        self.assert_goes_on(v)

    def test_a_program_without_threads_has_none_yet(self):
        process = self.started([obstest.WEFT, "run", "--", "cat"])
        process.stdin.write("x\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "x\n")
        row = self.listed()[process.pid]
        self.assertEqual((row["state"], row["threads"]), ("no threads yet", 1))

    def test_a_native_program_says_why(self):
        process = self.started([obstest.WAITERS], LD_PRELOAD=os.environ["WEFT_LIBRARY"], WEFT="0")
        self.assertEqual(process.stdout.readline().split()[:1], ["ready"])
        row = self.listed()[process.pid]
        self.assertEqual((row["state"], row["threads"]), ("native", STORIES))
        self.assertIn("WEFT=0", row["why"])

    def test_programs_without_weft_are_not_listed(self):
        other, mine = self.victim(native=True), self.victim()
        listed = self.listed()
        self.assertNotIn(other.pid, listed)
        self.assertIn(mine.pid, listed)

    def test_one_in_another_namespace_has_both_numbers(self):
        if subprocess.run(["unshare", "-pf", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespaces here")
        outer = self.started(["unshare", "-pf", "--kill-child", obstest.WEFT, "run", "--workers", "2", "--",
                              obstest.WAITERS])
        self.assertEqual(outer.stdout.readline().split()[:1], ["ready"])
        rows = [p for p in self.listed().values() if p["program"] == self.name]
        self.assertEqual([(p["pid_inside"], p["threads"]) for p in rows], [(1, STORIES)])

    def test_bad_arguments_get_one_line(self):
        self.assert_refused(weft("ps", "x"), "'x'", "weft help ps")
        self.assert_refused(weft("ps", "--nonesuch"), "--nonesuch")


class Metrics(Look):
    def metrics(self, *args):
        done = weft("metrics", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.parsed(done.stdout)

    def parsed(self, text):
        """Values by series, after a look at the form of it all."""
        lines = text.split("\n")
        self.assertEqual(lines.pop(), "")
        is_open = lines[-1] == "# EOF"
        values, types = {}, {}
        for line in lines[:-1] if is_open else lines:
            if line.startswith("# TYPE "):
                name, kind = line.split()[2:]
                self.assertNotIn(name, types)
                types[name] = kind
            elif not line.startswith("# "):
                series, value = line.rsplit(" ", 1)
                family = series.partition("{")[0]
                suffix = {"counter": "_total", "info": "_info", "gauge": ""}[types[name]]
                self.assertEqual(family, name + (suffix if is_open else ""))
                self.assertTrue(is_open or types[name] != "info")
                self.assertNotIn(series, values)
                values[series] = float(value)
        return values

    def test_the_figures_are_those_of_a_dump(self):
        v = self.victim(threads=50, deadlock=True)
        m = self.metrics(v.pid)
        dump = json.loads(self.dump("--json", v.pid))
        self.assertEqual(sum(n for s, n in m.items() if s.startswith("weft_threads{")), dump["nr_threads"])
        self.assertEqual(m['weft_threads{state="parked",wait="poll"}'], 1)
        self.assertEqual(m['weft_threads{state="parked",wait="sleep"}'], 1)
        self.assertEqual(m["weft_workers"], len(dump["workers"]))
        self.assertEqual(sum(n for s, n in m.items() if s.startswith("weft_kernel_threads{")),
                         len(dump["kernel_threads"]))
        self.assertEqual(m["weft_deadlocked_threads"], sum(map(len, dump["deadlocks"])))
        self.assertGreater(m["weft_deadlocked_threads"], 0)
        self.assertGreater(m["weft_longest_call_seconds"], 0)  # the thread in flock()
        self.assertGreaterEqual(m["weft_parks_total"], 50)
        later = self.metrics(self.name)
        for series, n in m.items():
            if "_total" in series:
                self.assertGreaterEqual(later[series], n, series)
        self.assert_goes_on(v)

    def test_the_counters_are_those_of_stats(self):
        v = self.victim(WEFT_STATS="1")
        m = self.metrics(v.pid)
        v.process.stdin.close()
        v.process.stdin = open(os.devnull, encoding="ascii")
        stats = dict(line.removeprefix("weft:").rsplit(None, 1)
                     for line in v.end()[1].splitlines() if line.startswith("weft:   "))
        stats = {k.strip(): int(n) for k, n in stats.items()}
        for ours, theirs in (("parks", "parks"), ("handoffs", "hand-offs"), ("switches", "switches")):
            self.assertGreater(m[f"weft_{ours}_total"], 0)
            self.assertLessEqual(m[f"weft_{ours}_total"], stats[theirs])

    def awake(self, pid, until):
        """The time that workers were awake between two looks, each, its bounds by the clock, and the CPU time."""
        began = time.monotonic()
        first = self.metrics(pid)
        last, ended = first, began
        while not until(last["weft_cpu_seconds_total"] - first["weft_cpu_seconds_total"], ended - began):
            last = self.metrics(pid)
            ended = time.monotonic()
        run = [last[s] - first[s] for s in first if s.startswith("weft_worker_run_seconds_total{")]
        self.assertEqual(len(run), 2)
        self.assertGreaterEqual(min(run), 0)
        return run, ended - began, last["weft_cpu_seconds_total"] - first["weft_cpu_seconds_total"]

    def test_workers_that_run_threads_are_awake(self):
        """Never longer than the time that passed, and together at least as long as the kernel says that they ran."""
        run, passed, cpu = self.awake(self.victim().pid, lambda cpu, passed: cpu >= 0.5)
        self.assertLessEqual(max(run), passed + 0.001)
        self.assertGreaterEqual(sum(run), 0.9 * cpu - 0.03)  # which the kernel tells in hundredths, of other threads, too

    def test_workers_of_a_program_that_waits_are_not_awake(self):
        code = "import threading; threading.Thread(target=print, args=('ready',), kwargs={'flush': True}).start(); input()"
        p = subprocess.Popen([obstest.WEFT, "run", "--workers", "2", "--", "/usr/bin/python3", "-c", code], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=obstest.environment())
        self.addCleanup(p.communicate)
        self.assertEqual(p.stdout.readline(), "ready\n")
        run, passed, _ = self.awake(p.pid, lambda cpu, passed: passed >= 0.5)
        self.assertLess(sum(run), 0.5 * passed)

    def test_switches_of_threads_are_those_of_stats(self):
        v = self.victim(WEFT_STATS="1")
        done = weft("top", "--json", "-d", "0.01", "-n", "2", v.pid)
        looks = [json.loads(line) for line in done.stdout.splitlines()]
        v.process.stdin.close()
        v.process.stdin = open(os.devnull, encoding="ascii")
        stats = [line.split() for line in v.end()[1].splitlines() if line.startswith("weft:   switches ")]
        total = int(stats[0][-1])
        sums = [sum(t["switches"] for t in look["threads"]) for look in looks]
        self.assertLess(0, sums[0])
        self.assertLessEqual(sums[0], sums[1])
        self.assertLessEqual(sums[1], total)

    def test_a_parser_of_others_accepts_it(self):
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("no python3-prometheus-client")
        v = self.victim()
        self.assertGreater(len(list(text_string_to_metric_families(weft("metrics", v.pid).stdout))), 15)

    def test_the_dashboard_asks_for_what_is_there(self):
        with open(os.path.join(os.path.dirname(obstest.__file__), "../../share/grafana.json"), encoding="utf-8") as f:
            dashboard = json.load(f)
        exported = {series.partition("{")[0] for series in self.metrics(self.victim().pid)}
        labels = set(re.findall(r'[{,](\w+)="', weft("metrics", self.name).stdout)) | {"job", "instance"}
        panels = dashboard["panels"]
        self.assertEqual(len({p["id"] for p in panels}), len(panels))
        asked = set()
        for expr in [t["expr"] for p in panels for t in p["targets"]] + [v["query"] for v in dashboard["templating"]["list"]]:
            asked |= set(re.findall(r"\bweft_\w+", expr))
            self.assertLessEqual(set(re.findall(r"[{,](\w+)=~?\"", expr)), labels, expr)
            self.assertEqual([expr.count(c) for c in "({["], [expr.count(c) for c in ")}]"], expr)
            for by in re.findall(r"by \((\w+)\)", expr):
                self.assertIn(by, labels)
        self.assertLessEqual(asked, exported)
        self.assertGreater(len(asked), 15)
        places = [(x, y) for p in panels for g in [p["gridPos"]] for x in range(g["x"], g["x"] + g["w"])
                  for y in range(g["y"], g["y"] + g["h"])]
        self.assertEqual(len(set(places)), len(places), "a panel lies on another")
        self.assertEqual(max(places)[0], 23)

    def test_names_are_quoted(self):
        evil = os.path.join(self.directory(), 'a"b\\c\nd')
        shutil.copy(obstest.WAITERS, evil)
        obstest.WAITERS = evil
        v = self.victim()
        info = [s for s in self.metrics(v.pid) if s.startswith("weft_process_info")][0]
        self.assertIn('/a\\"b\\\\c?d"', info)

    def test_a_file_is_renewed_and_goes_with_the_process(self):
        v = self.victim()
        file = os.path.join(self.directory(), "weft.prom")
        self.assertEqual(weft("metrics", "-o", file, v.pid).returncode, 0)
        first = os.stat(file).st_ino
        self.assertEqual(os.listdir(os.path.dirname(file)), ["weft.prom"])
        writer = self.started([obstest.WEFT, "metrics", "-o", file, "--every", "1", str(v.pid)])
        deadline = time.monotonic() + obstest.LIMIT_S
        while os.stat(file).st_ino == first and time.monotonic() < deadline:
            time.sleep(0.01)
        with open(file, encoding="utf-8") as f:
            self.parsed(f.read())
            f.seek(0)
            self.assertNotIn("# EOF", f.read())  # node_exporter knows the older format only
        v.close()
        self.assertEqual(writer.wait(obstest.LIMIT_S), 3)
        self.assertEqual(os.listdir(os.path.dirname(file)), [])

    def served(self, pid):
        server = subprocess.Popen([obstest.WEFT, "metrics", "--listen", "0", str(pid)], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=obstest.environment())
        self.addCleanup(self.ended, server)
        host, port = server.stderr.readline().split("//")[1].split("/")[0].split(":")
        self.assertEqual(host, "127.0.0.1")
        return server, int(port)

    def ask(self, port, request):
        with socket.create_connection(("127.0.0.1", port), obstest.LIMIT_S) as s:
            s.sendall(request)
            answer = b""
            while piece := s.recv(65536):
                answer += piece
        head, _, body = answer.decode().partition("\r\n\r\n")
        return head, body

    def test_a_server_answers_also_after_hostile_clients(self):
        v = self.victim()
        server, port = self.served(v.pid)
        page = b"GET /metrics HTTP/1.1\r\nHost: x\r\naccept: application/openmetrics-text;version=1.0.0,*/*\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port)) as silent:
            silent.sendall(b"GET /met")
            head, body = self.ask(port, page)  # once the silent one's time is over
            self.assertEqual(silent.recv(1), b"")
        self.assertTrue(head.startswith("HTTP/1.1 200 "), head)
        self.assertIn("application/openmetrics-text", head)
        self.parsed(body)
        self.assertTrue(body.endswith("\n# EOF\n"))
        for others in (b"", b"Accept: */*\r\n", b"X: \r\nUser-Agent: application/openmetrics-text\r\nAccept: text/plain\r\n"):
            head, body = self.ask(port, b"GET /metrics HTTP/1.1\r\n" + others + b"\r\n")
            self.assertIn("text/plain; version=0.0.4", head)
            self.parsed(body)
            self.assertNotIn("# EOF", body)
        self.assertTrue(self.ask(port, b"GET / HTTP/1.1\r\n\r\n")[0].startswith("HTTP/1.1 404 "))
        self.assertTrue(self.ask(port, b"PUT /metrics HTTP/1.1\r\n\r\n")[0].startswith("HTTP/1.1 405 "))
        try:
            self.assertEqual(self.ask(port, b"x" * 100000)[1], "")
        except (ConnectionResetError, BrokenPipeError):
            pass
        self.assertTrue(self.ask(port, page)[0].startswith("HTTP/1.1 200 "))
        self.assert_goes_on(v)
        v.close()
        self.assertEqual(server.wait(obstest.LIMIT_S), 3)

    def test_a_thread_that_finds_no_worker_is_told(self):
        """Two threads compute on one worker; when the process is stopped, one of them is ready for ever."""
        v = self.victim(workers=1)
        _, port = self.served(v.pid)

        def oldest():
            return self.parsed(self.ask(port, b"GET /metrics HTTP/1.1\r\n\r\n")[1])["weft_oldest_ready_seconds"]
        deadline = time.monotonic() + obstest.LIMIT_S
        while not oldest() and time.monotonic() < deadline:
            pass
        v.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, v.pid, os.WSTOPPED | os.WNOWAIT)
        before = oldest()
        began = time.monotonic()
        self.assertGreater(before, 0)
        time.sleep(0.2)
        passed = time.monotonic() - began
        self.assertGreaterEqual(oldest(), passed)
        v.process.send_signal(signal.SIGCONT)
        self.assert_goes_on(v)

    def test_bad_arguments_get_one_line(self):
        self.assert_refused(weft("metrics"), "which process?")
        self.assert_refused(weft("metrics", "-f", "xml", os.getpid()), "-f takes openmetrics or text", "'xml'")
        self.assert_refused(weft("metrics", "-f", "text", "--listen", "0", os.getpid()), "-f goes without --listen")
        self.assert_refused(weft("metrics", "1", "2"), "one process")
        self.assert_refused(weft("metrics", os.getpid()), "runs without weft")
        self.assert_refused(weft("metrics", "--every", "0", "-o", "x", os.getpid()), "--every", "'0'")
        self.assert_refused(weft("metrics", "--every", "5", os.getpid()), "-o FILE")
        v = self.victim()
        for place in ("x", "127.0.0.1", "127.0.0.1:99999", "localhost:1", "[::1:5"):
            self.assert_refused(weft("metrics", "--listen", place, v.pid), "ADDRESS:PORT")
        self.assert_refused(weft("metrics", "-o", "/nonesuch/x", v.pid), "/nonesuch/x")


class Top(Look):
    def looks(self, *args):
        done = weft("top", "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_threads_that_compute_come_first(self):
        v = self.victim(threads=50)
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            look = self.looks("-d", "0.2", v.pid)[0]
            if all(t["cpu_percent"] > 0 for t in look["threads"][:2]):
                break
        self.assertEqual({t["name"] for t in look["threads"][:2]}, obstest.BUSY)
        self.assertEqual(look["nr_threads"], 50 + STORIES)
        self.assertEqual(look["running"] + look["ready"] + look["waiting"], 50 + STORIES)
        self.assertEqual(len(look["threads"]), 50 + STORIES)
        self.assertEqual(look["deadlocked"], 0)
        self.assert_goes_on(v)

    def test_what_threads_wait_for_is_what_a_dump_says(self):
        v = self.victim(deadlock=True)
        dump = json.loads(self.dump("--json", v.pid))
        look = self.looks("-d", "0.01", "--sort", "tid", self.name)[0]
        self.assertEqual(look["deadlocked"], sum(map(len, dump["deadlocks"])))
        self.assertEqual([t["tid"] for t in look["threads"]], sorted(t["tid"] for t in dump["threads"]))
        theirs = {t["tid"]: t for t in dump["threads"]}
        for ours in look["threads"]:
            dumped = theirs[ours["tid"]]
            self.assertEqual(ours["name"], dumped["name"])
            self.assertEqual("waits_for" in ours, "waits_for" in dumped, ours)
            for key in ("owner", "fd"):
                self.assertEqual(ours.get("waits_for", {}).get(key), dumped.get("waits_for", {}).get(key), ours)
        text = weft("top", "--once", "-d", "0.01", "--limit", "100", v.pid).stdout
        self.assertIn("!! deadlock", text)
        self.assertIn(f'held by thread {v.pid} "', text)
        self.assertIn("more", weft("top", "-d", "0.01", "--limit", "3", v.pid).stdout.splitlines()[-1])

    def test_shares_are_of_the_time(self):
        """Two threads compute on one worker: each runs for a half, and is ready for the other one."""
        v = self.victim(workers=1)
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            look = self.looks("-d", "1", v.pid)[0]
            busy = [t for t in look["threads"] if t["name"] in obstest.BUSY]
            for t in look["threads"]:
                self.assertAlmostEqual(t["run_percent"] + t["ready_percent"] + t["wait_percent"], 100, 3)
                if t["name"] not in obstest.BUSY:
                    self.assertEqual(t["wait_percent"], 100, t)
            if all(20 < t["run_percent"] < 80 and t["wait_percent"] == 0 for t in busy):
                break
        self.assertAlmostEqual(sum(t["run_percent"] for t in busy), 100, delta=15)

    def test_figures_grow_from_look_to_look(self):
        v = self.victim()
        looks = self.looks("-n", "3", "-d", "0.05", v.pid)
        self.assertEqual(len(looks), 3)
        self.assertLess(looks[0]["uptime_ms"], looks[2]["uptime_ms"] + 1)
        for look in looks:
            self.assertGreaterEqual(look["interval_ms"], 50)
        before = {t["tid"]: t["switches"] for t in looks[0]["threads"]}
        for t in looks[2]["threads"]:
            self.assertGreaterEqual(t["switches"], before[t["tid"]])

    def test_without_a_process_all_are_shown(self):
        v = self.victim(threads=20)
        rows = {p["pid"]: p for p in self.looks("-d", "0.01")[0]["processes"]}
        self.assertEqual(rows[v.pid]["nr_threads"], 20 + STORIES)
        self.assertNotIn("threads", rows[v.pid])
        row = [line.split() for line in weft("top", "-d", "0.01").stdout.splitlines() if line.split()[0] == str(v.pid)]
        self.assertEqual(row[0][3], str(20 + STORIES))

    def test_the_end_of_the_process_is_told(self):
        v = self.victim()
        top = self.started([obstest.WEFT, "top", "--json", "-n", "100000", "-d", "0.05", str(v.pid)])
        self.assertEqual(json.loads(top.stdout.readline())["pid"], v.pid)
        v.close()
        self.assertEqual(top.wait(obstest.LIMIT_S), 3)

    def test_bad_arguments_get_one_line(self):
        self.assert_refused(weft("top", "1", "2"), "one process")
        self.assert_refused(weft("top", os.getpid()), "runs without weft")
        for option, value in (("-n", "0"), ("-d", "0"), ("-d", "1x"), ("-d", "nan"), ("--sort", "x"), ("--limit", "0")):
            self.assert_refused(weft("top", option, value), option, f"'{value}'")


class Names(Look):
    def test_a_name_stands_for_its_one_process(self):
        v = self.victim()
        for name in (self.name, self.name[:15]):
            self.assertEqual(json.loads(self.dump("--json", name))["pid"], v.pid)

    def test_a_name_of_two_is_refused_with_both(self):
        a, b = self.victim(), self.victim()
        self.assert_refused(weft("dump", self.name), "2 processes", str(a.pid), str(b.pid))

    def test_a_name_of_none_is_refused(self):
        self.assert_refused(weft("dump", self.name), self.name, "weft ps")
        self.assert_refused(weft("dump", "-0"), "-0")


if __name__ == "__main__":
    obstest.main(only=sys.argv[1:])
