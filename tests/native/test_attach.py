#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose the threads of a program are: the table of weft(7), a row at a time. See attach_probe.c for the words."""
import json
import os
import subprocess
import unittest

LINKED, LIBRARY, DLOPEN = (os.environ[f"PROBE_{kind}"] for kind in ("LINKED", "LIBRARY", "DLOPEN"))
WEFT = os.environ["WEFT_COMMAND"]
UNASKED = "native: only a library names libweft, and weft_attach() was not called"
OFF = "native: weft is switched off (WEFT=0)"
FILTERED = "native: the program filters its own system calls (seccomp)"


def environment(**env):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WEFT")}
    return {**kept, **env}


class Attach(unittest.TestCase):
    def run_it(self, *args, err="", rc=0, **env):
        done = subprocess.run(args, env=environment(**env), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (rc, err), done.stdout)
        return done.stdout.splitlines()

    def test_a_linked_program_is_attached(self):
        self.assertEqual(self.run_it(LINKED, "mode", "thread", "mode", "attach"), ["attached", "weft", "attached", "0"])

    def test_a_linked_program_that_is_switched_off_is_native_and_silent(self):
        self.assertEqual(self.run_it(LINKED, "mode", "thread", "attach", "mode", WEFT="0"), [OFF, "kernel", "EOPNOTSUPP", OFF])

    def test_strict_ends_where_it_cannot_attach(self):
        out = self.run_it(LINKED, "filter", "thread", rc=125, WEFT_STRICT="1",
                          err="weft: not running on plain NPTL, as --strict asks: the program filters its own system calls "
                              "(seccomp)\n")
        self.assertEqual(out, [])

    def test_strict_is_no_watch_over_what_is_executed(self):
        self.assertEqual(self.run_it(LINKED, "exec", "thread", "mode", WEFT_STRICT="1"), ["weft", "attached"])

    def test_a_library_does_not_change_its_host(self):
        for program in (LIBRARY, DLOPEN):
            self.assertEqual(self.run_it(program, "mode", "thread", "mode"), [UNASKED, "kernel", UNASKED])

    def test_a_library_may_attach_before_the_first_thread(self):
        for program in (LIBRARY, DLOPEN):
            self.assertEqual(self.run_it(program, "attach", "mode", "thread", "attach", "mode"),
                             ["0", "attached", "weft", "0", "attached"])

    def test_a_library_may_attach_when_all_threads_have_ended(self):
        self.assertEqual(self.run_it(LIBRARY, "thread", "attach", "thread"), ["kernel", "0", "weft"])

    def test_a_library_cannot_attach_beside_threads(self):
        for program in (LIBRARY, DLOPEN):
            self.assertEqual(self.run_it(program, "hold", "attach", "thread", "mode"), ["held", "EBUSY", "kernel", UNASKED])

    def test_a_library_cannot_attach_what_is_switched_off(self):
        self.assertEqual(self.run_it(LIBRARY, "mode", "attach", "mode", "thread", WEFT="0"),
                         [OFF, "EOPNOTSUPP", OFF, "kernel"])

    def test_what_the_program_has_filtered_stays_native(self):
        self.assertEqual(self.run_it(LINKED, "filter", "mode", "thread", "attach"),
                         ["filtered", FILTERED, "kernel", "EOPNOTSUPP"])
        self.assertEqual(self.run_it(LIBRARY, "filter", "attach", "mode", "thread"),
                         ["filtered", "EOPNOTSUPP", FILTERED, "kernel"])

    def test_a_constructor_may_make_threads(self):
        self.assertEqual(self.run_it(LINKED, "mode", PROBE_EARLY="thread"), ["early weft", "attached"])
        self.assertEqual(self.run_it(LINKED, "attach", "thread", PROBE_EARLY="hold"), ["early held", "0", "weft"])

    def test_a_constructor_may_attach(self):
        self.assertEqual(self.run_it(LIBRARY, "thread", "mode", PROBE_EARLY="attach"), ["early 0", "weft", "attached"])

    def test_the_runtime_stays_when_the_library_is_closed(self):
        self.assertEqual(self.run_it(DLOPEN, "attach", "thread", "close", "thread"), ["0", "weft", "closed", "weft"])
        self.assertEqual(self.run_it(DLOPEN, "close", "thread"), ["closed", "kernel"])

    def test_a_child_begins_as_its_parent_did(self):
        self.assertEqual(self.run_it(LINKED, "hold", "fork", "mode", "thread"),
                         ["held", "child", "attached", "weft", "parent"])
        self.assertEqual(self.run_it(LINKED, "fork", "mode", "thread", WEFT="0"), ["child", OFF, "kernel", "parent"])
        self.assertEqual(self.run_it(LIBRARY, "hold", "fork", "attach", "thread"), ["held", "child", "0", "weft", "parent"])

    def test_under_weft_run_everybody_is_attached(self):
        for program in (LINKED, LIBRARY, DLOPEN):
            self.assertEqual(self.run_it(WEFT, "run", "--strict", program, "mode", "thread", "attach"),
                             ["attached", "weft", "0"])

    def test_options_of_weft_run_hold_for_a_linked_program(self):
        done = subprocess.run([WEFT, "run", "--stats", "--workers", "1", LINKED, "thread"], env=environment(),
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (0, "weft\n"))
        self.assertEqual(done.stderr.count("threads made"), 1, done.stderr)

    def test_weft_run_says_why_a_linked_program_is_native(self):
        self.assertEqual(self.run_it(WEFT, "run", LINKED, "filter", "thread",
                                     err="weft: running on plain NPTL: the program filters its own system calls (seccomp)\n"),
                         ["filtered", "kernel"])

    def test_a_namespace_of_its_own_has_no_runtime(self):
        self.assertEqual(self.run_it(os.environ["PROBE_DLMOPEN"]),
                         ["native: this copy of libweft lies in a namespace of its own (dlmopen)", "EOPNOTSUPP", "kernel"])

    def test_sanitizers_stay_native(self):
        for kind, why in (("ASAN", "a leak checker"), ("TSAN", "ThreadSanitizer")):
            program = os.environ.get(f"PROBE_{kind}")
            if program:
                mode, whose = self.run_it(program, "mode", "thread")
                self.assertEqual((mode, whose), (f"native: {why} knows kernel threads only (WEFT=1 attaches all the same)",
                                                 "kernel"))

    def seen_by(self, command, program, *words, until=lambda said: True):
        """What the command says of the program; again, as long as its threads are not yet where they are to be."""
        with subprocess.Popen([program, *words, "wait"], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as held:
            try:
                while held.stdout.readline() != "waiting\n":
                    self.assertIsNone(held.poll())
                for _ in range(200):
                    done = subprocess.run([WEFT, *(word.format(held.pid) for word in command)], env=environment(),
                                          capture_output=True, text=True, check=False, timeout=60)
                    if done.returncode != 0 or until(done.stdout):
                        break
            finally:
                held.stdin.close()
                held.wait()
        return done

    def test_a_linked_program_is_seen_by_weft_dump_and_weft_ps(self):
        done = self.seen_by(["dump", "{}"], LINKED, "hold", until=lambda said: "pause" in said)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("pause", done.stdout)
        self.assertRegex(self.seen_by(["ps"], LINKED, "hold").stdout, r"attach_linked .* weft\n")

    def test_threads_that_rest_are_not_in_dumps(self):
        done = self.seen_by(["dump", "{}", "--json"], LINKED, "ended", "hold",
                            until=lambda said: len(json.loads(said)["threads"]) == 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["threads"]), 2)

    def test_weft_ps_says_why_not(self):
        self.assertIn(UNASKED.removeprefix("native: "), self.seen_by(["ps"], LIBRARY).stdout)


unittest.main()
