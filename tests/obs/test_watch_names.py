#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft watch --process`: processes that others start, found by the kernel's word and by looking, and what is told of their ends.

Where the kernel's process events may not be listened to, the cases that need them are skipped. Names have this process's ID in
them, so that runs beside one another do not see each other's processes.
"""
import ctypes
import errno
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

from held import fd_infos, held_by
from watching import LINE, WATCHED, WEFT, WatchTest, environment, main, wait_until

CLONE_NEWUSER = 0x10000000
PR_SET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 15, 38, 22
PIDFD_GET_INFO, PIDFD_OPEN = 0xC040FF0B, 434
FROM_KERNEL = "the kernel tells"
BY_LOOKING = "once a second"
SAY = ["--", "/bin/sh", "-c", 'echo "$WEFT_WATCH_EVENT $WEFT_WATCH_PID $WEFT_WATCH_WHAT"']
libc = ctypes.CDLL(None, use_errno=True)


def into_user_namespace():
    """There, the kernel tells nothing of processes."""
    if libc.unshare(CLONE_NEWUSER):
        os._exit(124)


def filter_calls(*code):
    lines = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(lines)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0):
        os._exit(124)


def without_kept_status():
    """As if the kernel were older than 6.15: such an ioctl() is not known."""
    filter_calls((0x20, 0, 0, 0), (0x15, 0, 3, 16), (0x20, 0, 0, 24), (0x15, 0, 1, PIDFD_GET_INFO),
                 (0x06, 0, 0, 0x50000 + errno.ENOTTY), (0x06, 0, 0, 0x7FFF0000))


def without_pidfds():
    filter_calls((0x20, 0, 0, 0), (0x15, 0, 1, PIDFD_OPEN), (0x06, 0, 0, 0x50000 + errno.ENOSYS), (0x06, 0, 0, 0x7FFF0000))


def works(function):
    """In a process of its own."""
    pid = os.fork()
    if pid == 0:
        function()
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


class NamesTest(WatchTest):
    def setUp(self):
        super().setUp()
        self.name = f"wfv{os.getpid()}"
        self.shell = self.copy("/bin/sh", self.name)

    def copy(self, program, name):
        return shutil.copy(program, os.path.join(self.dir, name))

    def victim(self, then="exit 0", program=None, ready="ready"):
        """A shell of that name; it does `then` after a line."""
        process = subprocess.Popen([program or self.shell, "-c", f"echo {ready}; read line; {then}"], cwd=self.dir,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())

        def close():
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        self.addCleanup(close)
        self.assertEqual(process.stdout.readline(), ready + "\n")
        return process

    def go_on(self, victim):
        victim.stdin.write("go\n")
        victim.stdin.flush()

    def watch_names(self, *args, hook=None, kernel=True, limits=None, name=None):
        """A watch that has begun, by the kernel's word or by looking; and its first line."""
        if not kernel:
            if not works(into_user_namespace):
                self.skipTest("no user namespaces here")
            limits = into_user_namespace
        p = self.start("--process", name or self.name, *args, *(hook or SAY), limits=limits)
        line = p.stderr.readline()
        if kernel and BY_LOOKING in line:
            self.skipTest(line.strip())
        self.assertIn(FROM_KERNEL if kernel else BY_LOOKING, line)
        return p, line

    def told(self, watch):
        event, pid, what = watch.stdout.readline().rstrip("\n").split(" ", 2)
        return event, int(pid), what

    def stop(self, process):
        """What it has said that nobody has read."""
        process.terminate()
        rc, out, err = self.end(process)
        self.assertEqual(rc, 143, err)
        return out, err

    def wait_held(self, watch, pid):
        wait_until(lambda: pid in held_by(watch.pid), f"a hold of {pid}")

    def check_ends(self, kernel):
        """Of processes before it and after it, several at once, each with its own status."""
        before = [self.victim("exit 3"), self.victim("kill -USR2 $$"), self.victim()]
        p, line = self.watch_names(kernel=kernel)
        self.assertIn(f"'{self.name}': 3;", line)
        since = time.monotonic()
        after = self.victim("kill -SEGV $$")
        self.wait_held(p, after.pid)
        ends = {before[0].pid: "exit status 3", before[1].pid: "SIGUSR2", after.pid: "SIGSEGV"}
        for victim in (*before[:2], after):
            self.go_on(victim)
            victim.wait()
        for _ in range(3):
            event, pid, what = self.told(p)
            self.assertEqual(event, "exit")
            # Not even the kernel may know by now, before Linux 6.15.
            self.assertIn(what.removesuffix(", core dumped"), (f"has ended: {ends.pop(pid)}", "has ended"))
            if kernel:
                self.assertNotEqual(what, "has ended")
        self.assertGreaterEqual(time.monotonic() - since, 1)  # lest a hook that starts it again has no rest
        out, err = self.stop(p)
        self.assertEqual((out, ends), ("", {}))
        self.assertEqual([LINE.match(line)[1] for line in err.splitlines() if "has ended" in line], [self.name] * 3)

    def test_ends_that_the_kernel_tells(self):
        self.check_ends(True)

    def test_ends_that_are_found_by_looking(self):
        self.check_ends(False)

    def pipe(self, name):
        os.mkfifo(os.path.join(self.dir, name))
        fd = os.open(os.path.join(self.dir, name), os.O_RDWR | os.O_CLOEXEC)
        self.addCleanup(os.close, fd)
        return fd

    def check_hook(self, kernel):
        """Its processes are not watched while it runs; what it leaves is watched as any other."""
        script = ('echo "told $WEFT_WATCH_PID"; [ ! -e once ] || exit 0; : >once; '
                  '"$0" -c "read line <leaves" >/dev/null 2>&1 & echo $!; "$0" -c "echo \\$\\$; read line <stays"')
        leaves, stays = self.pipe("leaves"), self.pipe("stays")
        victim = self.victim()
        p, _ = self.watch_names(hook=["--", "/bin/sh", "-c", script, self.shell], kernel=kernel)
        self.go_on(victim)
        victim.wait()
        self.assertEqual(p.stdout.readline(), f"told {victim.pid}\n")
        left, own = (int(p.stdout.readline()) for _ in range(2))
        late = self.victim()  # who is seen after them
        self.wait_held(p, late.pid)
        self.assertEqual(held_by(p.pid) & {left, own}, set())
        os.write(stays, b"go\n")
        self.wait_held(p, left)
        os.write(leaves, b"go\n")
        self.assertEqual(p.stdout.readline(), f"told {left}\n")
        self.assertEqual(self.stop(p)[0], "")

    def test_hook_that_starts_it_again(self):
        self.check_hook(True)

    def test_hook_that_starts_it_again_where_one_looks(self):
        self.check_hook(False)

    def test_names_that_change(self):
        """Who takes the name is watched, who gives it up is not, and neither is an end."""
        other = self.copy("/bin/sh", f"{self.name}x")
        takes = subprocess.Popen([sys.executable, "-c", f"""
import ctypes
input()
ctypes.CDLL(None).prctl({PR_SET_NAME}, b"{self.name}", 0, 0, 0)
input()
"""], stdin=subprocess.PIPE, text=True)
        self.addCleanup(takes.stdin.close)
        self.addCleanup(takes.wait)
        self.addCleanup(takes.kill)
        leaves = self.victim(f"exec {other} -c 'echo other; read line; exit 5'")
        last = self.victim()
        p, line = self.watch_names()
        self.assertIn(f"'{self.name}': 2;", line)
        for process in (takes, leaves):
            self.go_on(process)
        self.assertEqual(leaves.stdout.readline(), "other\n")
        self.wait_held(p, takes.pid)
        for process in (leaves, takes, last):
            self.go_on(process)
            process.wait()
        self.assertEqual({self.told(p)[1] for _ in range(2)}, {takes.pid, last.pid})
        self.assertEqual(self.stop(p)[0], "")

    def nr_dropped(self, watch):
        """Messages of the kernel that there was no room for."""
        with open("/proc/net/netlink") as f:
            rows = [line.split() for line in f]
        return sum(int(row[8]) for row in rows if row[1:3] == ["11", str(watch.pid)])

    def test_messages_that_are_lost(self):
        """The watch stands still while its socket overflows."""
        p, _ = self.watch_names()
        p.send_signal(signal.SIGSTOP)
        with open("/proc/self/comm", "rb") as f:
            name = f.read().strip()
        while not self.nr_dropped(p):
            for _ in range(1000):
                libc.prctl(PR_SET_NAME, name, 0, 0, 0)
        victim = self.victim()
        p.send_signal(signal.SIGCONT)
        self.assertIn("messages of the kernel were lost", self.next_event(p, "weft: watch:"))
        self.wait_held(p, victim.pid)
        late = self.victim()
        self.wait_held(p, late.pid)
        for process in (victim, late):
            self.go_on(process)
            process.wait()
        self.assertEqual({self.told(p)[1] for _ in range(2)}, {victim.pid, late.pid})

    def test_status_that_only_the_kernel_tells(self):
        """Nobody keeps it: the parent does not want it, and the kernel is as an older one."""
        p, _ = self.watch_names(limits=without_kept_status)
        parent = subprocess.Popen([sys.executable, "-c", f"""
import signal, subprocess
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print(subprocess.Popen(["{self.shell}", "-c", "read line; exit 6"]).pid, flush=True)
signal.pause()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(parent.stdin.close)
        self.addCleanup(parent.stdout.close)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.kill)
        pid = int(parent.stdout.readline())
        self.wait_held(p, pid)
        self.go_on(parent)
        self.assertEqual(self.told(p), ("exit", pid, "has ended: exit status 6"))

    def test_stalls_and_end_of_processes_under_weft(self):
        program = self.copy(WATCHED, f"{self.name}w")
        name = os.path.basename(program)
        victims = [subprocess.Popen([WEFT, "run", "--", program, "deadlock"], env=environment()) for _ in range(2)]
        for victim in victims:
            self.addCleanup(victim.wait)
            self.addCleanup(victim.kill)
        p, _ = self.watch_names("--on-stall", "200ms=dump", "--on", "stall", name=name,
                                hook=["--", "/bin/sh", "-c", 'echo "$WEFT_WATCH_EVENT $WEFT_WATCH_FOLDER"'])
        folders = {f"{name}-{victim.pid}-stall" for victim in victims}
        self.assertEqual({p.stdout.readline() for _ in victims}, {f"stall weft-watch/{folder}/\n" for folder in folders})
        for folder in folders:
            self.assertIn("DEADLOCK", self.kept(folder, "dump.txt"))
        victims[0].kill()
        victims[0].wait()
        self.assertIn(f"{victims[0].pid}]: has ended: SIGKILL", self.next_event(p, "has ended"))
        self.assertEqual(self.stop(p)[0], "")

    def test_name_that_means_harm(self):
        name = "a b) Z 1\n\x1b[31m%s"
        program = self.copy("/bin/sh", name)
        p, line = self.watch_names(name=name)
        self.assertNotIn("\x1b", line)
        victim = self.victim("exit 7", program=program)
        self.wait_held(p, victim.pid)
        self.go_on(victim)
        victim.wait()
        self.assertEqual(self.told(p), ("exit", victim.pid, "has ended: exit status 7"))
        self.assertIn(f" a_b__Z_1___31m_s[{victim.pid}]: has ended", self.stop(p)[1])

    def test_more_processes_than_descriptors(self):
        """A limit of 40 files is one of fewer processes; others follow when these have ended."""
        victims = {victim.pid: victim for victim in (self.victim() for _ in range(12))}
        p, line = self.watch_names(limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.assertIn(f"'{self.name}': 8;", line)
        self.assertIn("8 processes are watched, and no more can be", self.next_event(p, "weft: watch:"))
        for nr in (1, 8, 3):
            wait_until(lambda: len(held_by(p.pid) & set(victims)) == min(8, len(victims)), "a hold of others")
            for pid in [*held_by(p.pid) & set(victims)][:nr]:
                self.go_on(victims[pid])
                victims.pop(pid).wait()
            for _ in range(nr):
                self.assertNotIn(self.told(p)[1], victims)
        self.assertEqual(self.stop(p)[0], "")

    def test_kernel_without_pidfds(self):
        rc, out, err = self.watch("--process", self.name, *SAY, limits=without_pidfds)
        self.assertEqual((rc, out), (125, ""))
        self.assertEqual(err, "weft: watch: cannot watch processes by name: Function not implemented\n")

    def test_later_process_of_the_same_number(self):
        """In a PID namespace numbers can be chosen. The old one's end is told, and the new one is watched."""
        script = """
import signal, subprocess, sys
sys.path.append(sys.argv.pop(1))
from held import held_by
def start(number):
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(number - 1))
    return subprocess.Popen([sys.argv[1], "-c", "read line"], stdin=subprocess.PIPE)
old = start(1000)
watch = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
print(watch.stderr.readline(), end="", flush=True)
watch.send_signal(signal.SIGSTOP)
old.kill()
old.wait()
new = start(1000)
watch.send_signal(signal.SIGCONT)
print(watch.stdout.readline(), end="", flush=True)
while new.pid not in held_by(watch.pid):
    pass
new.terminate()
new.wait()
print(watch.stdout.readline(), end="", flush=True)
watch.terminate()
print(watch.stdout.read(), old.pid, new.pid)
watch.wait()
"""
        if os.geteuid() or not shutil.which("unshare") or not os.path.exists("/proc/sys/kernel/ns_last_pid"):
            self.skipTest("that takes root, unshare and a kernel that lets processes be restored")
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "-c", script,
                               os.path.dirname(__file__), self.shell, WEFT, "watch", "--process", self.name, *SAY], cwd=self.dir, env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        if "unshare" in done.stderr:
            self.skipTest(done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, len(lines)), (0, 4), done.stderr)
        self.assertIn(BY_LOOKING, lines[0])
        self.assertRegex(lines[1], r"^exit 1000 has ended(: SIGKILL)?$")
        self.assertRegex(lines[2], r"^exit 1000 has ended(: SIGTERM)?$")
        self.assertEqual(lines[3].split(), ["1000", "1000"])

    def test_idle_is_idle(self):
        """No clock runs, and it does not wake unless the kernel has something to tell, which a socket of ours hears, too."""
        p, _ = self.watch_names("--on", "exit")
        clocks = re.findall(r"^it_value: (.*)$", "".join(fd_infos(p.pid).values()), re.M)
        self.assertEqual(clocks, ["(0, 0)"])
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 11) as s:
            s.bind((0, 1))

            def wakes():
                with open(f"/proc/{p.pid}/status") as f:
                    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M)[1])

            def nr_messages():
                nr = 0
                while True:
                    try:
                        s.recv(4096)
                    except BlockingIOError:
                        return nr
                    except OSError:
                        nr += 1000  # and more: lost
                    nr += 1

            def is_idle():
                nr_messages()
                before = wakes()
                time.sleep(1.2)  # nothing is waited for: this is the time in which a look would be due
                after = wakes()
                return after - before <= nr_messages()
            wait_until(is_idle, "a second in which it is not woken without a message")


sys.exit(main(NamesTest, at_once=6))
