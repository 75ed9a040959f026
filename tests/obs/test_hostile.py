# SPDX-License-Identifier: Apache-2.0
"""`weft dump` and the gdb script look at processes and cores that want to harm the one who looks."""
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time
import unittest

import obstest
from obstest import ObsTest, weft

EVIL = os.environ["EVIL"]
SCRIPT = os.environ["WEFT_GDB_SCRIPT"]
ENOUGH_S = 100  # for what stops at a limit, on a busy machine


def controls(text):
    return [c for c in text if (ord(c) < 0x20 and c != "\n") or 0x7f <= ord(c) < 0xa0]


class Hostile(ObsTest):
    def evil(self, how, program=("cat",), **changes):
        """A process with the evil library in it, that waits."""
        p = subprocess.Popen(list(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=obstest.environment(LD_PRELOAD=EVIL, WEFT_EVIL=how, **changes))
        self.addCleanup(self.end, p)
        p.stdin.write(b"x\n")
        p.stdin.flush()
        self.assertEqual(p.stdout.readline(), b"x\n")
        return p.pid

    @staticmethod
    def end(p):
        p.kill()
        p.communicate()

    def look(self, *args):
        done = weft("dump", *args, timeout=ENOUGH_S)
        self.assertIn(done.returncode, (0, 125), done.stderr)
        return done

    def test_an_honest_description_is_read(self):
        text = self.dump(self.evil(""))
        self.assertIn("thread 1: parked, waits for fd 0", text)

    def test_a_field_outside_of_its_structure_is_refused(self):
        for how in ("offset", "event", "timer", "size"):
            self.assert_refused(self.look("--events", "1", self.evil(how)), "describes itself wrongly")

    def test_names_that_a_target_chooses_are_cleaned(self):
        pid = self.evil("names")
        for args in ([], ["--json"], ["--group"], ["--events", "5"]):
            done = self.look(*args, pid)
            self.assertEqual(done.returncode, 0)
            self.assertIn("PWN", done.stdout)
            self.assertEqual(controls(done.stdout), [], args)
            self.assertNotIn("\u202e", done.stdout if "--json" not in args else "")

    def test_an_inbox_without_end_costs_no_time(self):
        done = self.look(self.evil("circle"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("100000 in the inbox", done.stdout)

    def test_a_million_threads_on_as_many_kernel_threads_as_can_be(self):
        done = self.look("--limit", "1048576", "--group", self.evil("crowd"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("1,048,576 threads", done.stdout)

    def test_looks_at_a_million_threads_take_no_more_than_a_part_of_a_processor(self):
        p = subprocess.Popen([obstest.WEFT, "top", "--json", "-n", "2", "-d", "0.01", str(self.evil("crowd"))],
                             stdout=subprocess.PIPE, env=obstest.environment())
        began = time.monotonic()
        lines = p.stdout.read().count(b"\n")
        _, status, usage = os.wait4(p.pid, 0)
        passed, used = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        p.returncode = os.waitstatus_to_exitcode(status)
        p.stdout.close()
        self.assertEqual((p.returncode, lines), (0, 2))
        self.assertLess(used, passed * 0.6)  # three looks, and between two of them five times one look
        self.assertLess(usage.ru_maxrss, 300 << 10)

    def test_looks_without_stopping_are_as_careful(self):
        for how in ("names", "circle", "crowd"):
            pid = self.evil(how)
            for args in (["ps"], ["ps", "--json"], ["metrics", pid], ["top", "-d", "0.01", pid],
                         ["top", "--json", "-d", "0.01", pid]):
                done = weft(*args, timeout=ENOUGH_S)
                self.assertEqual(done.returncode, 0, (how, args, done.stderr))
                self.assertEqual(controls(done.stdout), [], (how, args))

    def test_traces_are_as_careful(self):
        file = os.path.join(self.directory(), "t")
        for how in ("", "names", "circle", "crowd"):
            pid = self.evil(how)
            for format_ in ("text", "json", "perfetto"):
                done = weft("trace", "-f", format_, "-o", file, pid, timeout=ENOUGH_S)
                self.assertEqual(done.returncode, 0, (how, done.stderr))
                with open(file, "rb") as f:
                    data = f.read()
                for sequence in (b"\033[", b"\033]"):  # the first byte alone may be a length of Perfetto's
                    self.assertNotIn(sequence, data)
                if format_ != "perfetto":
                    self.assertEqual(controls(data.decode()), [], (how, format_))
            done = weft("trace", "--for", "20ms", "-o", file, pid, timeout=ENOUGH_S)
            self.assertEqual(done.returncode, 0, (how, done.stderr))

    def test_files_with_our_name_and_endless_headers(self):
        where = self.directory()
        pid = self.evil("mappings", WEFT_EVIL_DIR=where)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
            self.assertGreater(f.read().count("libweft-many"), 10000)
        self.assert_refused(self.look(pid))

    def test_a_pipe_beside_the_program_is_not_opened(self):
        objcopy, compiler = shutil.which("objcopy"), os.environ.get("CC", "cc").split()
        if not objcopy or not shutil.which(compiler[0]):
            self.skipTest("no objcopy, or no compiler")
        where = self.directory()
        source, program = os.path.join(where, "main.c"), os.path.join(where, "main")
        link = os.path.join(where, "main.debug")
        with open(source, "w", encoding="ascii") as f:
            f.write("#include <unistd.h>\n"
                    "int main(void) { char c; while (read(0, &c, 1) == 1) (void)!write(1, &c, 1); }\n")
        subprocess.run([*compiler, "-Wl,--build-id=none", "-o", program, source], check=True)
        shutil.copy(source, link)
        subprocess.run([objcopy, "--strip-all", f"--add-gnu-debuglink={link}", program], check=True)
        os.unlink(link)
        os.mkfifo(link)
        done = self.look("--json", self.evil("running", [program]))
        self.assertEqual(done.returncode, 0)
        self.assertTrue(json.loads(done.stdout)["threads"][0]["frames"])


class Sandbox(ObsTest):
    def test_what_reads_strange_files_can_do_nothing_else(self):
        v = self.victim(threads=1000)
        with subprocess.Popen([obstest.WEFT, "dump", "--no-group", "--json", "--limit", "2000", str(v.pid)],
                              stdout=subprocess.PIPE, env=obstest.environment()) as dump:
            first = dump.stdout.read(1)  # now it prints, more than a pipe holds
            with open(f"/proc/{dump.pid}/status", encoding="ascii") as f:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            rest = dump.stdout.read()
        self.assertEqual(dump.returncode, 0)
        self.assertEqual(len(json.loads(first + rest)["threads"]), 1014)
        if "Seccomp" not in status:
            self.skipTest("a kernel without seccomp")
        self.assertEqual((status["Seccomp"], status["NoNewPrivs"]), ("2", "1"))


class LastResort(ObsTest):
    def test_an_alarm_ends_the_dump_and_not_the_program(self):
        v = self.victim(threads=1000)
        with subprocess.Popen([obstest.WEFT, "dump", "--no-group", "--json", "--limit", "2000", str(v.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=obstest.environment()) as dump:
            dump.stdout.read(1)
            dump.send_signal(signal.SIGALRM)
            said = dump.communicate()[1].decode()
        self.assertEqual(dump.returncode, 125)
        self.assertRegex(said, r"^weft: dump: gave up: .*\n$")
        self.assert_goes_on(v)


def note(kind, data):
    return struct.pack("=III", 5, len(data), kind) + b"CORE\0\0\0\0" + data + bytes(-len(data) % 4)


class Cores(ObsTest):
    """Cores that nobody's kernel wrote."""

    def core(self, files, notes_of=1, status=1, cut=0, promise=0):
        """A core with these files mapped; NOTES_OF headers for the same notes, and so many bytes that are not there."""
        prstatus = note(1, struct.pack("=32xi", 7).ljust(336, b"\0")) * status
        mapped = struct.pack("=QQ", len(files), 4096)
        for i, _ in enumerate(files):
            mapped += struct.pack("=QQQ", 0x10000 + i * 0x10000, 0x20000 + i * 0x10000, 0)
        mapped += b"".join(os.fsencode(f) + b"\0" for f in files)
        notes = note(0x46494c45, mapped) + prstatus
        headers = notes_of + bool(promise)
        at = 64 + 56 * headers
        data = struct.pack("=16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 4, 62, 1, 0, 64, 0, 0, 64, 56, headers, 0, 0, 0)
        data += struct.pack("=IIQQQQQQ", 4, 0, at, 0, 0, len(notes), len(notes), 4) * notes_of
        if promise:
            data += struct.pack("=IIQQQQQQ", 1, 4, at + len(notes), 0x500000, 0, promise, promise, 4096)
        path = os.path.join(self.directory(), "core")
        with open(path, "wb") as f:
            f.write((data + notes)[:cut or None])
        return path

    def test_a_pipe_or_device_that_a_core_names_is_not_opened(self):
        where = self.directory()
        pipe = os.path.join(where, "libweft-pipe.so")
        os.mkfifo(pipe)
        writer = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)))  # waits for one who reads
        writer.start()
        links = []
        for i, path in enumerate(("/dev/zero", "/proc/kmsg", "/sys/kernel/notes")):
            links.append(os.path.join(where, f"libweft-{i}.so"))
            os.symlink(path, links[-1])
        self.assert_refused(weft("dump", "--core", self.core([pipe, *links]), timeout=ENOUGH_S), "core file")
        self.assertTrue(writer.is_alive())
        os.close(os.open(pipe, os.O_RDONLY))
        writer.join()

    def test_a_core_does_not_show_what_other_files_hold(self):
        gcore = shutil.which("gcore")
        if not gcore:
            self.skipTest("gcore is not installed")
        where = self.directory()
        with open(os.path.join(where, "secret"), "w", encoding="ascii") as f:
            f.write("A" * 4096)  # as a thread: one that is new, with a name
        pid = Hostile.evil(self, "secret", WEFT_EVIL_DIR=where)
        self.assertIn("AAAA", self.dump(pid))  # the process may read it
        subprocess.run([gcore, "-o", os.path.join(where, "core"), str(pid)], capture_output=True, timeout=240,
                       stdin=subprocess.DEVNULL, check=True)
        core = os.path.join(where, f"core.{pid}")
        with open(core, "rb") as f:
            if b"AAAAAAAA" in f.read():
                self.skipTest("this gcore writes the contents of files")
        self.assertNotIn("AAAA", self.dump("--core", core))

    def test_a_file_of_the_kernel_is_no_file(self):
        self.assert_refused(weft("dump", "--core", "/proc/self/status"), "not a regular file")
        self.assert_refused(weft("dump", "--core", "/dev/zero"), "not a regular file")

    def test_a_pipe_in_place_of_the_program_of_a_core_is_not_opened(self):
        gcore = shutil.which("gcore")
        if not gcore:
            self.skipTest("gcore is not installed")
        where = self.directory()
        program = os.path.join(where, "program")
        shutil.copy(shutil.which("cat"), program)
        pid = Hostile.evil(self, "running", [program])
        subprocess.run([gcore, "-o", os.path.join(where, "core"), str(pid)], capture_output=True, timeout=240,
                       stdin=subprocess.DEVNULL, check=True)
        os.unlink(program)
        os.mkfifo(program)
        done = weft("dump", "--json", "--core", os.path.join(where, f"core.{pid}"), timeout=ENOUGH_S)
        self.assertEqual(done.returncode, 0)
        self.assertTrue(json.loads(done.stdout)["threads"][0]["frames"])
        self.assert_refused(weft("dump", "--core", program, timeout=ENOUGH_S), "not a regular file")

    end = staticmethod(Hostile.end)

    def test_a_pipe_in_place_of_a_core_is_not_opened(self):
        pipe = os.path.join(self.directory(), "pipe")
        os.mkfifo(pipe)
        self.assert_refused(weft("dump", "--core", pipe, timeout=ENOUGH_S), "not a regular file")

    def test_headers_that_share_their_notes_are_refused(self):
        core = self.core(["/x"], notes_of=60000, status=2900)
        begin = time.monotonic()
        done = subprocess.run(["bash", "-c", "ulimit -v 2000000; exec \"$@\"", "-", obstest.WEFT, "dump", "--core",
                               core], capture_output=True, text=True, env=obstest.environment(), check=False,
                              timeout=ENOUGH_S)
        self.assert_refused(done, "damaged")
        self.assertLess(time.monotonic() - begin, ENOUGH_S)

    def test_a_core_that_is_cut_is_said_to_be(self):
        core = self.core(["/x"], promise=1 << 20)
        self.assert_refused(weft("dump", "--core", core), "is cut after", "ulimit")
        self.assert_refused(weft("dump", "--core", self.core(["/x"], status=100, cut=9000)), "is cut")


class Gdb(ObsTest):
    def test_names_are_cleaned_in_gdb(self):
        gdb = shutil.which("gdb")
        if not gdb:
            self.skipTest("gdb is not installed")
        for how in ("names", "offset", "circle"):
            pid = Hostile.evil(self, how)
            done = subprocess.run([gdb, "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", f"source {SCRIPT}",
                                   "-ex", "info weft", "-ex", "weft workers", "-ex", "weft tree", "-ex", "detach", "-p", str(pid)],
                                  capture_output=True, timeout=240, stdin=subprocess.DEVNULL, check=False)
            text = done.stdout.decode("utf-8", "surrogateescape") + done.stderr.decode("utf-8", "surrogateescape")
            if "Scripting in the" in text:
                self.skipTest("gdb without Python")
            self.assertEqual(controls(text.replace("\t", " ").replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")), [], text)
            self.assertNotIn("Python Exception", text)
            if how == "offset":
                self.assertIn("describes itself wrongly", text)

    end = staticmethod(Hostile.end)


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    obstest.main()
