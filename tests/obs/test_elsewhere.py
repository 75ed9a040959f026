# SPDX-License-Identifier: Apache-2.0
"""`weft dump` where names lead elsewhere: replaced and deleted files, containers, C++ symbols, no libdw."""
import json
import os
import shutil
import subprocess
import time

import obstest
from obstest import ObsTest, weft
from test_dump import PLACES, by_name, functions

NOBODY = 65534
CXX_VICTIM = r"""
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <unistd.h>

namespace deep { template <class T> struct box {
	__attribute__((noinline)) static int waits(const std::map<T, std::string> &m) { char c; return read(0, &c, 1) + m.size(); }
}; }

__attribute__((noinline)) static int blown_up(void) __asm__("BLOWN");
static int blown_up(void) { return deep::box<int>::waits({}) + 1; }

int main() { std::thread t([] { puts("ready"); fflush(stdout); return blown_up() + 1; }); t.join(); }
"""


def base36(n):
    """The number of a substitution: none, 0, 1, ... 9, A, ... Z, 10, ..."""
    n, digits = n - 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return "" if n < 0 else (digits[n // 36] if n >= 36 else "") + digits[n % 36]


def bomb():
    """A symbol whose plain form would have some 2^60 characters: each type names the one before twice."""
    return "_Z1f1AIiiE" + "".join(f"1AIS{base36(1 + 2 * i)}_S{base36(1 + 2 * i)}_E" for i in range(60))


class Elsewhere(ObsTest):
    def look(self, *args, **changes):
        done = weft("dump", "--json", *args, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_places(self, dump):
        threads = by_name(dump)
        for name, (function, _) in PLACES.items():
            self.assertIn(function, functions(threads[name]), name)
            self.assertIn("run", functions(threads[name]), name)

    def moved(self):
        """The victim and weft's library, copied to a folder that can go away."""
        where = self.directory()
        os.chmod(where, 0o755)
        program, library = os.path.join(where, "waiters"), os.path.join(where, "libweft.so.0")
        shutil.copy(obstest.WAITERS, program)
        shutil.copy(os.environ["WEFT_LIBRARY"], library)
        return program, library

    def victim_at(self, program, library, prefix=(), path=None):
        process = subprocess.Popen([*prefix, obstest.WEFT, "run", "--workers", "2", "--", path or program],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=obstest.environment(WEFT_LIBRARY=library), text=True)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline().split()[:1], ["ready"])
        return process.pid

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def settled(self, pid, *prefix):
        """Dumps until everybody waits who is going to."""
        deadline = time.monotonic() + obstest.LIMIT_S
        while time.monotonic() < deadline:
            done = subprocess.run([*prefix, obstest.WEFT, "dump", "--json", str(pid)], capture_output=True, text=True,
                                  env=obstest.environment(), check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            dump = json.loads(done.stdout)
            busy = [t for t in dump["threads"] if t["state"] != "parked" and "call" not in t]
            # On its way into its call a thread may be in another one, which makes it a kernel thread.
            is_in_call = by_name(dump).get("flock", {}).get("call") == 73
            if {t["name"] for t in busy} == obstest.BUSY and is_in_call:
                return dump
        self.fail(f"the victim does not settle: {done.stdout[-4000:]}")

    def test_files_that_were_deleted_have_names(self):
        program, library = self.moved()
        pid = self.victim_at(program, library)
        self.settled(pid)
        os.unlink(program)
        os.unlink(library)
        dump = self.settled(pid)
        self.assert_places(dump)
        self.assertTrue(dump["program"].endswith("waiters (deleted)"))
        objects = {f.get("object") for t in dump["threads"] for f in t["frames"]}
        self.assertIn("waiters", objects)
        self.assertFalse([o for o in objects if o and "deleted" in o])

    def test_files_that_were_replaced_are_those_that_run(self):
        program, library = self.moved()
        pid = self.victim_at(program, library)
        self.settled(pid)
        for path in (program, library):
            os.unlink(path)
            shutil.copy(shutil.which("true"), path)
        self.assert_places(self.settled(pid))

    def test_who_may_not_follow_mappings_reads_memory(self):
        if os.getuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("becoming another user takes root, and setpriv")
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        program, library = self.moved()
        if subprocess.run([*prefix, obstest.WEFT, "--version"], capture_output=True, check=False).returncode:
            self.skipTest("another user may not run this build")
        pid = self.victim_at(program, library, prefix)
        self.assert_places(self.settled(pid, *prefix))
        for path in (program, library):
            os.unlink(path)
            shutil.copy(shutil.which("true"), path)
        threads = by_name(self.settled(pid, *prefix))
        for name in PLACES:  # a file that is gone leaves exported names only; the stack is whole
            self.assertIn("clone3", " ".join(str(f) for f in functions(threads[name])), name)

    def container(self):
        """The victim in namespaces of its own: its number out here."""
        if os.getuid() != 0 or not shutil.which("unshare"):
            self.skipTest("a container takes root, and unshare")
        program, library = self.moved()
        where = os.path.dirname(program)
        # The folder's contents exist in there only, under a name that is something else outside.
        script = (f'mkdir {where}/in && mount -t tmpfs weft-test {where}/in && cp {where}/waiters {where}/*.so.0 {where}/in/'
                  f' && exec "$@"')
        prefix = ["unshare", "-pfm", "--mount-proc", "--kill-child", "sh", "-c", script, "-"]
        if subprocess.run(["unshare", "-pfm", "--mount-proc", "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespaces here")
        outer = self.victim_at(program, f"{where}/libweft.so.0", prefix, f"{where}/in/waiters")
        with open(f"/proc/{outer}/task/{outer}/children", encoding="ascii") as f:
            pid = int(f.read().split()[0])
        self.assertFalse(os.path.exists(f"{where}/in/waiters"))
        return pid

    def test_a_container_is_looked_into(self):
        pid = self.container()
        dump = self.settled(pid)
        self.assert_places(dump)
        self.assertEqual(dump["pid"], pid)
        self.assertEqual(dump["pid_inside"], 1)
        self.assertEqual(by_name(dump)["mutex"]["waits_for"]["owner"], 1)
        tasks = {int(t) for t in os.listdir(f"/proc/{pid}/task")}
        self.assertLessEqual({k["tid"] for k in dump["kernel_threads"]}, tasks)
        self.assertEqual(by_name(dump)["flock"]["call"], 73)  # by the registers of its kernel thread
        self.assertIn("PID namespace of its own", self.dump(pid))

    def gdb(self, pid, *commands):
        gdb = shutil.which("gdb")
        if not gdb:
            self.skipTest("gdb is not installed")
        args = [gdb, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", f"source {os.environ['WEFT_GDB_SCRIPT']}"]
        for c in (*commands, "detach"):
            args += ["-ex", c]
        done = subprocess.run([*args, "-p", str(pid)], capture_output=True, text=True, timeout=240,
                              stdin=subprocess.DEVNULL, check=False)
        if "Scripting in the" in done.stderr:
            self.skipTest("gdb without Python")
        self.assertNotIn("Python Exception", done.stderr)
        return done.stdout + done.stderr

    def test_gdb_finds_the_threads_though_the_library_was_replaced(self):
        program, library = self.moved()
        pid = self.victim_at(program, library)
        self.settled(pid)
        os.unlink(library)
        shutil.copy(shutil.which("true"), library)
        text = self.gdb(pid, "info weft", "weft workers")
        self.assertRegex(text, r"\d+  mutex +parked, waits for futex")
        self.assertIn("door", text)

    def test_gdb_knows_the_kernel_threads_of_a_container(self):
        pid = self.container()
        dump = self.settled(pid)
        flock = by_name(dump)["flock"]["tid"]
        self.assertRegex(self.gdb(pid, f"weft bt {flock}"), r"#\d+ .*flock")

    def test_cxx_names_are_as_they_were_written(self):
        compiler = shutil.which("c++") or shutil.which("g++")
        if not compiler:
            self.skipTest("no C++ compiler")
        where = self.directory()
        source, assembly, program = (os.path.join(where, name) for name in ("v.cc", "v.s", "v"))
        with open(source, "w", encoding="ascii") as f:
            f.write(CXX_VICTIM)
        subprocess.run([compiler, "-O1", "-g", "-S", "-o", assembly, source], check=True)
        with open(assembly, encoding="ascii") as f:
            text = f.read().replace("BLOWN", bomb())
        with open(assembly, "w", encoding="ascii") as f:
            f.write(text)
        subprocess.run([compiler, "-o", program, assembly, "-pthread"], check=True)
        process = subprocess.Popen([obstest.WEFT, "run", "--", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=obstest.environment(), text=True)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), "ready\n")
        deadline = time.monotonic() + obstest.LIMIT_S
        found = None
        while not found and time.monotonic() < deadline:
            frames = [f for t in self.look(process.pid)["threads"] for f in t["frames"]]
            found = [f for f in frames if "waits" in f.get("function", "")]
        self.assertTrue(found[0]["function"].startswith("deep::box<int>::waits(std::map<int,"), found)
        self.assertTrue(found[0]["symbol"].startswith("_ZN4deep3boxIiE5waits"), found)
        self.assertTrue([f for f in frames if f.get("function", "").startswith("_Z1f1A")], frames)
        self.assertIn("deep::box<int>::waits(std::map<int", self.dump(process.pid))

    def test_without_libdw_there_are_threads_without_stacks(self):
        v = self.victim()
        where = self.directory()
        with open(os.path.join(where, "libdw.so.1"), "wb") as f:
            f.write(b"no library")
        done = weft("dump", v.pid, LD_LIBRARY_PATH=where)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^weft: dump: no stacks are shown: libdw cannot be loaded: .*\n$")
        self.assertIn('"join": parked, waits for the end of thread', done.stdout)
        self.assertIn(f'waits for fd {v.pipe} (pipe:', done.stdout)
        self.assertIn("held by thread", done.stdout)
        self.assertNotIn("#0", done.stdout)
        self.assertEqual(len(self.look(v.pid, LD_LIBRARY_PATH=where)["threads"]), 14)


if __name__ == "__main__":
    obstest.main()
