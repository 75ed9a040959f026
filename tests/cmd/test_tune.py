# SPDX-License-Identifier: Apache-2.0
"""`weft doctor --tune, --apply, --undo, --verify, --emit`: on machines that are directories of files, and on the live
kernel in namespaces of the test's own."""
import fcntl
import json
import os
import re
import subprocess
import tarfile
import time
import unittest

from cmdtest import WEFT, CommandTest

SOMAXCONN = "proc/sys/net/core/somaxconn"
SYN = "proc/sys/net/ipv4/tcp_max_syn_backlog"
RMEM = "proc/sys/net/ipv4/tcp_rmem"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
CPU = "sys/devices/system/cpu/cpu{}/cpufreq/"
BOOT = "proc/sys/kernel/random/boot_id"
JOURNALS = "var/lib/weft/doctor"
# Leaves the journals of the real machine alone.
ALONE = ["unshare", "-nm", "sh", "-ec",
         'mount -t tmpfs tmpfs /var/lib && mount -t sysfs sysfs /sys && ip link set lo up; exec "$@"', "sh"]

# A command that is broken, and takes a copy's paths for those of this machine, must not set anything here.
GUARDED = ["unshare", "-nm", "sh", "-ec",
           'mount -o remount,bind,ro /proc; mount -o remount,bind,ro /sys; '
           'for f in $(grep -o " /sys/[^ ]*" /proc/self/mounts); do mount -o remount,bind,ro $f; done; '
           'test ! -d /dev/cpu || mount -t tmpfs tmpfs /dev/cpu; exec "$@"', "sh"]


