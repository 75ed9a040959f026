#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft watch`: programs that die, stall, and do not want to end; what is kept of that, and that nothing else is left."""
import contextlib
import ctypes
import itertools
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import check_trace
from watching import LINE, LIMIT_S, WATCHED, WEFT, WatchTest, environment, is_alive, main, wait_until

LIBC = ctypes.CDLL(None, use_errno=True)
DETACH, SEIZE, INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
DYING = 1  # of obs/lastword.h
PATIENCE_S = 5  # of obs/lastword.c


def ptrace(request, tid):
    if LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(tid), None, None) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


@contextlib.contextmanager
def standing_still(tid):
    """One thread of the kernel's, as if the machine had no time for it; its process goes on."""
    ptrace(SEIZE, tid)
    ptrace(INTERRUPT, tid)
    os.waitpid(tid, WALL)
    try:
        yield
    finally:
        ptrace(DETACH, tid)


class ProgramTest(WatchTest):
    def crash_unseen(self, **kwargs):
        """A fault while the watch stands still. Its status and standard error."""
        p = self.start("--max", "0/1h", "--", WATCHED, "line", "fault", **kwargs)
        self.assertEqual(p.stdout.readline(), "ready\n")
        child = self.child(p)
        p.send_signal(signal.SIGSTOP)
        os.kill(child, signal.SIGUSR1)
        wait_until(lambda: not is_alive(child), "the end of who waits for nobody")
        p.send_signal(signal.SIGCONT)
        rc, _, err = self.end(p)
        return rc, err

    def page(self, watch):
        """At which the programs of this watch die: the word, whose it is, how often the watch has said that it is at work."""
        fds = f"/proc/{watch.pid}/fd"

        def is_page(fd):
            try:
                return "memfd:weft-watch" in os.readlink(f"{fds}/{fd}")
            except FileNotFoundError:  # closed meanwhile
                return False
        with open(f"{fds}/{next(filter(is_page, os.listdir(fds)))}", "rb") as f:
            return struct.unpack("8xIi4xI", f.read(24))

    def to_crash(self, *args):
        """A watch, its thread that waits for the word of a program, and a program that crashes at SIGUSR1."""
        p = self.start(*args, "--", WATCHED, "line", "fault")
        self.assertEqual(p.stdout.readline(), "ready\n")
        waiter, = set(map(int, os.listdir(f"/proc/{p.pid}/task"))) - {p.pid}
        return p, waiter, self.child(p)

    def crash(self, watch, pid, beats):
        """Until it has said so, and the watch has answered so often."""
        os.kill(pid, signal.SIGUSR1)
        wait_until(lambda: self.page(watch)[:2] == (DYING, pid) and self.page(watch)[2] >= beats, "its word")

    def check_crash(self, watch, pid):
        self.assertEqual(self.end(watch)[0], 139)
        self.assertEqual(json.loads(self.kept(f"watched-{pid}-SEGV", "dump.json"))["pid"], pid)

    def test_crash_waits_for_a_watch_that_is_at_work(self):
        """And for one that stood still only because the whole machine did."""
        (slow, _, first), (still, waiter, second) = self.to_crash("--max", "0/1h"), self.to_crash("--max", "0/1h")
        with standing_still(slow.pid), standing_still(still.pid), standing_still(waiter):
            self.crash(slow, first, beats=1)
            self.crash(still, second, beats=0)
            os.kill(second, signal.SIGSTOP)
            since = time.monotonic()  # it would wait for so long for a watch that does nothing
            wait_until(lambda: time.monotonic() > since + PATIENCE_S + 1 or not is_alive(first), "the end of its patience")
            self.assertTrue(is_alive(first))
            os.kill(second, signal.SIGCONT)
        self.check_crash(slow, first)
        self.check_crash(still, second)

    def test_crash_after_one_whose_end_was_not_seen(self):
        """The thread that waits for a program's word gets no processor until the next program has said it."""
        p, waiter, first = self.to_crash("--max", "1/1h", "--delay", "1ms..1ms")
        with contextlib.ExitStack() as stack:
            with standing_still(p.pid):
                self.crash(p, first, beats=2)
                stack.enter_context(standing_still(waiter))
            self.assertEqual(p.stdout.readline(), "ready\n")
            second = self.page(p)[1]
            self.crash(p, second, beats=0)
        self.check_crash(p, second)

    def manager(self):
        """A service manager's socket, and the environment that names it."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        s.bind(os.path.join(self.dir, "notify"))
        s.settimeout(LIMIT_S)
        return s, {"NOTIFY_SOCKET": os.path.join(self.dir, "notify")}

    def test_service_manager_hears_the_program(self):
        program = """
