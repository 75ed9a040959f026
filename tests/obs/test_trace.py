#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft run --trace FILE writes the events of the scheduler when the program ends, and to no other file."""
import os
import re
import subprocess

import obstest
from obstest import ObsTest, weft

MAKES_THREADS = os.environ["MAKES_THREADS"]
LINE = re.compile(r"^\d+ \d+ \d+ [a-z]+ 0x[0-9a-f]+ 0x[0-9a-f]+$")
PYTHON = "/usr/bin/python3"
# A threaded program that does something between its beginning and its end.
THREADED = "import os, threading; t = threading.Thread(target=print); t.start(); t.join(); "


class Trace(ObsTest):
    def setUp(self):
        self.dir = self.directory()
        self.file = os.path.join(self.dir, "events")

    def assert_events(self, path, has_some=True):
        with open(path, encoding="ascii") as f:
            lines = f.read().splitlines()
        self.assertEqual(bool(lines), has_some, path)
        for line in lines[1:]:
            self.assertRegex(line, LINE)
        if has_some:
            self.assertLessEqual({"spawn", "run", "exit"}, {line.split()[3] for line in lines[1:]})

    def run_traced(self, *command, file=None, status=0):
        done = weft("run", "--workers", "2", "--trace", file or self.file, "--", *command)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def python(self, code):
        if not os.path.exists(PYTHON):
            self.skipTest(f"no {PYTHON}")
        return self.run_traced(PYTHON, "-c", THREADED + code).stderr

    def test_events_are_one_line_each(self):
        self.assertEqual(self.run_traced(MAKES_THREADS).stderr, "")
        self.assert_events(self.file)

    def test_many_calls_do_not_hide_what_the_scheduler_did(self):
        if not os.path.exists(PYTHON):
            self.skipTest(f"no {PYTHON}")
        code = "n = os.open('/dev/null', os.O_WRONLY); [os.write(n, b'x') for i in range(10000)]"
        done = weft("run", "--workers", "1", "--trace", self.file, PYTHON, "-c", THREADED + code)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_events(self.file)
        with open(self.file, encoding="ascii") as f:
            events = [line.split() for line in f.read().splitlines()[1:]]
        self.assertGreater(len([e for e in events if e[3] == "syscall"]), 2000)
        for tid in {e[1] for e in events}:
            times = [int(e[0]) for e in events if e[1] == tid]
            self.assertEqual(times, sorted(times))

    def test_counters_can_be_read_from_outside(self):
        with open(os.environ["WEFT_LIBRARY"], "rb") as f:
            library = f.read()
        for name in (b"wf_kthread.count", b"wf_counters.switches", b"wf_counters.rests"):
            self.assertIn(name + b"\0", library)

    def test_only_the_owner_may_read_it(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.run_traced(MAKES_THREADS)
        self.assertEqual(os.stat(self.file).st_mode & 0o7777, 0o600)

    def test_what_was_in_the_file_goes(self):
        with open(self.file, "w", encoding="ascii") as f:
            f.write("old\n" * 100000)
        self.run_traced(MAKES_THREADS)
        self.assert_events(self.file)

    def test_a_second_process_has_a_file_of_its_own(self):
        done = self.run_traced("sh", "-c", f"{MAKES_THREADS} & echo $!; wait; {MAKES_THREADS} & echo $!; wait")
        second = done.stdout.split()[1]
        self.assertEqual(sorted(os.listdir(self.dir)), ["events", "events." + second])
        self.assert_events(self.file)
        self.assert_events(f"{self.file}.{second}")

    def test_many_at_once_lose_nothing(self):
        self.run_traced("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {MAKES_THREADS} & done; wait")
        names = os.listdir(self.dir)
        self.assertEqual(len(names), 8, names)
        for name in names:
            self.assert_events(os.path.join(self.dir, name))

    def test_p_is_the_pid(self):
        done = self.run_traced("sh", "-c", f"{MAKES_THREADS} & echo $!; wait; exec {MAKES_THREADS}",
                               file=os.path.join(self.dir, "a%p%p-%q"))
        names = os.listdir(self.dir)
        child = done.stdout.strip()
        self.assertEqual(len(names), 2)
        self.assertIn(f"a{child}{child}-%q", names)
        for name in names:
            self.assert_events(os.path.join(self.dir, name))

    def test_p_overwrites_what_an_earlier_process_left(self):
        self.python(f"open('{self.file}.%d' % os.getpid(), 'w').write('old')")
        self.assert_events(self.file)
        code = f"open('{self.file}-%d' % os.getpid(), 'w').write('old\\n' * 100000)"
        self.run_traced(PYTHON, "-c", THREADED + code, file=self.file + "-%p")
        self.assert_events([os.path.join(self.dir, n) for n in os.listdir(self.dir) if n.startswith("events-")][0])

    def test_run_inside_run_keeps_the_others_events(self):
        self.run_traced("sh", "-c", f"{obstest.WEFT} run {MAKES_THREADS}; {obstest.WEFT} run {MAKES_THREADS}")
        names = os.listdir(self.dir)
        self.assertEqual(len(names), 2, names)
        for name in names:
            self.assert_events(os.path.join(self.dir, name))

    def test_run_inside_run_may_name_a_file_of_its_own(self):
        own = os.path.join(self.dir, "own")
        command = f"{obstest.WEFT} run --trace {own} {MAKES_THREADS}"
        self.run_traced("sh", "-c", f"{command}; {command}; cd {self.dir}; {obstest.WEFT} run --trace events {MAKES_THREADS}")
        self.assertEqual(sorted(os.listdir(self.dir)), ["events", "own"])
        self.assert_events(own)
        self.assert_events(self.file)

    def test_no_link_is_followed_at_the_end(self):
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("precious")
        for how in ("symlink", "link"):
            err = self.python(f"os.unlink('{self.file}'); os.{how}('{victim}', '{self.file}')")
            self.assertRegex(err, "^weft: the events cannot be written to .*(symbolic link|another file).*\n$")
            with open(victim, encoding="ascii") as f:
                self.assertEqual(f.read(), "precious")
            os.unlink(self.file)

    def test_no_link_is_followed_at_the_beginning(self):
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("precious")
        for make, words in ((os.symlink, "symbolic link"), (os.link, "hard link")):
            make(victim, self.file)
            done = weft("run", "--trace", self.file, MAKES_THREADS)
            self.assert_refused(done, "cannot write", words)
            with open(victim, encoding="ascii") as f:
                self.assertEqual(f.read(), "precious")
            os.unlink(self.file)

    def test_nobody_elses_file_is_taken(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        with open(self.file, "w", encoding="ascii"):
            pass
        os.chown(self.file, 65534, 65534)
        self.assert_refused(weft("run", "--trace", self.file, MAKES_THREADS), "belongs to another user")

    def test_a_file_that_is_gone_costs_one_line(self):
        folder = os.path.join(self.dir, "folder")
        os.mkdir(folder)
        done = self.run_traced("sh", "-c", f"rm -r {folder}; {MAKES_THREADS}; exit $?", file=os.path.join(folder, "f"))
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertRegex(done.stderr, "^weft: the events cannot be written to .*/folder/f: its folder is gone\n$")

    def test_the_variable_is_checked_as_the_option(self):
        done = weft("run", MAKES_THREADS, WEFT_TRACE=os.path.join(self.dir, "no", "file"))
        self.assert_refused(done, "cannot write", "No such file")
        done = weft("run", MAKES_THREADS, WEFT_TRACE=self.file)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assert_events(self.file)
        for word in ("1", "on", "0", "No"):
            done = weft("run", MAKES_THREADS, WEFT_TRACE=word)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertFalse(os.path.exists(word))

    def test_a_map_for_perf_names_the_trampolines(self):
        v = self.victim(WEFT_PERF_MAP="1")
        path = f"/tmp/perf-{v.pid}.map"
        self.addCleanup(os.unlink, path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with open(f"/proc/{v.pid}/maps", encoding="ascii") as f:
            code = [tuple(int(n, 16) for n in line.split()[0].split("-")) for line in f if " r-xp " in line]
        with open(path, encoding="ascii") as f:
            lines = [line.split() for line in f]
        self.assertTrue({"weft_calls_of_libc.so.6"} <= {name for _, _, name in lines}, lines)
        self.assertEqual(len({start for start, _, _ in lines}), len(lines))
        for start, size, _ in lines:
            start, end = int(start, 16), int(start, 16) + int(size, 16)
            self.assertTrue(any(low <= start < end <= high for low, high in code), (hex(start), lines))

    def test_a_map_for_perf_follows_no_link(self):
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w", encoding="ascii") as f:
            f.write("precious")
        for how in ("ln -s", "ln"):
            done = subprocess.run(["sh", "-c", f'{how} "$1" /tmp/perf-$$.map; echo $$; exec "$2" run -- "$3"', "sh", victim, obstest.WEFT,
                                   MAKES_THREADS], env=obstest.environment(WEFT_PERF_MAP="1"), capture_output=True, text=True, check=False)
            path = f"/tmp/perf-{done.stdout.split()[0]}.map"
            self.assertEqual((done.returncode, done.stderr), (0, f"weft: no map for perf: cannot write {path}\n"))
            os.unlink(path)
            with open(victim, encoding="ascii") as f:
                self.assertEqual(f.read(), "precious")

    def test_fifo(self):
        os.mkfifo(self.file)
        done = self.run_traced(MAKES_THREADS)
        self.assertRegex(done.stderr, "nobody reads the FIFO")
        reader = os.open(self.file, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        self.assertEqual(self.run_traced(MAKES_THREADS).stderr, "")
        self.assertRegex(os.read(reader, 100).decode(), "^# cycles")


obstest.main()
