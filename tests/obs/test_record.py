# SPDX-License-Identifier: Apache-2.0
"""weft run --record and weft trace: what was recorded comes out whole, in three formats, of a process and of a core."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import check_trace
import obstest
from obstest import weft
from recording import RECORDED, RecordTest


class Snapshots(RecordTest):
    def test_what_is_written_passes_the_strict_reader(self):
        """Counts are those of the rings, run times those of the events, names those of the threads."""
        for options, workers in ((["--record=1M,calls"], 2), (["--record"], 1)):
            p = self.start(*options, workers=workers)
            events, trace, said = self.both(p.pid)
            self.assertEqual(said[2], workers)
            self.assertEqual(said[5], 0)
            count = {}
            for e in events:
                count[e[3]] = count.get(e[3], 0) + 1
            threads = {e[2] for e in events if e[2]}
            self.assertEqual(len(threads), said[3])
            self.assertEqual(count["spawn"], 7)
            self.assertEqual(count["exit"], 7)
            self.assertEqual(sorted(set(trace.names)), sorted(threads))
            self.assertEqual(trace.names[p.pid], "recorded")
            self.assertEqual(trace.pid, p.pid)
            # A thread that comes to a CPU has a RUN, or comes back by itself.
            came = sum(1 for s in trace.switches if s[4])
            on_worker = [e for e in events if e[3] == "back" and e[4] != "on no worker"]
            self.assertGreaterEqual(came, count["run"])
            self.assertLessEqual(came, count["run"] + len(on_worker) + count.get("bind", 0))
            self.assertEqual(trace.kinds["wait"], count["park"] + count.get("direct", 0))
            self.assertEqual(trace.instants, count.get("preempt", 0))
            for call in ("futex", "flock", "clone3"):
                self.assertEqual(call in trace.slices, "calls" in options[0], trace.slices)
            if "calls" in options[0]:
                self.assertEqual(sum(trace.returned.values()), count["return"])
            self.check_times(events, trace)
            self.assertGreaterEqual(max(v for _, v in trace.counters["ready threads"]), 1)
            self.assertIn(max(v for _, v in trace.counters["running threads"]), (workers, workers + 1))  # and a bound one
            self.check_memory(trace, p.pid)
            self.assertEqual(p.communicate("", timeout=obstest.LIMIT_S)[1], "")
            self.assertEqual(p.returncode, 0)

    def check_memory(self, trace, pid):
        with open(f"/proc/{pid}/statm", encoding="ascii") as f:
            now = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.assertEqual([v for _, v in trace.counters["memory"]], [now])

    def check_times(self, events, trace):
        """
        By a simpler reader of the text: from each RUN of a thread to where its kernel thread says that it leaves; to the
        next RUN, where that one follows directly, which the kernel may have delayed.
        """
        leaves = {"park", "exit", "preempt", "bind", "handoff"}
        now, left, ran = {}, {}, {}
        for at, k, tid, what, rest in events:
            if what == "run":
                old, left_at = now.pop(k, None), left.pop(k, at)
                if old:
                    ran[old[0]] = ran.get(old[0], 0) + (at if tid else left_at) - old[1]
                now[k] = (int(re.match(r"of thread (\d+)", rest)[1]), at)
            elif what in leaves and "by the monitor" not in rest and k in now and now[k][0] == tid:
                left[k] = at
            elif what == "back" and rest != "on no worker" and k in left:
                ran[tid] = ran.get(tid, 0) + left.pop(k) - now[k][1]
                now[k] = (tid, at)
        for k, at in left.items():
            tid, since = now[k]
            ran[tid] = ran.get(tid, 0) + at - since
        busy = {tid: s for tid, s in ran.items() if s > 0.005}
        self.assertGreaterEqual(len(busy), 3)
        for tid, seconds in busy.items():
            self.assertLess(abs(trace.run_ns.get(tid, 0) / 1e9 - seconds), 0.01 * seconds + 0.001, (tid, ran, trace.run_ns))

    def top(self, pid):
        done = weft("top", "--json", "-d", "0.01", pid)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def quiet(self, pid):
        """Its counters, once they stand still."""
        before, deadline = None, time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            look = self.top(pid)
            if look["total"] == before:
                return look
            before = look["total"]
        self.fail("it does not become quiet")

    def test_rings_counters_and_metrics_say_the_same(self):
        p = self.start("--record=1M,calls")
        self.ask(p, "stay")
        look = self.quiet(p.pid)
        events, _, said = self.both(p.pid)
        count = {}
        for e in events:
            nr = int(re.match(r"of (\d+)", e[4])[1]) if e[3] == "steal" else 1
            count[e[3]] = count.get(e[3], 0) + nr
        for name, event in (("switches", "run"), ("parks", "park"), ("steals", "steal"), ("handoffs", "handoff"),
                            ("preemptions", "preempt"), ("idle_sleeps", "idle")):
            self.assertEqual(look["total"][name], count.get(event, 0), (name, look["total"], count))
        runs = {}
        for e in events:
            if e[3] == "run":
                tid = int(re.match(r"of thread (\d+)", e[4])[1])
                runs[tid] = runs.get(tid, 0) + 1
        self.assertEqual(len(look["threads"]), 4)
        for t in look["threads"]:
            self.assertEqual(t["switches"], runs[t["tid"]], t)
        metrics = weft("metrics", p.pid).stdout
        self.assertIn(f"\nweft_trace_events_total {said[4]}\n", metrics)
        self.assertIn("\nweft_trace_lost_total 0\n", metrics)
        self.assertIn(f"\nweft_switches_total {count['run']}\n", metrics)

    def test_what_rings_lost_is_counted(self):
        p = self.start("--record=4K", rounds=2000)
        self.quiet(p.pid)
        metrics = weft("metrics", p.pid).stdout
        figures = {name: int(n) for name, n in re.findall(r"^weft_trace_(\w+)_total (\d+)", metrics, re.M)}
        # 128 are in each ring that is full, and a carrier's is.
        self.assertGreater(figures["lost"], 1000)
        self.assertGreaterEqual(figures["events"] - figures["lost"], 128)
        self.assertLess(figures["events"] - figures["lost"], 128 * 20)

    def delay_ns(self, pid):
        """How long the kernel threads were ready and had no processor: the trace has them run then."""
        total = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[1])
        return total

    def test_run_times_are_the_runtimes_own(self):
        p = self.start("--record=1M")
        self.ask(p, "stay")
        look = self.quiet(p.pid)
        trace, _ = self.check(p.pid)
        delay = self.delay_ns(p.pid)
        stayed = [t for t in look["threads"] if t["tid"] != p.pid]
        self.assertEqual(len(stayed), 3, look["threads"])
        for t in stayed:
            ran = trace.run_ns[t["tid"]]
            self.assertGreater(ran, 0.99 * t["run_ns"], t)
            self.assertLess(ran, 1.01 * t["run_ns"] + delay, (t, delay))

    def test_the_numbers_are_perfettos(self):
        if not check_trace.check_schema():
            self.skipTest("the Python package perfetto is not installed")

    def test_damage_is_seen_by_the_strict_reader(self):
        """Else that reader would prove nothing: of the bytes that are others most are noticed."""
        p = self.start("--record=1M,calls", rounds=2)
        file = self.write("-o", self.path("t.pftrace"), p.pid)[0]
        with open(file, "rb") as f:
            whole = f.read()
        sound = check_trace.Trace(whole)
        seed = int(os.environ.get("WEFT_SEED", 0)) or random.randrange(1 << 32)
        print(f"# WEFT_SEED={seed}", flush=True)
        chance = random.Random(seed)
        unseen = 0
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
            try:
                trace = check_trace.Trace(bytes(damaged))
                unseen += (trace.run_ns, trace.slice_ns) == (sound.run_ns, sound.slice_ns)
            except check_trace.Bad:
                pass
        self.assertLess(unseen, 20)  # some go into bytes of a name, which nothing contradicts
        for _ in range(20):
            at = chance.randrange(len(whole))
            try:
                trace = check_trace.Trace(whole[:at])
                self.assertNotEqual(len(trace.switches), len(sound.switches), at)
            except check_trace.Bad:
                pass

    def test_json(self):
        p = self.start("--record=1M,calls")
        self.both(p.pid)
        file = self.path("t.json")
        self.write("-f", "json", "-o", file, p.pid)
        with open(file, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        trace, _ = self.check(p.pid)
        open_, begun, counters = {}, {}, {}
        for e in events:
            place = (e["pid"], e["tid"])
            if e["ph"] == "B":
                open_.setdefault(place, []).append(e["name"])
                begun[e.get("cat", "run")] = begun.get(e.get("cat", "run"), 0) + 1
            elif e["ph"] == "E":
                open_[place].pop()
            elif e["ph"] == "C":
                self.assertEqual(place, (p.pid, 0))
                counters.setdefault(e["name"], []).append(e)
            else:
                self.assertIn(e["ph"], "iM")
        self.assertEqual([o for o in open_.values() if o], [])
        self.assertEqual(begun["run"], sum(1 for s in trace.switches if s[4]))
        self.assertEqual(begun["wait"] + begun["call"], sum(trace.slices.values()))
        self.assertEqual({e["pid"] for e in events}, {0, p.pid})
        self.assertEqual(set(counters), {"ready threads", "running threads", "memory"})
        for name in ("ready threads", "running threads"):
            self.assertEqual([e["args"] for e in counters[name]], [{"threads": v} for _, v in trace.counters[name]])
        for many in counters.values():
            times = [e["ts"] for e in many]
            self.assertEqual(times, sorted(times))
        self.assertEqual([list(e["args"]) for e in counters["memory"]], [["bytes"]])
        self.assertGreater(counters["memory"][0]["args"]["bytes"], 1 << 20)

    def test_last_is_no_more_than_that(self):
        p = self.start("--record")
        whole, _, _ = self.both(p.pid)
        part, said = self.lines("--last", "10ms", p.pid)
        self.assertLessEqual(said[1], 0.0101)
        self.assertEqual([e[1:] for e in part], [e[1:] for e in whole[-len(part):]])
        self.assertLess(len(part), len(whole))

    def test_what_was_written_over_is_cut_off_for_all(self):
        """A ring of 128 events: what is older than the oldest event of a full one is no picture."""
        p = self.start("--record=4K,calls", rounds=2000)
        trace, said = self.check(p.pid)
        self.assertLess(said[4], 128 * 2 * 20)
        self.assertGreater(len(trace.switches), 10)
        self.assertEqual(said[5], 0)

    def test_the_file(self):
        p = self.start("--record")
        done = subprocess.run([obstest.WEFT, "trace", str(p.pid)], cwd=self.dir, env=obstest.environment(),
                              capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout.startswith(f"wrote weft-{p.pid}.pftrace: "), done)
        file = self.path(f"weft-{p.pid}.pftrace")
        self.assertEqual(os.stat(file).st_mode & 0o777, 0o600)
        check_trace.read(file)
        done = weft("trace", "-f", "text", "-o", "-", p.pid)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "^wrote -: ")
        self.assertRegex(done.stdout, "(?m) run of thread ")
        os.symlink(file, self.path("link"))
        os.link(file, self.path("other"))
        for name, words in ((self.path("no/file"), "No such file"), (self.dir, "Is a directory"),
                            ("/dev/full", "No space left"), (self.path("link"), "symbolic link"),
                            (self.path("other"), "another name")):
            self.assert_refused(weft("trace", "-o", name, p.pid), f"cannot write {name}: ", words)
        self.assertTrue(os.path.exists("/dev/full"))

    def test_a_file_that_does_not_fit_does_not_stay(self):
        p = self.start("--record=1M,calls")
        file = self.path("t.pftrace")
        done = subprocess.run(["bash", "-c", 'ulimit -f 4; trap "" XFSZ; exec "$0" trace -o "$1" "$2"', obstest.WEFT, file,
                               str(p.pid)], env=obstest.environment(), capture_output=True, text=True, check=False)
        self.assert_refused(done, f"cannot write {file}: File too large")
        self.assertFalse(os.path.exists(file))

    def test_what_cannot_be_is_refused(self):
        p = self.start()
        self.assert_refused(weft("trace", p.pid), f"process {p.pid} keeps no events; start it with 'weft run --record', or use 'weft trace --arm'")
        self.assert_refused(weft("trace", os.getpid()), "without weft")
        self.assert_refused(weft("trace"), "which process?")
        self.assert_refused(weft("trace", "1", "2"), "one process or one core file")
        self.assert_refused(weft("trace", "no-such-program"), "no process under weft")
        self.assert_refused(weft("trace", "--core", self.path("none")), "none")
        self.assert_refused(weft("trace", "-f", "xml", "1"), "-f takes perfetto, json or text, not 'xml'")
        self.assert_refused(weft("trace", "-o", "", "1"), "-o takes the name of a file")
        self.assert_refused(weft("trace", "--core", "x", "--for", "1s"), "a core does not go on")
        self.assert_refused(weft("trace", "--exe", "x", "1"), "--exe goes with --core")
        for time_ in ("5", "s", "-1s", "0s", "25h", "1e3", "nan s", "0x1s", "1 s"):
            self.assert_refused(weft("trace", "--last", time_, "1"), "--last takes a time", f"'{time_}'")

    def test_record_is_checked_as_the_other_options(self):
        for bad in ("3K", "2G", "x", "1M,", ",calls", "1M,call", "-1", "1T", "99999999999999999999"):
            self.assert_refused(weft("run", f"--record={bad}", "true"), "--record takes a size", f"'{bad}'")
            self.assert_refused(weft("run", "true", WEFT_RECORD=bad), "WEFT_RECORD takes a size", f"'{bad}'")
        for good, events in (("1", True), ("off", False), ("64K", True), ("calls", True), ("1M,calls", True)):
            p = self.start(WEFT_RECORD=good)
            self.assertEqual(weft("trace", "-o", self.path("t"), p.pid).returncode, 0 if events else 125, good)

    def test_without_memory_for_rings_the_program_goes_on(self):
        command = f'ulimit -v 3000000; exec "$0" run --workers 2 --record=1G -- {RECORDED} 20'
        done = subprocess.run(["bash", "-c", command, obstest.WEFT], env=obstest.environment(), input="",
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "ready\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, "^weft: no memory for the events of a kernel thread, which goes on without: RLIMIT_AS")


class Cores(RecordTest):
    def test_a_core_has_them_up_to_the_end(self):
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
            if f.read().strip() not in ("core", "core.%p"):
                self.skipTest("cores do not land in the working directory here")
        command = f'ulimit -c unlimited; exec "$0" run --workers 2 --record=256K,calls -- {RECORDED} 20'
        done = subprocess.run(["bash", "-c", command, obstest.WEFT], env=obstest.environment(), input="crash\n", cwd=self.dir,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)
        cores = [f for f in os.listdir(self.dir) if f.startswith("core")]
        if not cores:
            self.skipTest("no core was written")
        core = self.path(cores[0])
        trace, said = self.check("--core", core)
        events, _ = self.lines("--core", core)
        self.assertEqual(len([e for e in events if e[3] == "exit"]), 7)
        self.assertGreater(said[1], 0.05)  # seconds: it computed for longer
        self.assertLess(said[1], 30)
        self.assertGreater(len(trace.switches), 40)
        # A damaged one is refused or shown, and takes no harm.
        with open(core, "r+b") as f:
            size = os.path.getsize(core)
            for at in range(0, size, 4096 * 7):
                f.seek(at)
                f.write(b"\xff" * 64)
        done = weft("trace", "-o", self.path("damaged"), "--core", core)
        self.assertIn(done.returncode, (0, 125), done.stderr)


obstest.main(only=sys.argv[1:])