class Tune(CommandTest):
    nr = 0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.guard = []
        if os.geteuid() != 0:
            return                                      # cannot set anything of the machine
        cls.guard = GUARDED
        for name in ("/proc/sys/net/core/somaxconn", "/proc/irq/default_smp_affinity",
                     "/sys/kernel/mm/transparent_hugepage/enabled"):
            done = subprocess.run([*GUARDED, "sh", "-c", f"test -e {name} || exit 0; exec 3<> {name}"],
                                  capture_output=True, check=False)
            if b"Read-only file system" not in done.stderr and (done.returncode or os.path.exists(name)):
                raise unittest.SkipTest("/proc and /sys cannot be made read-only here")

    def machine(self, **files):
        Tune.nr += 1
        root = self.path(f"tune{Tune.nr}")
        tree = {
            BOOT: "b007\n", SOMAXCONN: "128\n", SYN: "512\n", RMEM: "4096\t131072\t1000000\n",
            THP: "[always] madvise never\n", "proc/irq/27/smp_affinity_list": "0-3\n",
            "proc/irq/28/smp_affinity_list": "0-3\n", "sys/class/net/eth0/queues/rx-0/rps_cpus": "0000,00000000\n",
        }
        for i in range(2):
            tree[CPU.format(i) + "scaling_governor"] = "powersave\n"
            tree[CPU.format(i) + "scaling_available_governors"] = "performance powersave\n"
        tree.update(files)
        for name, content in tree.items():
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            self.write(f"tune{Tune.nr}/{name}", content.encode(), 0o644)
        return root

    def doctor(self, root, *args):
        return subprocess.run([*self.guard, WEFT, "doctor", "--root", root, *args], env=self.environment(),
                              cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)

    @staticmethod
    def value(root, name):
        with open(os.path.join(root, name), encoding="utf-8") as f:
            return f.read().strip()

    @staticmethod
    def journals(root):
        folder = os.path.join(root, JOURNALS)
        return sorted(os.path.join(folder, n) for n in os.listdir(folder)) if os.path.isdir(folder) else []

    def rows(self, root):
        return {k["id"]: k for k in json.loads(self.doctor(root, "--tune", "--json").stdout)["knobs"]}

    def good(self, done, code=0):
        self.assertEqual((done.returncode, done.stderr), (code, b""), done.stdout)
        return done.stdout.decode()

    def alone(self, script, *args):
        """Runs a shell script in namespaces of its own; "$0" is the command."""
        if os.geteuid() != 0:
            self.skipTest("only root makes these namespaces")
        done = subprocess.run([*ALONE, "sh", "-c", script, WEFT, *args], env=self.environment(), cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        if done.stderr.startswith((b"unshare", b"mount", b"sh: 1: ip")):
            self.skipTest("no namespaces here")
        return done

    # --- what could be set ---

    def test_list_says_what_could_be_set_and_how(self):
        text = self.good(self.doctor(self.machine(), "--tune"))
        self.assertIn("128 -> 4096", text)
        self.assertIn("try: weft doctor --apply somaxconn    (sysctl -w net.core.somaxconn=4096)", text)
        self.assertIn("(sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456')", text)
        self.assertIn("(echo madvise > /sys/kernel/mm/transparent_hugepage/enabled)", text)
        self.assertIn("(2 places)", text)
        self.assertNotIn("warn ", text)

    def test_nothing_is_lowered(self):
        row = self.rows(self.machine(**{SOMAXCONN: "65535\n", RMEM: "8192 131072 1000000\n"}))
        self.assertEqual((row["somaxconn"]["level"], row["somaxconn"]["proposal"]), ("ok", ""))
        self.assertEqual(row["tcp-rmem"]["proposal"], "8192 131072 6291456")

    def test_what_is_nearly_full_is_a_symptom(self):
        root = self.machine(**{"proc/sys/fs/file-nr": "960 0 1000\n", "proc/sys/fs/file-max": "1000\n"})
        self.assertEqual(self.doctor(root, "--tune").returncode, 1)
        row = self.rows(root)["file-max"]
        self.assertEqual((row["level"], row["seen"]), ("warn", "960 of 1000 files are open"))

    def test_what_is_gone_is_named_where_it_is_asked_for(self):
        self.assertEqual(self.rows(self.machine())["tw-recycle"]["level"], "note")
        root = self.machine(**{"etc/sysctl.d/9-fast.conf": "net.ipv4.tcp_tw_recycle = 1\n"})
        row = self.rows(root)["tw-recycle"]
        self.assertEqual((row["level"], row["seen"]),
                         ("warn", "/etc/sysctl.d/9-fast.conf still names it: remove it"))

    def test_a_snapshot_shows_elsewhere_what_was_seen_here(self):
        file, copy = self.path("snapshot.tar"), self.path("snapshot")
        self.assertIn("wrote", self.good(self.weft("doctor", "--snapshot", file)))
        with tarfile.open(file) as tar:
            names = tar.getnames()
            tar.extractall(copy)
        self.assertEqual([n for n in names if n.startswith(("/", "..")) or re.match(r"proc/\d", n)], [])
        rows = self.rows(copy)
        for row, path in (("somaxconn", "net/core/somaxconn"), ("map-count", "vm/max_map_count"),
                          ("tcp-wmem", "net/ipv4/tcp_wmem")):
            with open("/proc/sys/" + path, encoding="ascii") as f:
                self.assertEqual(rows[row]["value"], " ".join(f.read().split()))
        # Which /proc and /sys a test may read differs: what the machine knows, the copy knows.
        here, there = (json.loads(self.weft("doctor", "--json", *args).stdout)["checks"]
                       for args in ((), ("--root", copy)))
        for row, other in zip(here, there):
            if other["level"] != "skip":
                self.assertEqual((row["id"], row["value"]), (other["id"], other["value"]))

    def test_a_snapshot_that_cannot_be_written(self):
        for args, words in ((("/dev/full",), ("/dev/full", "No space left")), (("/no/such/x",), ("No such file",)),
                            (("",), ("--snapshot",)), (("x", "--json"), ("no other option",))):
            self.assert_refused(self.weft("doctor", "--snapshot", *args), 125, "doctor: ", *words)

    def test_advice_is_read_from_the_machine(self):
        row = self.rows(self.machine(**{
            "proc/sys/kernel/osrelease": "6.1.0\n", "boot/config-6.1.0": "#\nCONFIG_HZ=250\n",
            "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian\n",
            "sys/devices/system/cpu/nohz_full": "(null)\n",
            "sys/devices/system/cpu/cpu0/cpuidle/state0/latency": "0\n",
            "sys/devices/system/cpu/cpu0/cpuidle/state0/name": "POLL\n",
            "sys/devices/system/cpu/cpu0/cpuidle/state1/latency": "133\n",
            "sys/devices/system/cpu/cpu0/cpuidle/state1/name": "C6\n"}))
        self.assertEqual([row[i]["value"] for i in ("hz", "preemption", "tickless", "idle")],
                         ["250", "PREEMPT_DYNAMIC", "none", "C6: 133 us to wake up"])

    def test_dropped_connections_are_a_symptom(self):
        """A real one: nobody accepts, and connections come all the time that doctor looks."""
        done = self.alone(r'''exec python3 - "$0" <<'END'
import socket, subprocess, sys
lost = socket.create_server(("127.0.0.1", 0), backlog=0)
doctor = subprocess.Popen([sys.argv[1], "doctor", "--tune", "--json"])
while doctor.poll() is None:
    tries = [socket.socket() for _ in range(50)]
    for s in tries:
        s.setblocking(False)
        s.connect_ex(lost.getsockname())
    for s in tries:
        s.close()
sys.exit(doctor.returncode)
END''')
        self.assertEqual((done.returncode, done.stderr), (1, b""))
        row = {k["id"]: k for k in json.loads(done.stdout)["knobs"]}["somaxconn"]
        self.assertEqual(row["level"], "warn")
        self.assertIn("connections dropped in a second", row["seen"])

    # --- apply, verify, undo ---

    def test_apply_and_undo_give_back_all_values(self):
        root = self.machine()
        text = self.good(self.doctor(root, "--apply", "somaxconn", "thp=never", "irq@27=1", "governor", "rps=f",
                                     "tcp-rmem=4096 131072 9000000"))
        self.assertEqual(text.count("ok, read back"), 7)
        for name, value in ((SOMAXCONN, "4096"), (THP, "never"), ("proc/irq/27/smp_affinity_list", "1"),
                            ("proc/irq/28/smp_affinity_list", "0-3"), (CPU.format(1) + "scaling_governor",
                            "performance"), (RMEM, "4096 131072 9000000"),
                            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "f")):
            self.assertEqual(self.value(root, name), value)
        self.assertIn(self.journals(root)[0], text)
        self.assertEqual(self.good(self.doctor(root, "--verify")).count("ok "), 7)
        lines = [line.split()[0] for line in self.good(self.doctor(root, "--undo")).splitlines()]
        self.assertEqual(lines[0], "/" + RMEM)          # backwards
        self.assertEqual(lines[-1], "/" + SOMAXCONN)
        for name, value in ((SOMAXCONN, "128"), (THP, "always"), ("proc/irq/27/smp_affinity_list", "0-3"),
                            (CPU.format(0) + "scaling_governor", "powersave"), (RMEM, "4096 131072 1000000")):
            self.assertEqual(self.value(root, name), value)
        self.assert_refused(self.doctor(root, "--undo"), 125, "no journal", "undone")

    def test_second_apply_finds_all_set(self):
        root = self.machine()
        self.good(self.doctor(root, "--apply", "somaxconn"))
        self.assertIn("ok already", self.good(self.doctor(root, "--apply", "somaxconn")))
        self.assertEqual(len(self.journals(root)), 1)   # the second set nothing
        self.good(self.doctor(root, "--undo"))
        self.assertEqual(self.value(root, SOMAXCONN), "128")

    def test_masks_are_the_same_with_and_without_zeros(self):
        root = self.machine(**{"sys/class/net/eth0/queues/rx-0/rps_cpus": "0000,0000000F\n"})
        self.assertIn("ok already", self.good(self.doctor(root, "--apply", "rps=f")))
        self.assertIn("ok, read back", self.good(self.doctor(root, "--apply", "rps=f0")))

    def test_undo_goes_back_one_journal_at_a_time(self):
        root = self.machine()
        for value in ("1000", "2000"):
            self.good(self.doctor(root, "--apply", "somaxconn=" + value))
        for value in ("1000", "128"):
            self.good(self.doctor(root, "--undo"))
            self.assertEqual(self.value(root, SOMAXCONN), value)

    def test_odd_text_does_not_reach_the_terminal(self):
        root = self.machine(**{SOMAXCONN: "1\x1b[2J\n", "proc/irq/a\tb/smp_affinity_list": "0\n"})
        text = self.good(self.doctor(root, "--tune")) + self.good(self.doctor(root, "--apply", "somaxconn=99"))
        self.assertNotIn("\x1b", text + self.good(self.doctor(root, "--undo")))

    def test_dry_run_writes_nothing(self):
        root = self.machine()
        self.assertIn("would be set", self.good(self.doctor(root, "--apply", "somaxconn", "--dry-run")))
        self.assertEqual((self.value(root, SOMAXCONN), self.journals(root)), ("128", []))

    def test_undo_leaves_what_somebody_else_set(self):
        root = self.machine()
        self.good(self.doctor(root, "--apply", "somaxconn", "syn-backlog"))
        self.write(os.path.join(root, SOMAXCONN), b"777\n", 0o644)
        self.assertIn("4096, but it is 777", self.good(self.doctor(root, "--verify"), 1))
        self.assertIn("somebody else set it to 777", self.good(self.doctor(root, "--undo"), 1))
        self.assertEqual((self.value(root, SOMAXCONN), self.value(root, SYN)), ("777", "512"))

    def test_after_a_reboot_there_is_nothing_to_undo(self):
        root = self.machine()
        self.good(self.doctor(root, "--apply", "somaxconn"))
        self.write(os.path.join(root, BOOT), b"b008\n", 0o644)
        self.assertIn("started anew", self.good(self.doctor(root, "--undo")))
        self.assertEqual(self.value(root, SOMAXCONN), "4096")

    def test_a_kill_between_journal_and_write(self):
        """A lease on the second place holds the write up after its line is in the journal."""
        root = self.machine()
        # The lease is broken with this signal, which ends a process that does not expect it.
        fd = os.open(os.path.join(root, SYN), os.O_RDONLY)
        try:
            fcntl.fcntl(fd, 10, 17)                     # F_SETSIG, SIGCHLD: ignored
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError:
            os.close(fd)
            self.skipTest("no leases on this file system")
        command = subprocess.Popen([*self.guard, WEFT, "doctor", "--root", root, "--apply", "somaxconn", "syn-backlog"],
                                   env=self.environment(), stdout=subprocess.PIPE)
        try:
            while not any("/" + SYN in self.value("", j) for j in self.journals(root)):
                self.assertIsNone(command.poll())
                time.sleep(0.001)
        finally:
            command.kill()
            command.wait()
            command.stdout.close()
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
            os.close(fd)
        self.assertEqual((self.value(root, SOMAXCONN), self.value(root, SYN)), ("4096", "512"))
        text = self.good(self.doctor(root, "--undo"))
        self.assertIn(f"/{SYN}   512 -> 512   ok already", text)
        self.assertEqual((self.value(root, SOMAXCONN), self.value(root, SYN)), ("128", "512"))

    def test_a_line_that_a_crash_cut_does_not_count(self):
        root = self.machine()
        self.good(self.doctor(root, "--apply", "somaxconn"))
        with open(self.journals(root)[0], "a", encoding="utf-8") as f:
            f.write(f"set\t/{SYN}\t1")
        self.good(self.doctor(root, "--undo"))
        self.assertEqual((self.value(root, SOMAXCONN), self.value(root, SYN)), ("128", "512"))

    def test_a_journal_names_only_places_of_knobs(self):
        root = self.machine(**{"etc/passwd": "b\n"})
        journal = self.write("evil", b"weft doctor journal 1\nset\t/etc/passwd\ta\tb\tb007\n"
                             b"set\t/proc/irq/../../etc/smp_affinity_list\ta\tb\tb007\n", 0o644)
        done = self.doctor(root, "--undo", journal)
        self.assertEqual((done.returncode, done.stderr.count(b"left alone")), (1, 2))
        self.assertEqual(self.value(root, "etc/passwd"), "b")
        for content in (b"", b"set\t/a\tb\tc\td\n", b"weft doctor journal 1\nset\t/a\n"):
            self.assert_refused(self.doctor(root, "--undo", self.write("none", content)), 125, "no journal of weft")
        self.assert_refused(self.doctor(root, "--undo", self.path("no-such")), 125)

    def test_links_do_not_lead_out_of_a_copy(self):
        outside = self.write("outside", b"128\n", 0o644)
        root = self.machine()
        os.unlink(os.path.join(root, SOMAXCONN))
        os.symlink(outside, os.path.join(root, SOMAXCONN))
        self.assert_refused(self.doctor(root, "--apply", "somaxconn"), 125, "cannot use")
        self.assertEqual(self.value("", outside), "128")

    # --- direct cache access, on copies of old machines ---

    def old_machine(self, device="0x25d8", vendor="0x8086", model=15, flags="fpu dca sse3", **files):
        cpuinfo = ("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
                   f"model\t\t: {model}\nmodel name\t: Xeon\nflags\t\t: {flags}\n\n")
        bus = "sys/bus/pci/devices/"
        tree = {"proc/cpuinfo": cpuinfo, "dev/cpu/0/msr": "\1" * 4096, "dev/cpu/1/msr": "\2" * 4096,
                bus + "0000:00:00.0/vendor": vendor + "\n", bus + "0000:00:00.0/device": device + "\n",
                bus + "0000:00:00.0/config": "\x21" * 256,
                bus + "0000:00:1f.0/vendor": "0x8086\n", bus + "0000:00:1f.0/device": "0x2670\n",
                bus + "0000:00:1f.0/config": "\x21" * 256}
        return self.machine(**tree, **files)

    def test_dca_sets_two_bits_and_gives_them_back(self):
        names = [f"sys/bus/pci/devices/0000:00:{n}/config" for n in ("00.0", "1f.0")] + \
                [f"dev/cpu/{n}/msr" for n in range(2)]

        def contents():
            result = []
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    result.append(f.read())
            return result
        for device in ("0x25c0", "0x25d0", "0x25d4", "0x25d8", "0x65c0", "0x3600"):
            root = self.old_machine(device)
            before = contents()
            text = self.good(self.doctor(root, "--apply", "--i-know", "dca", "dca-cpu"))
            # The register of CPU 0 has the bit already.
            self.assertEqual((text.count("ok, read back"), text.count("ok already")), (2, 1))
            after = contents()
            self.assertEqual(after[0], before[0][:0x64] + b"\x61" + before[0][0x65:])
            self.assertEqual(after[1:3], before[1:3])
            self.assertEqual(after[3], before[3][:0x1f8] + b"\3" + before[3][0x1f9:])
            self.good(self.doctor(root, "--undo"))
            self.assertEqual(contents(), before)
        self.assertIn("try: weft doctor --apply --i-know dca ", self.good(self.doctor(root, "--tune")))
        self.assertIn("would be set", self.good(self.doctor(root, "--apply", "--i-know", "--dry-run", "dca")))
        self.assertEqual(contents(), before)

    def test_dca_is_refused_elsewhere(self):
        for root, words in ((self.old_machine(), ["--i-know"]),
                            (self.old_machine(device="0x2f00"), ["no bridge"]),
                            (self.old_machine(vendor="0x1022"), ["no bridge"]),
                            (self.old_machine(model=26), ["CPU is none"]),
                            (self.old_machine(flags="fpu dcax"), ["CPU is none"]),
                            (self.old_machine(**{"sys/kernel/security/lockdown": "none [integrity]\n"}),
                             ["locked down"]),
                            (self.machine(), ["no bridge"])):
            sure = [] if words == ["--i-know"] else ["--i-know", "--force"]
            for knob in ("dca", "dca-cpu"):
                self.assert_refused(self.doctor(root, "--apply", *sure, knob), 125, *words)
            self.assertEqual(self.journals(root), [])
        row = self.rows(self.old_machine(model=26))
        self.assertEqual((row["dca"]["level"], row["dca-cpu"]["level"]), ("none", "none"))

    def test_a_journal_cannot_reach_other_devices(self):
        root = self.old_machine()
        place = "/sys/bus/pci/devices/0000:00:1f.0/config"
        journal = self.write("other", f"weft doctor journal 1\nset\t{place}\t1\t0\tb007\n".encode(), 0o644)
        done = self.doctor(root, "--undo", journal)
        self.assertEqual((done.returncode, done.stderr.count(b"left alone")), (1, 1))
        self.assertEqual(self.value(root, place[1:]), "!" * 256)
        self.assert_refused(self.doctor(root, "--emit", "tuned", "dca"), 125, "not for tuned")

    # --- refusals ---

    def test_refusals_come_before_the_first_write(self):
        root = self.machine()
        for word, message in (("somaxconn=1", "from 16"), ("somaxconn=many", "takes a number"), ("somaxconn=+99", "takes a number"),
                              ("somaxconn", "twice"), ("thp=maybe", "one of"), ("rps=xyz", "hexadecimal"),
                              ("governor=ondemand", "performance powersave"), ("irq@27=3-1", "list of CPUs"),
                              ("irq=1", "needs a name"), ("rps", "takes a value"), ("nonsense", "no knob"),
                              ("irq@../27=1", "not '../27'"), ("rps@eth9=1", "has no"), ("map-count", "has no"),
                              ("tcp-rmem=3 2 1", "rising"), ("tw-recycle=1", "only advised"),
                              ("tickless=2-3", "only advised")):
            with self.subTest(word=word):
                first = "syn-backlog" if word.startswith("somaxconn=") else "somaxconn"
                self.assert_refused(self.doctor(root, "--apply", first, word), 125, message)
        self.assert_refused(self.doctor(root, "--apply"), 125, "what?")
        self.assertEqual(self.value(root, SYN), "512")
        self.assertEqual((self.value(root, SOMAXCONN), self.journals(root)), ("128", []))

    def test_options_that_do_not_fit(self):
        for args in (["--tune", "--undo"], ["--undo", "--json"], ["--tune", "--program", "/bin/true"],
                     ["--dry-run"], ["--force", "--undo"], ["--undo", "a", "b"], ["--tune", "a"],
                     ["--tune", "--root", ""]):
            self.assert_refused(self.weft("doctor", *args), 125)

    def test_owners_keep_their_knobs(self):
        root = self.machine(**{"proc/41/comm": "tuned\n", "proc/42/comm": "irqbalance\n"})
        self.assert_refused(self.doctor(root, "--apply", "somaxconn"), 125, "tuned runs", "--emit tuned", "--force")
        self.assert_refused(self.doctor(root, "--apply", "irq@27=1"), 125, "irqbalance runs")
        self.assertIn("weft doctor --emit tuned somaxconn", self.good(self.doctor(root, "--tune")))
        self.good(self.doctor(root, "--apply", "rps@eth0=3"))           # nobody's
        self.good(self.doctor(root, "--apply", "--force", "somaxconn"))
        self.assertEqual(self.value(root, SOMAXCONN), "4096")

    def test_an_ordinary_user_learns_what_is_needed(self):
        if os.geteuid() != 0:
            self.skipTest("only root becomes another")
        os.chmod(self.dir, 0o755)
        done = subprocess.run([WEFT, "doctor", "--root", self.machine(), "--apply", "somaxconn"],
                              env=self.environment(), capture_output=True, check=False, user=65534, group=65534,
                              extra_groups=[])
        self.assert_refused(done, 125, "user 65534 may not write", "root may")

    def test_read_only_places(self):
        root = self.machine()
        done = self.alone('mount --bind "$1/proc" "$1/proc" && mount -o remount,bind,ro "$1/proc" && '
                          'exec "$0" doctor --root "$1" --apply somaxconn', root)
        self.assert_refused(done, 125, "read-only here")
        self.assertEqual(self.journals(root), [])

    # --- the real kernel, in a network of its own ---

    def test_live_sysctl_and_back(self):
        done = self.alone('s=/proc/sys/net/core/somaxconn; was=$(cat $s); "$0" doctor --apply somaxconn=1234 '
                          '&& cat $s && "$0" doctor --verify && "$0" doctor --undo && test $(cat $s) = $was')
        text = self.good(done)
        self.assertEqual(text.count("ok, read back"), 2)
        self.assertIn("\n1234\n", text)

    def test_live_queue_and_back(self):
        done = self.alone('ip link add weft0 type veth peer name weft1 || exit 77\n'
                          'f=/sys/class/net/weft0/queues/rx-0/rps_cpus; test -e $f || exit 77\n'
                          '"$0" doctor --apply rps@weft0=1 && cat $f && "$0" doctor --undo && cat $f')
        if done.returncode == 77:
            self.skipTest("no veth here")
        self.assertEqual(self.good(done).count("ok, read back"), 2)

    def test_live_card_and_back(self):
        done = self.alone('ip link add weft0 type veth peer name weft1 || exit 77\n'
                          '"$0" doctor --apply tso@weft0=0 gro@weft0=1 && "$0" doctor --verify && "$0" doctor --undo\n'
                          '! "$0" doctor --apply coalesce@weft0=10 2>/dev/null || exit 3; "$0" doctor --tune --json')
        if done.returncode == 77:
            self.skipTest("no veth here")
        text, brace, knobs = self.good(done).partition("{")
        self.assertEqual(text.count("ok, read back"), 4)
        self.assertIn("/sys/class/net/weft0/ethtool.tso   1 -> 0   ok, read back", text)
        self.assertIn("/sys/class/net/weft0/ethtool.tso   0 -> 1   ok, read back", text)
        self.assertEqual({k["id"]: k["value"] for k in json.loads(brace + knobs)["knobs"]}["tso"], "1")

    def test_cards_of_a_copy(self):
        place = "sys/class/net/eth0/ethtool."
        root = self.machine(**{place + "tso": "0\n", place + "coalesce": "3\n", "proc/net/connector": "Name ID\ncn_proc 1:1\n"})
        rows = self.rows(root)
        self.assertEqual((rows["tso"]["value"], rows["coalesce"]["value"]), ("0", "3"))
        self.assertEqual((rows["connector"]["value"], self.rows(self.machine())["connector"]["level"]), ("there", "none"))
        self.good(self.doctor(root, "--apply", "tso=1", "coalesce@eth0=50"))
        self.assertEqual((self.value(root, place + "tso"), self.value(root, place + "coalesce")), ("1", "50"))
        self.good(self.doctor(root, "--undo"))
        self.assertEqual((self.value(root, place + "tso"), self.value(root, place + "coalesce")), ("0", "3"))
        self.assert_refused(self.doctor(root, "--apply", "tso=2"), 125, "tso", "0 to 1")
        self.assertIn("TCPSegmentationOffload=1", self.good(self.doctor(root, "--emit", "link", "tso@eth0=1")))
        self.assert_refused(self.doctor(root, "--emit", "tuned", "tso@eth0=1"), 125, "not for tuned")

    def test_a_value_that_the_kernel_refuses_is_dropped(self):
        done = self.alone('echo 2048 > /proc/sys/net/ipv4/ip_unprivileged_port_start || exit 77\n'
                          '"$0" doctor --apply "port-range=1500 60000" somaxconn=1234; echo $?; "$0" doctor --undo')
        if done.returncode == 77:
            self.skipTest("no such sysctl here")
        text = self.good(done)
        self.assertIn("refused: Invalid argument", text)
        self.assertIn("\n1\n", text)                    # the rest was set, and the status says that not all was
        self.assertEqual(text.count("ok, read back"), 2)
        self.assertEqual(text.count("ip_local_port_range"), 1)

    # --- fragments for other tools ---

    def test_emit(self):
        root = self.machine()
        self.assertIn("\nnet.core.somaxconn = 4096\n", self.good(self.doctor(root, "--emit", "sysctl.d", "somaxconn")))
        text = self.good(self.doctor(root, "--emit", "tuned", "somaxconn", "governor", "rps@eth0=f"))
        for part in ("[sysctl]\nnet.core.somaxconn=4096\n", "[cpu]\ngovernor=performance\n",
                     "[sysfs]\n/sys/class/net/eth0/queues/rx-*/rps_cpus=f\n"):
            self.assertIn(part, text)
        self.assertIn("[Match]\nOriginalName=eth0\n\n[Link]\nReceivePacketSteeringCPUMask=f\n",
                      self.good(self.doctor(root, "--emit", "link", "rps@eth0=f")))
        self.assertEqual(self.good(self.doctor(root, "--emit", "cmdline", "thp", "tickless=2-3", "autogroup=0")),
                         "transparent_hugepage=madvise\nnohz_full=2-3\nnoautogroup\n")
        self.assert_refused(self.doctor(root, "--emit", "sysctl.d", "somaxconn", "thp"), 125, "thp is no sysctl")
        self.assert_refused(self.doctor(root, "--emit", "xml", "thp"), 125, "not 'xml'")
        self.assert_refused(self.doctor(root, "--emit", "sysctl.d", "somaxconn=1"), 125, "from 16")
        self.assert_refused(self.doctor(root, "--emit", "cmdline", "tickless=2 init=/x"), 125, "one word")


if __name__ == "__main__":
    unittest.main()