import array, os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(chr(0) + os.environ["NOTIFY_SOCKET"][1:])
s.send(b"READY=1\\nMAINPID=5\\nSTATUS=up")
s.send(b"MAINPID=5")
r, w = os.pipe()
s.sendmsg([b"FDSTORE=1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r]))])
os.write(w, b"through")
s.send(b"WATCHDOG=1")
print(os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_PID"], os.getpid(), flush=True)
input()
if os.fork() == 0:
    s.send(b"STATUS=a child")
    input()  # nobody knows whose child it was when it is gone
    os._exit(0)
os.wait()
s.send(b"STOPPING=1")
"""
        manager, names = self.manager()
        p = self.start("--", sys.executable, "-c", program, stdin=subprocess.PIPE, own_pid="WATCHDOG_PID", **names)
        self.assertEqual(manager.recv(4096), b"READY=1\nSTATUS=up")
        text, rights, _, _ = manager.recvmsg(4096, 1024)
        self.assertEqual(text, b"FDSTORE=1")
        fd = struct.unpack("i", rights[0][2])[0]
        self.addCleanup(os.close, fd)
        self.assertEqual(os.read(fd, 16), b"through")
        self.assertEqual(manager.recv(4096), b"WATCHDOG=1")
        name, whose, pid = p.stdout.readline().split()
        self.assertEqual(whose, pid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            for message in (b"READY=1", b"x" * 5000, b""):
                stranger.sendto(message, "\0" + name[1:])
        p.stdin.write("go\n")
        p.stdin.flush()
        self.assertEqual(manager.recv(4096), b"STATUS=a child")
        p.stdin.write("go\n")
        p.stdin.flush()
        self.assertEqual(manager.recv(4096), b"STOPPING=1")
        self.assertEqual(self.end(p)[0], 0)

    def test_service_manager_hears_nothing_good_of_a_stalled_program(self):
        program = """
import ctypes, itertools, os, socket, threading, time
libc = ctypes.CDLL(None)
locks = [ctypes.create_string_buffer(64) for _ in "ab"]
both = threading.Barrier(2)
def cross(mine, other):
    libc.pthread_mutex_lock(mine)
    both.wait()
    libc.pthread_mutex_lock(other)
for pair in (locks, locks[::-1]):
    threading.Thread(target=cross, args=pair).start()
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.connect(chr(0) + os.environ["NOTIFY_SOCKET"][1:])
for nr in itertools.count():
    s.send(b"WATCHDOG=1\\nSTATUS=%d" % nr)
    time.sleep(.02)
"""
        manager, names = self.manager()
        p = self.start("--on-stall", "200ms=dump", "--", sys.executable, "-c", program, **names)
        self.assertIn(b"WATCHDOG=1\n", manager.recv(4096))
        said = itertools.takewhile(lambda m: b"WATCHDOG=1" in m, (manager.recv(4096) for _ in range(1000)))
        self.assertLess(len(list(said)), 999)
        for _ in range(10):
            self.assertRegex(manager.recv(4096), b"^STATUS=[0-9]+$")
        p.kill()

    def test_deaths_are_kept_and_their_status_is_ours(self):
        for how, code, suffix in (("fault", 139, "SEGV"), ("abort", 134, "ABRT"), ("three", 3, "exit3"),
                                  ("kill", 137, "KILL")):
            with self.subTest(how):
                rc, out, err = self.watch("--max", "1/60s", "--delay", "1ms..1ms", "--", WATCHED, how)
                self.assertEqual(rc, code, err)
                events = [LINE.match(line) for line in err.splitlines() if LINE.match(line)]
                self.assertEqual([e[1] for e in events], ["watched"] * 2, err)
                self.assertIn("restart 1 in", events[0][3])
                self.assertIn("given up after 1 restart", events[1][3])
                folder = f"watched-{events[0][2]}-{suffix}"
                self.assertIn(f"saved weft-watch/{folder}/", events[0][3])
                status = json.loads(self.kept(folder, "status.json"))
                self.assertEqual((status["event"], status["pid"], status["restarts"], status["command"]),
                                 ("death", int(events[0][2]), 0, [WATCHED, how]))
                self.assertEqual(status["exit_status"] if code == 3 else status["signal"] + 128, code)
                self.assertIn("watched[", self.kept(folder, "report.txt"))
                self.assertEqual(self.kept(folder, "stderr.txt"), "three it is\n" if code == 3 else "")

    def test_crash_is_dumped_with_all_threads(self):
        for how, name, function in (("fault", "SEGV", "fault"), ("abort", "ABRT", "abort")):
            with self.subTest(how):
                rc, _, err = self.watch("--max", "1/1h", "--delay", "1ms..1ms", "--", WATCHED, how)
                self.assertIn(f"SIG{name}", err)
                self.assertEqual(rc, 128 + getattr(signal, f"SIG{name}"))
                for folder in self.folders()[-2:]:
                    dump = json.loads(self.kept(folder, "dump.json"))
                    frames = [[f.get("function") for f in t["frames"]] for t in dump["threads"]]
                    self.assertEqual((dump["pid"], len(frames)), (int(folder.split("-")[1]), 2))
                    self.assertTrue(any("main" in f for f in frames), frames)
                    self.assertTrue(any(function in f or "act" in f for f in frames), frames)
                    self.assertIn("spawn of thread", self.kept(folder, "dump.txt"))
                    trace = check_trace.read(self.path(folder, "trace.pftrace"))
                    self.assertEqual((trace.pid, len(trace.names)), (dump["pid"], 2))
                    self.assertIn("trace     trace.pftrace", self.kept(folder, "report.txt"))
                    self.assertNotIn("trace.txt", os.listdir(self.path(folder)))

    def test_crash_beside_a_watch_that_does_not_answer(self):
        """It waits for PATIENCE_S at most, and dies as it would without anybody."""
        rc, err = self.crash_unseen()
        self.assertEqual(rc, 139, err)
        self.assertIn("SIGSEGV", err)

    def test_only_the_program_itself_is_watched(self):
        """Neither what it forks nor what it executes there is dumped, or waits for that."""
        rc, _, err = self.watch("--max", "0/1h", "--", WATCHED, "children", WATCHED, "fault")
        self.assertEqual(rc, 7, err)
        folder, = self.folders()
        self.assertTrue(folder.endswith("-exit7"), folder)

    def test_variable_that_names_no_page(self):
        """Somebody else's file: nothing is waited for, nothing is written to it, and the status is the program's."""
        path = os.path.join(self.dir, "file")
        with open(path, "wb") as f:
            f.write(bytes(4096))
        r, w = os.pipe()
        self.addCleanup(os.close, r)
        self.addCleanup(os.close, w)
        with open(path, "rb") as f:
            for value in ("", "7", path, f"/proc/{os.getpid()}/fd/{f.fileno()}", f"/proc/{os.getpid()}/fd/{r}",
                          "/proc/self/mem", "/proc/self/exe", "/proc/self/fd/0", "/proc/no", "/proc/" + "9" * 5000):
                done = subprocess.run([WEFT, "run", "--", WATCHED, "fault"], env=environment(WEFT_WATCH=value),
                                      cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=LIMIT_S, check=False)
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGSEGV, b""), value)
            self.assertEqual(f.read(), bytes(4096))

    def test_program_that_ends_well_after_a_restart(self):
        rc, _, err = self.watch("--", WATCHED, "then", "once", "fault", "end")
        self.assertEqual(rc, 0, err)
        self.assertEqual([f.split("-")[2] for f in self.folders()], ["SEGV"])

    def test_pauses_double(self):
        _, _, err = self.watch("--max", "3/60s", "--delay", "10ms..20ms", "--", WATCHED, "three")
        self.assertEqual(re.findall(r"restart \d in (\d\S* \w+)", err), ["10 ms", "20 ms", "20 ms"])
        self.assertEqual(err.count("restart"), 4)

    def test_last_of_standard_error(self):
        rc, _, err = self.watch("--max", "0/1s", "--", WATCHED, "chatty")
        self.assertEqual(rc, 4)
        text = "".join(f"line {i}\n" for i in range(30000))
        self.assertTrue(err.startswith(text))
        self.assertEqual(self.kept(self.folders()[0], "stderr.txt"), text[-65536:])

    def test_core_is_dumped(self):
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        with open("/proc/sys/kernel/core_pattern") as f:
            pattern = f.read().strip()
        if not hard or not re.fullmatch(r"(%[pPsu]|[\w.-])+", pattern):
            self.skipTest(f"no core in the current directory: limit {hard}, {pattern}")
        rc, err = self.crash_unseen(limits=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))
        self.assertEqual(rc, 139, err)
        self.assertIn("SIGSEGV, core dumped", err)
        dump = json.loads(self.kept(self.folders()[0], "dump.json"))
        self.assertEqual((dump["signal"], dump["nr_threads"]), (11, 2))

    def test_deadlock_is_dumped(self):
        p = self.start("--on-stall", "200ms=dump", "--hook", "echo $WEFT_WATCH_EVENT $WEFT_WATCH_FOLDER",
                       "--", WATCHED, "deadlock")
        self.assertIn("deadlock: 2 threads", self.next_event(p, "watched["))
        folder = f"watched-{self.child(p)}-stall"
        self.assertEqual(p.stdout.readline(), f"stall weft-watch/{folder}/\n")
        self.assertEqual(len(json.loads(self.kept(folder, "dump.json"))["deadlocks"]), 1)
        self.assertIn("DEADLOCK", self.kept(folder, "dump.txt"))
        self.assertIn("spawn of thread", self.kept(folder, "dump.txt"))
        p.terminate()
        self.assertEqual(self.end(p)[0], 143)
        self.assertEqual(self.folders(), [folder])

    def test_deadlock_is_ended_and_restarted(self):
        rc, _, err = self.watch("--on-stall", "200ms=restart", "--", WATCHED, "then", "once", "deadlock", "end")
        self.assertEqual(rc, 0, err)
        self.assertIn("restart 1", err)
        self.assertEqual([f.split("-")[2] for f in self.folders()], ["stall"])

    def test_a_call_with_a_lock_that_others_want(self):
        own = os.path.join(self.dir, "watched")  # which it locks
        shutil.copy(WATCHED, own)
        p = self.start("--on-stall", "200ms=dump", "--", own, "holds")
        self.assertRegex(self.next_event(p, "watched["), r"stall: thread \d+ is in flock and has a mutex that 1 threads wait")

    def test_threads_that_nobody_lets_run(self):
        """One that cannot be interrupted has the one worker: the other thread is ready, and none is switched to."""
        p = self.start("--on-stall", "300ms=dump", "--", WATCHED, "hog", WEFT_WORKERS="1")
        self.assertIn("are ready and none gets on", self.next_event(p, "watched["))

    def test_threads_that_compute_are_no_stall(self):
        p = self.start("--on-stall", "200ms=dump", "--", WATCHED, "spin", WEFT_WORKERS="1")
        seen = set()

        def nr_looks():
            """Each is a child of it that it waited for: the page faults of those are counted."""
            with open(f"/proc/{p.pid}/stat") as f:
                seen.add(f.read().rsplit(")", 1)[1].split()[8])
            return len(seen)
        wait_until(lambda: nr_looks() > 4, "looks")
        p.terminate()
        rc, _, err = self.end(p)
        self.assertEqual((rc, "stall" in err), (143, False), err)

    def test_signals_are_passed_on(self):
        # A shell's background job ignores it.
        p = self.start("--", WATCHED, "signals", limits=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.assertEqual(p.stdout.readline(), "ready\n")
        for sig in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            p.send_signal(sig)
            self.assertEqual(p.stdout.readline(), f"{sig}\n")
        p.send_signal(signal.SIGINT)
        self.assertEqual(self.end(p)[0], 130)
        self.assertEqual(self.folders(), [])

    def test_kill_after_the_grace(self):
        p = self.start("--grace", "50ms", "--", WATCHED, "stubborn")
        self.assertEqual(p.stdout.readline(), "ready\n")
        p.terminate()
        rc, _, err = self.end(p)
        self.assertEqual(rc, 137)
        self.assertIn("by us", err)

    def test_term_ends_the_pause(self):
        p = self.start("--delay", "1h..1h", "--", WATCHED, "three")
        self.next_event(p, "restart 1 in")
        p.terminate()
        self.assertEqual(self.end(p)[0], 3)

    def test_what_a_program_leaves_is_ended(self):
        rc, out, _ = self.watch("--max", "1/1h", "--delay", "1ms..1ms", "--grace", "50ms", "--", WATCHED, "daemon")
        self.assertEqual(rc, 5)
        self.assertEqual(len(out.split()), 2)
        self.assertEqual([pid for pid in out.split() if is_alive(pid)], [])

    def test_program_that_execs(self):
        rc, _, err = self.watch("--max", "0/1s", "--", WATCHED, "exec", WATCHED, "three")
        self.assertEqual(rc, 3, err)
        self.assertEqual(len(self.folders()), 1)

    def test_hundred_crashes_leave_nothing(self):
        self.check_crashes(100, "kill")

    def test_foreign_things_in_the_folder_stay(self):
        base = os.path.join(self.dir, "weft-watch")
        os.mkdir(base, 0o700)
        os.mkdir(os.path.join(base, "watched-1-SEGV"))
        os.mkdir(os.path.join(base, "watched-other"))
        with open(os.path.join(base, "watched-1-SEGV", "notes"), "w") as f:
            f.write("mine")
        os.utime(os.path.join(base, "watched-1-SEGV"), (1, 1))
        self.watch("--max", "2/1h", "--delay", "1ms..1ms", "--keep", "1", "--", WATCHED, "three")
        left = os.listdir(base)
        self.assertEqual(len(left), 3, left)
        self.assertTrue({"watched-1-SEGV", "watched-other"} < set(left), left)

    def test_idle_is_idle(self):
        p = self.start("--", WATCHED, "wait")
        self.assertEqual(p.stdout.readline(), "ready\n")

        def wakes():
            with open(f"/proc/{p.pid}/status") as f:
                return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])
        wait_until(lambda: [wakes(), time.sleep(0.1)][0] == wakes(), "rest")
        before = wakes()
        time.sleep(1)  # nothing is waited for: this is the time in which nothing is to happen
        self.assertEqual(wakes(), before)

    def test_killed_watch_takes_the_program_along(self):
        p = self.start("--", WATCHED, "wait")
        self.assertEqual(p.stdout.readline(), "ready\n")
        child = self.child(p)
        p.kill()
        p.wait()
        wait_until(lambda: not is_alive(child), "the program's end")

    def test_process_that_is_not_ours(self):
        victim = subprocess.Popen([WEFT, "run", "--", WATCHED, "deadlock"], env=environment())
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        p = self.start("--pid", str(victim.pid), "--on-stall", "200ms=dump", "--",
                       "/bin/sh", "-c", "echo $WEFT_WATCH_EVENT $WEFT_WATCH_PID $WEFT_WATCH_FOLDER")
        self.assertEqual(p.stdout.readline(), f"stall {victim.pid} weft-watch/pid-{victim.pid}-stall/\n")
        victim.kill()
        victim.wait()
        self.assertEqual(p.stdout.readline(), f"exit {victim.pid}\n")
        self.assertEqual(self.end(p)[0], 0)

    def test_reader_of_standard_error_that_goes(self):
        r, w = os.pipe()
        os.close(r)
        done = subprocess.run([WEFT, "watch", "--max", "1/1h", "--delay", "1ms..1ms", "--", WATCHED, "three"],
                              cwd=self.dir, env=environment(), stderr=w, timeout=LIMIT_S, check=False)
        os.close(w)
        self.assertEqual(done.returncode, 3)
        self.assertEqual(self.kept(self.folders()[0], "stderr.txt"), "three it is\n")

    def test_disk_that_takes_nothing(self):
        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        rc, _, err = self.watch("--max", "1/1h", "--delay", "1ms..1ms", "--", WATCHED, "three", limits=full)
        self.assertEqual(rc, 3)
        self.assertEqual(err.count("not all could be saved"), 2, err)

    def test_bad_input(self):
        for code, args, words in (
                (127, ["--", "no-such-program-here"], "no-such-program-here"),
                (126, ["--", self.dir], "Is a directory"),
                (125, ["--dir", "/dev/full", "--", WATCHED, "three"], "Not a directory"),
                (125, ["--dir", "nowhere", "--", WATCHED, "three"], "No such file"),
                (125, [], "which program"),
                (125, ["--max", "5", "--", WATCHED], "5/60s"),
                (125, ["--max", "1001/1s", "--", WATCHED], "5/60s"),
                (125, ["--delay", "2s..1s", "--", WATCHED], "100ms..30s"),
                (125, ["--delay", "1..2", "--", WATCHED], "100ms..30s"),
                (125, ["--on-stall", "10s", "--", WATCHED], "10s=dump"),
                (125, ["--on-stall", "1ms=dump", "--", WATCHED], "10s=dump"),
                (125, ["--keep", "0", "--", WATCHED], "1 to 1000"),
                (125, ["--grace", "-1s", "--", WATCHED], "10s"),
                (125, ["--grace", "nans", "--", WATCHED], "10s"),
                (125, ["--name", "../x", "--", WATCHED], "letters"),
                (125, ["--on", "exit", "--", WATCHED], "--pid"),
                (125, ["--pid", "0", "--", "true"], "process ID"),
                (125, ["--pid", "4194304", "--", "true"], "No such process"),
                (125, ["--pid", "1", "--hook", "x", "--", "true"], "--hook"),
                (125, ["--pid", "1"], "which command"),
                (125, ["--process", "", "--", "true"], "without folders"),
                (125, ["--process", "/bin/sh", "--", "true"], "without folders"),
                (125, ["--process", "x" * 256, "--", "true"], "without folders"),
                (125, ["--process", "x", "--pid", "1", "--", "true"], "not both"),
                (125, ["--process", "x"], "which command"),
                (125, ["--process", "x", "--hook", "y", "--", "true"], "--hook"),
                (125, ["--process", "x", "--on-stall", "1s=restart", "--", "true"], "there is --process"),
                (125, ["--process", "x", "--on", "ends", "--", "true"], "exit,stall"),
                (127, ["--process", "x", "--", "no-such-program-here"], "no-such-program-here"),
                (125, ["--frob"], "--frob")):
            with self.subTest(args):
                rc, out, err = self.watch(*args)
                self.assertEqual((rc, out, err.count("\n")), (code, "", 1), err)
                self.assertTrue(err.startswith("weft: "), err)
                self.assertIn(words, err)

    def test_folder_of_somebody_else(self):
        os.mkdir(os.path.join(self.dir, "elsewhere"))
        os.symlink("elsewhere", os.path.join(self.dir, "weft-watch"))
        rc, _, err = self.watch("--", WATCHED, "three")
        self.assertEqual((rc, err.count("\n")), (125, 1), err)
        os.unlink(os.path.join(self.dir, "weft-watch"))
        os.mkdir(os.path.join(self.dir, "weft-watch"))
        os.chmod(os.path.join(self.dir, "weft-watch"), 0o777)
        rc, _, err = self.watch("--", WATCHED, "three")
        self.assertEqual(rc, 125, err)
        self.assertIn("others may write", err)


sys.exit(main(ProgramTest))
