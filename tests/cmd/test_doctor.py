# SPDX-License-Identifier: Apache-2.0
"""`weft doctor`: the live machine, and machines that are directories of files."""
import ctypes
import json
import os
import pty
import struct
import subprocess
import unittest

from cmdtest import WEFT, CommandTest

SET_MDWE = 65
LEVELS = ("ok", "skip", "warn", "fail")
LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             {nproc}                30000                processes
Max open files            {nofile}                 {hard}              files
Max address space         {addresses}            unlimited            bytes
"""
V1 = "30 20 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "31 20 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
CPU = "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: {name}\n\n"


class Doctor(CommandTest):
    nr = 0

    def machine(self, **files):
        """A healthy machine of the given files; a name with None has no such file."""
        Doctor.nr += 1
        root = self.path(f"root{Doctor.nr}")
        auxv = struct.pack("<8Q", 6, 4096, 26, 2, 51, 3376, 27, 28)
        tree = {
            "proc/sys/kernel/osrelease": "6.14.0-weft\n",
            "proc/sys/kernel/pid_max": "4194304\n",
            "proc/sys/kernel/threads-max": "100000\n",
            "proc/sys/vm/max_map_count": "65530\n",
            "proc/cpuinfo": CPU.format(vendor="GenuineIntel", family=6, model=33, name="of some kind"),
            "proc/self/auxv": auxv,
            "proc/self/limits": LIMITS.format(nproc=20000, nofile=100000, hard=200000, addresses="unlimited"),
            "proc/self/status": "Name:\tweft\nSeccomp:\t0\nCpus_allowed_list:\t0-3,8\n",
            "proc/self/mountinfo": V2,
            "proc/self/cgroup": "0::/a/b\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
        }
        tree.update(files)
        for name, content in tree.items():
            if content is None:
                continue
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            self.write(f"root{Doctor.nr}/{name}",
                       content if isinstance(content, bytes) else content.encode())
        return root

    def test_one_of_a_kind_is_singular(self):
        for changes, words in (({}, "0 warnings, 0 failures"),
                               ({"proc/sys/kernel/pid_max": "1000\n"}, "1 warning, 0 failures"),
                               ({"proc/sys/kernel/osrelease": "4.4.0\n"}, "0 warnings, 1 failure")):
            self.assertIn(f" ok, {words},", self.weft("doctor", "--root", self.machine(**changes)).stdout.decode())

    def checks(self, root=None):
        done = self.weft("doctor", "--json", *(["--root", root] if root else []))
        self.assertEqual(done.stderr, b"")
        report = json.loads(done.stdout)
        levels = [c["level"] for c in report["checks"]]
        self.assertEqual(done.returncode, 2 if "fail" in levels else 1 if "warn" in levels else 0)
        self.assertEqual(report["summary"], {name: levels.count(name) for name in LEVELS})
        return {c["id"]: c for c in report["checks"]}

    def find(self, check, **files):
        found = self.checks(self.machine(**files))[check]
        return found["level"], found["value"]

    def test_live_machine(self):
        checks = self.checks()
        self.assertGreaterEqual(len(checks), 20)
        self.assertEqual(checks["library"]["level"], "ok")
        self.assertIn(os.uname().release, checks["kernel"]["value"])
        for c in checks.values():
            self.assertIn(c["level"], LEVELS)
            self.assertNotEqual(c["level"], "skip")
            self.assertLessEqual(LEVELS.index(c["level"]), LEVELS.index(c["severity"]), c)
            self.assertTrue(c["value"] and c["why"] and c["title"])
            self.assertTrue(c["advice"] or c["level"] != "warn", c)

    def test_workers_of_the_live_machine(self):
        value = self.checks()["workers"]["value"]
        self.assertIn(f"CPUs allowed {len(os.sched_getaffinity(0))}", value)

    def test_text(self):
        done = self.weft("doctor")
        ids = [line.split()[1] for line in done.stdout.decode().splitlines()
               if line.startswith(("ok ", "warn ", "FAIL "))]
        self.assertEqual(ids, list(self.checks()))

    def test_missing_library_is_a_failure(self):
        done = self.weft("doctor", WEFT_LIBRARY="/no/such.so")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"FAIL  library", done.stdout)

    def test_text_that_may_not_be_written_is_a_failure(self):
        def deny():
            if ctypes.CDLL(None).prctl(SET_MDWE, 1, 0, 0, 0):
                os._exit(77)  # Linux 6.3 has it
        done = subprocess.run([WEFT, "doctor", "--json"], env=self.environment(), capture_output=True,
                              preexec_fn=deny, check=False)
        if done.returncode == 77:
            self.skipTest("no PR_SET_MDWE here")
        self.assertEqual(done.returncode, 2)
        patch = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "patch"][0]
        self.assertEqual(patch["level"], "fail")
        self.assertIn("PR_SET_MDWE", patch["advice"])

    def with_filter(self, nr, action):
        """The finding about weft's own calls below a seccomp filter that answers one call so."""
        def install():
            rows = [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (0x06, 0, 0, action), (0x06, 0, 0, 0x7fff0000)]
            program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
            fprog = struct.pack("<HxxxxxxQ", len(rows), ctypes.addressof(program))
            libc = ctypes.CDLL(None)
            if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, fprog, 0, 0):
                os._exit(77)
        done = subprocess.run([WEFT, "doctor", "--json"], env=self.environment(), capture_output=True,
                              preexec_fn=install, check=False)
        if done.returncode == 77:
            self.skipTest("no seccomp filters here")
        found = [c for c in json.loads(done.stdout)["checks"] if c["id"] == "calls"][0]
        return done.returncode, found["level"], found["value"]

    def test_calls_that_a_filter_kills_for_are_named(self):
        self.assertEqual(self.with_filter(324, 0x80000000), (2, "fail", "killed for membarrier"))
        self.assertEqual(self.with_filter(283, 0x00030000), (2, "fail", "killed for timerfd_create"))

    def test_calls_that_a_filter_refuses_are_named(self):
        self.assertEqual(self.with_filter(324, 0x00050001)[1:], ("warn", "refused: membarrier"))
        self.assertEqual(self.with_filter(101, 0x00050001)[1:], ("ok", "allowed"))

    def test_explain(self):
        for name in self.checks():
            done = self.weft("doctor", "--explain", name)
            self.assertEqual(done.returncode, 0)
            self.assertTrue(done.stdout.startswith(name.encode() + b": "))
        self.assert_refused(self.weft("doctor", "--explain", "nothing"), 125, "'nothing'")

    def test_bad_options(self):
        self.assert_refused(self.weft("doctor", "--nope"), 125, "--nope")
        self.assert_refused(self.weft("doctor", "extra"), 125, "'extra'")
        self.assert_refused(self.weft("doctor", "--root"), 125, "needs a value")
        self.assert_refused(self.weft("doctor", "--root", "/x", "--program", "true"), 125, "--root")
        self.assert_refused(self.weft("doctor", "--json=1"), 125, "'--json' takes no value")
        self.assert_refused(self.weft("doctor", "--root", "/no/such"), 125, "/no/such", "No such file")
        self.assert_refused(self.weft("doctor", "--root", "/etc/passwd"), 125, "directory", "/etc/passwd")
        for other in ("--json", "--root=/", "--program=true"):
            self.assert_refused(self.weft("doctor", "--explain", "kernel", other), 125, "--explain")

    def test_healthy_copy(self):
        checks = self.checks(self.machine())
        self.assertEqual({c["level"] for c in checks.values()}, {"ok", "skip"})

    def test_nothing_to_read_is_said(self):
        empty = self.path("empty-root")
        os.makedirs(empty, exist_ok=True)
        checks = self.checks(empty)
        self.assertEqual([i for i, c in checks.items() if c["level"] == "ok"], ["ptrace"])

    def test_kernel(self):
        name = "proc/sys/kernel/osrelease"
        self.assertEqual(self.find("kernel", **{name: "4.19.0\n"})[0], "fail")
        self.assertEqual(self.find("kernel", **{name: "5.8.0\n"})[0], "fail")
        self.assertEqual(self.find("kernel", **{name: "5.9.0\n"})[0], "ok")
        self.assertEqual(self.find("kernel", **{name: "rubbish\n"})[0], "warn")

    def test_auxv(self):
        old = struct.pack("<6Q", 6, 4096, 26, 0, 51, 11008)
        checks = self.checks(self.machine(**{"proc/self/auxv": old}))
        self.assertEqual(checks["fsgsbase"]["level"], "fail")
        self.assertIn("plain NPTL", checks["fsgsbase"]["advice"])
        self.assertEqual(checks["minsigstksz"]["level"], "warn")
        self.assertEqual(checks["minsigstksz"]["value"], "11008")

    def test_limits(self):
        checks = self.checks(self.machine(**{
            "proc/self/limits": LIMITS.format(nproc="unlimited", nofile=1024, hard=4096,
                                               addresses=700000000)}))
        self.assertEqual(checks["nproc"]["value"], "unlimited")
        self.assertEqual(checks["nofile"]["level"], "warn")
        self.assertIn("allows more", checks["nofile"]["advice"])
        self.assertEqual(checks["addresses"]["level"], "warn")
        self.assertEqual(checks["addresses"]["value"], "700000000")
        self.assertIn("ulimit -v", checks["addresses"]["advice"])

    def test_kernel_threads_of_the_group(self):
        self.assertEqual(self.find("pids"), ("ok", "unlimited"))
        group = "sys/fs/cgroup/a/b/pids.max"
        self.assertEqual(self.find("pids", **{group: "max\n"}), ("ok", "unlimited"))
        self.assertEqual(self.find("pids", **{group: "100\n"}), ("ok", "100"))
        checks = self.checks(self.machine(**{group: "100\n", "sys/fs/cgroup/a/pids.max": "9\n"}))
        self.assertEqual((checks["pids"]["level"], checks["pids"]["value"]), ("warn", "9"))
        self.assertIn("/sys/fs/cgroup/a/pids.max", checks["pids"]["advice"])
        self.assertEqual(self.find("pids", **{
            "proc/self/mountinfo": "30 20 0:27 / /cg/pids rw - cgroup cgroup rw,pids\n",
            "proc/self/cgroup": "8:pids:/d\n", "cg/pids/d/pids.max": "20\n"}), ("warn", "20"))
        self.assertEqual(self.find("pids", **{"proc/self/cgroup": None})[0], "warn")

    def test_seccomp(self):
        status = "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\nCpus_allowed_list:\t0\n"
        self.assertEqual(self.find("seccomp", **{"proc/self/status": status}),
                         ("warn", "mode 2, 3 filters"))

    def test_an_opteron_of_revision_e_is_told_loudly(self):
        def look(vendor, family, model):
            return self.find("lock-fence", **{"proc/cpuinfo": CPU.format(
                vendor=vendor, family=family, model=model, name="Dual Core AMD Opteron(tm) Processor 280")})

        self.assertEqual(look("AuthenticAMD", 15, 33), ("fail", "no: Dual Core AMD Opteron(tm) Processor 280"))
        self.assertEqual(look("AuthenticAMD", 15, 31)[0], "ok")
        self.assertEqual(look("AuthenticAMD", 15, 65)[0], "ok")     # revision F, as it was sold
        self.assertEqual(look("AuthenticAMD", 16, 33)[0], "ok")
        self.assertEqual(look("GenuineIntel", 15, 33)[0], "ok")

    def test_colour_is_for_terminals_that_want_it(self):
        root = self.machine(**{"proc/sys/kernel/osrelease": "4.4.0\n"})

        def on_terminal(**changes):
            """All that the command writes on a terminal of its own."""
            shown, terminal = pty.openpty()
            with subprocess.Popen([WEFT, "doctor", "--root", root], stdout=terminal, stdin=subprocess.DEVNULL,
                                  env=self.environment(TERM="xterm", NO_COLOR=None) | changes) as weft:
                os.close(terminal)
                text = b""
                try:
                    while more := os.read(shown, 65536):
                        text += more
                except OSError:         # the other side is closed
                    pass
                os.close(shown)
                self.assertEqual(weft.wait(), 2)
            return text

        self.assertIn(b"\x1b[1;31mFAIL\x1b[0m  kernel", on_terminal())
        self.assertIn(b"FAIL\x1b", on_terminal(NO_COLOR=""))
        for changes in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
            self.assertIn(b"FAIL  kernel", on_terminal(**changes))
            self.assertNotIn(b"\x1b", on_terminal(**changes))
        self.assertNotIn(b"\x1b", self.weft("doctor", "--root", root, TERM="xterm").stdout)

    def test_clocksource(self):
        name = "sys/devices/system/clocksource/clocksource0/current_clocksource"
        self.assertEqual(self.find("clocksource", **{name: "hpet\n"}), ("warn", "hpet"))

    def test_ptrace(self):
        name = "proc/sys/kernel/yama/ptrace_scope"
        self.assertEqual(self.find("ptrace", **{name: "0\n"}), ("ok", "0 (own processes)"))
        self.assertEqual(self.find("ptrace", **{name: "3\n"}), ("warn", "3 (nobody)"))

    def test_workers_without_quota(self):
        self.assertEqual(self.find("workers"), ("ok", "5 (CPUs allowed 5, no quota)"))
        self.assertEqual(self.find("workers", **{"sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}),
                         ("ok", "5 (CPUs allowed 5, no quota)"))

    def test_workers_by_the_quota_of_an_ancestor(self):
        self.assertEqual(self.find("workers", **{"sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
                                                 "sys/fs/cgroup/a/cpu.max": "250000 100000\n"}),
                         ("ok", "3 (CPUs allowed 5, quota 2.50)"))

    def test_workers_of_a_group_that_is_the_mounts_root(self):
        self.assertEqual(self.find("workers", **{
            "proc/self/mountinfo": "31 20 0:28 /a /mnt/cg rw - cgroup2 cgroup2 rw\n",
            "mnt/cg/b/cpu.max": "150000 100000\n"}), ("ok", "2 (CPUs allowed 5, quota 1.50)"))

    def test_workers_with_less_than_one_cpu(self):
        self.assertEqual(self.find("workers", **{"sys/fs/cgroup/cpu.max": "50000 100000\n"}),
                         ("warn", "1 (CPUs allowed 5, quota 0.50)"))

    def test_workers_with_cgroup_v1(self):
        base = "sys/fs/cgroup/cpu,cpuacct"
        files = {"proc/self/mountinfo": V1, "proc/self/cgroup": "5:cpu,cpuacct:/d\n0::/\n",
                 f"{base}/d/cpu.cfs_quota_us": "-1\n", f"{base}/d/cpu.cfs_period_us": "100000\n",
                 f"{base}/cpu.cfs_quota_us": "200000\n", f"{base}/cpu.cfs_period_us": "100000\n"}
        self.assertEqual(self.find("workers", **files), ("ok", "2 (CPUs allowed 5, quota 2.00)"))

    def test_odd_files_do_no_harm(self):
        rubbish = b"\xff\0\n" * 5000
        names = ["proc/sys/kernel/osrelease", "proc/self/auxv", "proc/self/limits",
                 "proc/self/status", "proc/self/mountinfo", "proc/self/cgroup",
                 "proc/sys/vm/max_map_count"]
        self.checks(self.machine(**{name: rubbish for name in names}))
        hostile = self.checks(self.machine(**{
            "sys/devices/system/clocksource/clocksource0/current_clocksource": b'a"\\\x1b\xff\xc3\xa4'}))
        self.assertEqual(hostile["clocksource"]["value"], 'a"\\\x1b\ufffd\xe4')


if __name__ == "__main__":
    unittest.main()
