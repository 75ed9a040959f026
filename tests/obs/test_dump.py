# SPDX-License-Identifier: Apache-2.0
"""`weft dump`, the gdb script and the counters, on a program whose threads wait in known places."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

import obstest
from obstest import ObsTest, weft

# Name of the thread: function that it is in, kind of wait.
PLACES = {
    "mutex": ("waits_for_mutex", "mutex"),
    "cond": ("waits_for_cond", None),
    "sem": ("waits_for_sem", None),
    "read": ("waits_in_read", "fd"),
    "accept": ("waits_in_accept", "fd"),
    "sleep": ("waits_in_sleep", "sleep"),
    "poll": ("waits_in_poll", "poll"),
    "join": ("waits_for_join", "join"),
    "pause": ("waits_in_pause", "signal"),
    "interrupted": ("is_interrupted", None),
}
SPINNERS = {"spin": "spins", "spin-too": "spins_too"}
FLOCK = 73  # the number of the call on x86-64
SCRIPT = os.environ["WEFT_GDB_SCRIPT"]


def by_name(dump):
    return {t["name"]: t for t in dump["threads"]}


def functions(thread):
    return [f.get("function") for f in thread["frames"]]


class Dump(ObsTest):
    def look(self, *args):
        return json.loads(self.dump("--json", *args))

    def assert_places(self, dump):
        threads = by_name(dump)
        for name, (function, kind) in PLACES.items():
            self.assertIn(function, functions(threads[name]), name)
            self.assertIn("run", functions(threads[name]), name)
            self.assertEqual(threads[name]["state"], "parked", name)
            if kind:
                self.assertEqual(threads[name]["waits_for"]["kind"], kind, name)
        self.assertIn("waits_in_flock", functions(threads["flock"]))
        self.assertEqual(threads["flock"]["call"], FLOCK)
        for name, function in SPINNERS.items():
            self.assertIn(function, functions(threads[name]), name)
            self.assertIn(threads[name]["state"], ("running", "ready"), name)

    def test_every_thread_is_found_where_it_waits(self):
        v = self.victim()
        dump = self.look(v.pid)
        self.assertEqual(dump["nr_threads"], 14)
        self.assertEqual(len(dump["threads"]), 14)
        self.assert_places(dump)
        threads = by_name(dump)
        self.assertEqual(threads["mutex"]["waits_for"]["owner"], v.pid)
        self.assertIn("held_mutex", threads["mutex"]["waits_for"]["what"])
        self.assertEqual(threads["join"]["waits_for"]["owner"], threads["sleep"]["tid"])
        self.assertEqual(threads["read"]["waits_for"]["fd"], v.pipe)
        self.assertIn("pipe:", threads["read"]["waits_for"]["what"])
        self.assertEqual(threads["accept"]["waits_for"]["fd"], v.listener)
        self.assertIn(f"127.0.0.1:{v.port}", threads["accept"]["waits_for"]["what"])
        self.assertGreater(threads["sleep"]["waits_for"]["left_ms"], 9_000_000)
        self.assertEqual(v.end()[0], 0)

    def test_a_signal_handler_is_crossed(self):
        thread = by_name(self.look(self.victim().pid))["interrupted"]
        names = functions(thread)
        self.assertLess(names.index("in_handler"), names.index("is_interrupted"))

    def test_a_preempted_thread_has_a_stack(self):
        v = self.victim(workers=1)
        for _ in range(20):
            threads = by_name(self.look(v.pid))
            spinners = [threads[name] for name in SPINNERS]
            for t in spinners:
                self.assertIn("run", functions(t))
            if any(t["preempted"] for t in spinners):
                return
            time.sleep(0.02)
        self.fail("one of two threads that never wait must be preempted")

    def test_workers_and_kernel_threads_are_listed(self):
        dump = self.look(self.victim(workers=2).pid)
        self.assertEqual(len(dump["workers"]), 2)
        roles = [k["role"] for k in dump["kernel_threads"]]
        self.assertEqual(roles.count("door"), 1)
        running = {k["thread"] for k in dump["kernel_threads"] if "thread" in k}
        self.assertTrue(running <= {t["tid"] for t in dump["threads"]})

    def test_text_names_thread_reason_and_function(self):
        v = self.victim()
        text = self.dump(v.pid)
        self.assertIn("waits for mutex held_mutex", text)
        self.assertIn(f'held by thread {v.pid}', text)
        for function, _ in PLACES.values():
            self.assertIn(function, text)

    def test_reasons_are_said_in_plain_words(self):
        text = self.dump(self.victim().pid)
        self.assertRegex(text, r'"sleep": parked, sleeps, for ')
        self.assertRegex(text, r'"join": parked, waits for the end of thread \d+ "sleep"')
        self.assertRegex(text, r"\nthe process was stopped for [\d.]+ ms\n")

    def test_signals_that_wait_for_the_process_are_shown(self):
        source = ("import os, signal, sys, threading\n"
                  "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGRTMIN + 3})\n"
                  "thread = threading.Thread(target=sys.stdin.read)\n"
                  "thread.start()\n"
                  "os.kill(os.getpid(), signal.SIGUSR1)\n"
                  "print('ready', flush=True)\n"
                  "thread.join()\n")
        with subprocess.Popen([obstest.WEFT, "run", "--", sys.executable, "-c", source], env=obstest.environment(),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            os.kill(process.pid, signal.SIGRTMIN + 3)
            deadline = time.monotonic() + obstest.LIMIT_S
            pending = 0
            while pending != 1 << 9 | 1 << 36 and time.monotonic() < deadline:  # the door may have one in its hand
                pending = int(json.loads(weft("dump", "--json", process.pid).stdout)["signals_pending"], 16)
            text = weft("dump", process.pid).stdout
            process.stdin.close()
        self.assertEqual(pending, 1 << 9 | 1 << 36)
        self.assertIn("\nsignals pending for the process: USR1 37\n", text)

    def test_a_deadlock_is_named(self):
        v = self.victim(deadlock=True)
        dump = self.look(v.pid)
        threads = by_name(dump)
        circles = [("left", "right"), ("joins", "joined")]  # and not who only waits for one of them
        self.assertEqual(sorted(sorted(c) for c in dump["deadlocks"]),
                         sorted(sorted(threads[name]["tid"] for name in c) for c in circles))
        self.assertEqual(threads["bystander"]["waits_for"]["owner"], threads["left"]["tid"])
        text = self.dump(v.pid)
        self.assertIn("DEADLOCK of 2 threads", text)
        self.assertIn("waits for mutex right at", text)
        self.assertIn("waits for mutex left at", text)

    def test_no_deadlock_is_claimed_where_there_is_none(self):
        self.assertEqual(self.look(self.victim(threads=100).pid)["deadlocks"], [])

    def test_a_stopped_process_stays_stopped(self):
        v = self.victim()
        os.kill(v.pid, signal.SIGSTOP)
        self.wait_state(v.pid, "T")
        self.assert_places(self.look(v.pid))
        self.wait_state(v.pid, "T")
        os.kill(v.pid, signal.SIGCONT)
        self.assert_goes_on(v)

    def wait_state(self, pid, wanted):
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
            if state == wanted:
                return
            time.sleep(0.01)
        self.fail(f"the process is in state {state}, not {wanted}")

    def test_a_dump_that_is_killed_leaves_the_program_running(self):
        v = self.victim(threads=2000)
        for delay in (0.001, 0.003, 0.006, 0.01, 0.02, 0.04):
            dump = subprocess.Popen([obstest.WEFT, "dump", str(v.pid)], env=obstest.environment(),
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            dump.kill()
            dump.wait()
            self.assert_goes_on(v)
        self.assertEqual(v.end()[0], 0)

    def test_equal_stacks_are_shown_once(self):
        v = self.victim(threads=300)
        text = self.dump(v.pid)
        # The crowd and the thread "cond" wait in the same place.
        self.assertIn("301 threads: parked, wait for", text)
        self.assertEqual(text.count(" waits_for_cond+"), 1)
        listed = self.dump("--no-group", v.pid)
        self.assertEqual(listed.count("waits_for_cond+"), 301)

    def test_stacks_that_wait_come_by_their_time(self):
        """A crowd at one place has waited longest together; who runs is not there."""
        v = self.victim(threads=20, deadlock=True)
        text = self.dump("--waits", v.pid)
        for name in obstest.BUSY | {"worker 0"}:
            self.assertNotIn(name, text)
        heads = re.findall(r"^(?:thread|[\d,]+ threads).*?: (?:parked|in call).*$", text, re.M)
        self.assertRegex(heads[0], r"^21 threads: parked, wait for \w+, together for [\d.]+ (ms|s|min), the longest for ")
        self.assertIn("\nDEADLOCK of ", text)
        scale = {"ms": 1e-3, "s": 1, "min": 60}
        spans = [float(n) * scale[unit] for head in heads
                 for n, unit in re.findall(r"for ([\d.]+) (ms|s|min)\b", head)[:1]]
        self.assertGreater(len(spans), 5)
        for longer, shorter in zip(spans, spans[1:]):
            self.assertLessEqual(shorter, 1.06 * longer)  # they are rounded
        self.assert_refused(weft("dump", "--waits", "--json", v.pid), "either --waits or --json")

    def test_one_thread_alone(self):
        v = self.victim(deadlock=True)
        all_threads = json.loads(self.dump("--json", v.pid))["threads"]
        waits = [t for t in all_threads if t.get("waits_for", {}).get("owner")][0]
        one = json.loads(self.dump("--json", "--thread", waits["tid"], v.pid))["threads"]
        self.assertEqual([(t["tid"], t["name"], len(t["frames"]), t["waits_for"]["owner"]) for t in one],
                         [(waits["tid"], waits["name"], len(waits["frames"]), waits["waits_for"]["owner"])])
        text = self.dump("--thread", waits["tid"], v.pid)
        self.assertEqual(text.count("\nthread "), 1)
        self.assertIn(f"\nthread {waits['tid']} ", text)
        self.assert_refused(weft("dump", "--thread", "7", v.pid), f"process {v.pid} has no thread 7")
        self.assert_refused(weft("dump", "--thread", "x", v.pid), "--thread", "'x'")
        self.assert_refused(weft("dump", "--thread", "7", "--stacks", v.pid), "--stacks")
        self.assert_goes_on(v)

    def test_a_limit_is_said(self):
        text = self.dump("--limit", "10", "--no-group", self.victim(threads=20).pid)
        self.assertEqual(text.count("\nthread "), 10)
        self.assertIn("... and 24 more threads; see --limit", text)

    def test_ten_thousand_threads_are_shown_in_time(self):
        v = self.victim(threads=10000)
        # Of CPU time: every address is looked up once, not in every thread, which took 14 s instead of 0.2.
        for args in ([], ["--json", "--limit", "100000"]):
            done = subprocess.run([obstest.WEFT, "dump", *args, str(v.pid)], capture_output=True, text=True,
                                  env=obstest.environment(), check=False,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (6, 6)))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(args or "10,001 threads: parked, wait for" in done.stdout, done.stdout)
        self.assertEqual(len(json.loads(done.stdout)["threads"]), 10014)

    def test_twenty_dumps_leave_the_program_alone(self):
        v = self.victim()
        for _ in range(20):
            self.dump(v.pid)
        self.assert_goes_on(v)
        # The waiters wait on: nothing ended a wait, nothing was lost.
        self.assert_places(self.look(v.pid))
        self.assertEqual(v.end()[0], 0)

    def test_events_are_shown(self):
        trace = os.path.join(self.directory(), "trace")
        v = self.victim(WEFT_TRACE=trace)
        done = weft("dump", "--json", "--events", "100", v.pid)
        if done.returncode == 1:
            self.skipTest("this build records no events")
        dump = json.loads(done.stdout)
        self.assertLessEqual(len(dump["events"]), 100)
        cycles = [e["cycles"] for e in dump["events"]]
        self.assertEqual(cycles, sorted(cycles))
        self.assertNotIn("?", {e["event"] for e in dump["events"]})
        wanted = {rf"(?m) {what}$" for what in (
            r"spawn of thread \d+", r"park for futex 0x[0-9a-f]+", r"unpark of thread \d+: event", r"run of thread \d+ on worker \d+",
            r"return from \d+ \([a-z0-9_]+\): -?\d+",
            r"preempt at 0x[0-9a-f]+", r"kick taken at 0x[0-9a-f]+", r"syscall 202 \(futex\) 0x[0-9a-f]+",
            r"handoff of worker \d+, before the call", r"signal 10 to thread \d+",
            r"handler of signal 10 at 0x[0-9a-f]+")}
        deadline = time.monotonic() + obstest.LIMIT_S
        while wanted and time.monotonic() < deadline:
            v.counters()  # main is woken, and two threads never wait
            text = self.dump("--events", "1000000", v.pid)
            text = text[text.index("\nthe last "):]
            wanted = {what for what in wanted if not re.search(what, text)}
        self.assertEqual(wanted, set(), text)
        self.assertNotIn("$", text)


    def test_a_worker_that_the_monitor_takes_leaves_an_event(self):
        where = self.directory()
        pipe = os.path.join(where, "pipe")
        os.mkfifo(pipe)
        # A call that was seen to return soon, and then does not, beside a thread that wants the worker.
        source = ("import os, sys, threading\n"
                  "def spin():\n"
                  "    while True: pass\n"
                  "threading.Thread(target=spin, daemon=True).start()\n"
                  "def opens():\n"
                  "    for i in range(200): os.close(os.open('/dev/null', os.O_RDONLY))\n"
                  "    os.open(sys.argv[1], os.O_RDONLY)\n"
                  "threading.Thread(target=opens, daemon=True).start()\n"
                  "sys.stdin.read()\n")
        with subprocess.Popen([obstest.WEFT, "run", "--workers", "1", "--trace", os.path.join(where, "trace"), "--",
                               sys.executable, "-c", source, pipe], env=obstest.environment(),
                              stdin=subprocess.PIPE) as process:
            deadline = time.monotonic() + obstest.LIMIT_S
            text = ""
            while "by the monitor" not in text and time.monotonic() < deadline:
                text = weft("dump", "--events", "100000", process.pid).stdout
            os.close(os.open(pipe, os.O_WRONLY))
            process.stdin.close()
            process.kill()
        self.assertRegex(text, r" handoff of worker 0, by the monitor\n")

    def test_a_call_that_was_never_seen_hands_the_worker_on_at_once(self):
        where = self.directory()
        # It waits for events of the kernel's own that never come, beside a thread that wants the worker.
        source = ("import ctypes, sys, threading\n"
                  "def spin():\n"
                  "    while True: pass\n"
                  "io_setup, io_getevents, call = 206, 208, ctypes.CDLL(None).syscall\n"
                  "context, event = ctypes.c_ulong(), ctypes.create_string_buffer(32)\n"
                  "if call(io_setup, 1, ctypes.byref(context)): sys.exit('no io_setup')\n"
                  "threading.Thread(target=spin, daemon=True).start()\n"
                  "threading.Thread(target=call, args=(io_getevents, context, ctypes.c_long(1), ctypes.c_long(1),\n"
                  "                 event, None), daemon=True).start()\n"
                  "sys.stdin.read()\n")
        with subprocess.Popen([obstest.WEFT, "run", "--workers", "1", "--trace", os.path.join(where, "trace"), "--",
                               sys.executable, "-c", source], env=obstest.environment(),
                              stdin=subprocess.PIPE) as process:
            deadline = time.monotonic() + obstest.LIMIT_S
            text = ""
            while "call io_getevents" not in text and process.poll() is None and time.monotonic() < deadline:
                text = weft("dump", "--events", "100000", process.pid).stdout
            process.kill()
        self.assertRegex(text, r" handoff of worker 0, before a call not known\n")


def mappings(pid):
    """Low and high end of each, and its VmFlags in smaps."""
    found, ends = [], None
    with open(f"/proc/{pid}/smaps", encoding="ascii", errors="replace") as f:
        for line in f:
            words = line.split()
            if words[0] == "VmFlags:":
                found.append((*ends, words[1:]))
            elif not words[0].endswith(":"):
                ends = [int(end, 16) for end in words[0].split("-")]
    return found


class Cores(ObsTest):
    def core_of_abort(self):
        with open("/proc/sys/kernel/core_pattern", encoding="ascii") as f:
            if f.read().strip() not in ("core", "core.%p"):
                self.skipTest("cores do not land in the working directory here")
        where = self.directory()
        v = self.victim(dir=where)
        v.say("abort")
        status, _ = v.end()
        self.assertEqual(status, -6)
        cores = [f for f in os.listdir(where) if f.startswith("core")]
        if not cores:
            self.skipTest("no core was written")
        return os.path.join(where, cores[0]), v.pid

    def test_a_core_shows_what_the_process_did(self):
        core, pid = self.core_of_abort()
        dump = json.loads(self.dump("--json", "--core", core))
        self.assertEqual(dump["pid"], pid)
        self.assertEqual(dump["signal"], 6)
        Dump.assert_places(self, dump)
        main = [t for t in dump["threads"] if t["tid"] == pid][0]
        self.assertIn("main", functions(main))
        text = self.dump("--core", core, "--exe", obstest.WAITERS)
        self.assertIn("ended by SIGABRT", text)

    def gdb(self, *commands, target):
        gdb = shutil.which("gdb")
        if not gdb:
            self.skipTest("gdb is not installed")
        args = [gdb, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex",
                f"source {SCRIPT}"]
        for c in commands:
            args += ["-ex", c]
        done = subprocess.run(args + target, capture_output=True, text=True, timeout=240,
                              stdin=subprocess.DEVNULL, check=False)
        if "Scripting in the" in done.stderr:
            self.skipTest("gdb without Python")
        self.assertNotIn("Python Exception", done.stderr)
        return done.stdout

    def assert_gdb_sees(self, text):
        for function, _ in PLACES.values():
            self.assertIn(f" in {function}", text)
        for function in SPINNERS.values():
            self.assertIn(f" in {function}", text)

    def test_gdb_shows_the_threads_of_a_core(self):
        core, _ = self.core_of_abort()
        self.assert_gdb_sees(self.gdb("info weft", "weft workers", "weft threads", "weft locks", "weft apply all bt",
                                      target=[obstest.WAITERS, core]))

    def test_gdb_shows_the_threads_of_a_process(self):
        v = self.victim()
        text = self.gdb("info weft", "weft apply all bt", "detach", target=["-p", str(v.pid)])
        self.assert_gdb_sees(text)
        self.assert_goes_on(v)
        self.assertEqual(v.end()[0], 0)

    def test_gdb_shows_threads_and_locks(self):
        v = self.victim(deadlock=True)
        dump = json.loads(self.dump("--json", v.pid))
        waits = [t for t in dump["threads"] if t["name"] == "mutex"][0]
        text = self.gdb("weft threads", "echo ---\n", "weft threads MuTeX held", "echo ---\n", "weft locks", "echo ---\n",
                        f"weft thread {waits['tid']} bt", "echo ---\n", "thread", "bt", "echo ---\n", f"weft thread {waits['tid']} up",
                        "echo ---\n", "thread", "bt", "echo ---\n", "weft apply all bt", "echo ---\n", "thread", "bt", "echo ---\n",
                        "detach", target=["-p", str(v.pid)])
        threads, some, locks, stack, own, frame, after_one, _, after_all, _ = text.split("---\n")
        self.assertEqual(threads.count(" switches, "), len(dump["threads"]))
        line = [line for line in some.splitlines() if str(waits["tid"]) in line][0]
        self.assertRegex(line, rf'parked, waits for futex 0x[0-9a-f]+: mutex held by thread {v.pid} "\w+", for [\d.]+ s; \d')
        self.assertLess(some.count("\n"), threads.count("\n"))
        self.assertRegex(locks, rf'mutex 0x[0-9a-f]+: held by {v.pid} +\w+ ')
        self.assertEqual(locks.count("DEADLOCK of 2 threads: "), len(dump["deadlocks"]))
        self.assertIn(" in waits_for_mutex", stack)
        self.assertIn("#2 ", frame)
        self.assertNotIn("waits_for_mutex", own)
        self.assertIn("#0 ", own)
        self.assertEqual((after_one, after_all), (own, own))
        self.assert_goes_on(v)

    def test_a_core_by_gdb_works_too(self):
        gcore = shutil.which("gcore")
        if not gcore:
            self.skipTest("gcore is not installed")
        v = self.victim()
        name = os.path.join(self.directory(), "core")
        done = subprocess.run([gcore, "-o", name, str(v.pid)], capture_output=True, timeout=240,
                              stdin=subprocess.DEVNULL, text=True, check=False)
        maps = mappings(v.pid)
        # gdb stops at a guard page: what it leaves out must be stacks of the runtime's own
        for at in re.findall(r"Memory read failed .* bytes at (0x[0-9a-f]+)", done.stderr):
            flags = [flags for low, high, flags in maps if low <= int(at, 16) < high][0]
            self.assertTrue("nh" in flags or "wr" not in flags, flags)
        dump = json.loads(self.dump("--json", "--core", f"{name}.{v.pid}"))
        Dump.assert_places(self, dump)

    def test_a_thread_that_leaves_or_takes_up_its_work_shows_it(self):
        # The runtime's steps between a kick and the instruction that it interrupted.
        for step in ("wf_preempt_on_kick", "preempt.c:resume", "lx_signal_resuming",
                     "*wf_arch_sigreturn"):
            v = self.victim(workers=1)
            core = os.path.join(self.directory(), "core")
            text = self.gdb("handle all nostop noprint pass", f"tbreak {step}", "continue", "bt",
                            f"generate-core-file {core}", "detach",
                            target=["-p", str(v.pid)])
            self.assertRegex(text, r"(?s)hit Temporary breakpoint .* in clone", step)
            self.assertRegex(text, r" (spins|spins_too) \(\)", step)
            if step != "wf_preempt_on_kick":  # gdb leaves out its stack, behind a guard page
                Dump.assert_places(self, json.loads(self.dump("--json", "--core", core)))
            self.assert_goes_on(v)
            v.close()

    def test_files_that_are_no_cores_are_refused(self):
        where = self.directory()
        self.assert_refused(weft("dump", "--core", obstest.WAITERS), "is not a core file")
        self.assert_refused(weft("dump", "--core", os.path.join(where, "none")), "cannot open")
        empty = os.path.join(where, "empty")
        with open(empty, "wb"):
            pass
        self.assert_refused(weft("dump", "--core", empty), "is not a core file")

    def test_damaged_cores_do_no_harm(self):
        core, _ = self.core_of_abort()
        with open(core, "rb") as f:
            whole = f.read(1 << 20)
        damaged = core + ".damaged"
        for length in (64, 100, 1000, 5000, 20000, 100000):
            with open(damaged, "wb") as f:
                f.write(whole[:length])
            self.assertIn(weft("dump", "--core", damaged).returncode, (0, 125), length)
        for at in range(64, 4096, 97):
            with open(damaged, "wb") as f:
                f.write(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:])
            self.assertIn(weft("dump", "--core", damaged).returncode, (0, 125), at)


class Refusals(ObsTest):
    def test_events_of_a_program_that_records_none_are_missed_first(self):
        with subprocess.Popen([obstest.WEFT, "dump", "--events", "5", str(self.victim().pid)],
                              env=obstest.environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as dump:
            said = dump.stdout.read()
        self.assertEqual(dump.returncode, 1)
        self.assertRegex(said, r"^weft: dump: no events are shown: .* --record'\n")
        self.assertIn("waits_for_mutex", said)

    def test_a_plain_process_is_refused(self):
        v = self.victim(native=True)
        self.assert_refused(weft("dump", v.pid), f"process {v.pid}", "without weft", "gdb")
        self.assertEqual(v.end()[0], 0)

    def test_another_version_is_refused(self):
        v = self.victim(native=True, LD_PRELOAD=os.environ["OTHER_VERSION"])
        self.assert_refused(weft("dump", v.pid), "layout version 44", "knows version 3")
        self.assertEqual(v.end()[0], 0)

    def test_a_program_without_threads_yet_shows_main(self):
        with subprocess.Popen([obstest.WEFT, "run", "--", "cat"], env=obstest.environment(),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
            cat.stdin.write("x\n")
            cat.stdin.flush()
            self.assertEqual(cat.stdout.readline(), "x\n")
            # its write has been seen; it may not have returned from it
            while open(f"/proc/{cat.pid}/syscall", encoding="ascii").read().split()[0] != "0":
                pass
            dump = json.loads(weft("dump", "--json", cat.pid).stdout)
            cat.stdin.close()
        self.assertFalse(dump["started"])
        self.assertEqual([t["tid"] for t in dump["threads"]], [cat.pid])
        self.assertIn("read", functions(dump["threads"][0]))

    def test_no_such_process(self):
        done = subprocess.Popen(["true"])
        done.wait()
        self.assert_refused(weft("dump", done.pid), f"no process {done.pid}")

    def test_a_process_that_ends_meanwhile_is_said(self):
        for i in range(30):
            with subprocess.Popen([obstest.WEFT, "run", "--", "cat"], env=obstest.environment(),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
                cat.stdin.write("x\n")
                cat.stdin.flush()
                cat.stdout.readline()
                with subprocess.Popen([obstest.WEFT, "dump", str(cat.pid)], env=obstest.environment(),
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as dump:
                    time.sleep(i / 5000)  # for nothing to happen: whatever moment of its end dump finds
                    cat.stdin.close()
                    said = dump.stderr.read()
            self.assertEqual(cat.returncode, 0)
            if dump.returncode:
                self.assertRegex(said, "^weft: dump: process [0-9]+ (has ended|ended while)")

    def test_a_process_that_is_traced_already_names_the_tracer(self):
        gdb = shutil.which("gdb")
        if not gdb:
            self.skipTest("gdb is not installed")
        v = self.victim()
        tracer = subprocess.Popen([gdb, "-nx", "-q", "-p", str(v.pid)], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            deadline = time.monotonic() + obstest.LIMIT_S
            while time.monotonic() < deadline:
                with open(f"/proc/{v.pid}/status", encoding="ascii") as f:
                    if f"TracerPid:\t{tracer.pid}\n" in f.read():
                        break
                time.sleep(0.05)
            self.assert_refused(weft("dump", v.pid), "is being traced", str(tracer.pid))
        finally:
            tracer.communicate("detach\nquit\n", timeout=240)

    def test_bad_arguments_are_refused_in_one_line(self):
        for args in ([], ["x"], ["-1"], ["1", "2"], ["--core"], ["--limit", "0", "1"],
                     ["--exe", "x", "1"], ["--stacks", "--core", "x"], ["--no-such", "1"], ["0"]):
            self.assert_refused(weft("dump", *args), "dump")


@unittest.skipUnless("WEFT_COMMAND" in os.environ, "needs the command")
class Counters(ObsTest):
    def test_stats_are_printed_at_exit(self):
        v = self.victim(WEFT_STATS="1")
        status, err = v.end()
        self.assertEqual(status, 0)
        lines = {line[8:].rsplit(None, 1)[0]: int(line.split()[-1])
                 for line in err.splitlines() if line.startswith("weft:   ")}
        self.assertEqual(lines["threads made"], 13)
        self.assertGreater(lines["switches"], 0)
        self.assertGreater(lines["parks"], 0)
        self.assertEqual(lines["workers"], 2)
        self.assertGreaterEqual(lines["kernel threads"], 2)


if __name__ == "__main__":
    obstest.main(only=sys.argv[1:])
