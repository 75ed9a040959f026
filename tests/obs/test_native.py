#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that run without weft: it is said where it can be known, once, and with --strict they are not run at all."""
import ctypes
import os
import shutil
import subprocess
import tempfile

import obstest
from obstest import WEFT, ObsTest, environment, weft

MAKES_THREADS = os.environ["MAKES_THREADS"]
LIBRARY = os.environ["WEFT_LIBRARY"]
CC = os.environ["CC"].split()
UNDER = "threads made"
PR_SET_MDWE = 65
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
static void *nothing(void *arg) { return arg; }
int main(int argc, char **argv)
{
	pthread_t t;
	if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
		return 1;
	printf("%d %s\n", argc, argv[1]);
	return 0;
}
"""
# Executes ls in an empty environment, behind a filter that kills for whatever is not needed for that.
SANDBOX = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_getpid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };
	char *args[] = { "true", NULL }, *env[] = { NULL };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	execve("/bin/true", args, env);
	return 1;
}
"""


def deny_writing_text():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_MDWE, 1, 0, 0, 0):
        os._exit(77)


class Native(ObsTest):
    def native(self, *command, options=(), **changes):
        """Standard error of a program that runs, without weft."""
        done = weft("run", "--stats", *options, "--", *command, **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(UNDER, done.stderr)
        return done.stderr

    def assert_said(self, text):
        self.assertRegex(text, "(?m)^weft: running without weft: .*makes_threads: its LD_PRELOAD does not name ")

    def test_a_lost_preload_is_said(self):
        self.assert_said(self.native("env", "LD_PRELOAD=", MAKES_THREADS))
        self.assert_said(self.native("env", "LD_PRELOAD=/no/libweft.so.0.x", MAKES_THREADS))
        self.assert_said(self.native("env", "-i", MAKES_THREADS))
        self.assert_said(self.native("sh", "-c", f"exec env -u LD_PRELOAD {MAKES_THREADS}"))

    def test_a_kept_preload_is_not(self):
        for preload in (LIBRARY, f"/x/y:{LIBRARY}", f"/x/{'y' * 500} {LIBRARY}", f"{LIBRARY}:/z"):
            done = weft("run", "--stats", "env", f"LD_PRELOAD={preload}", MAKES_THREADS)
            self.assertIn(UNDER, done.stderr)
            self.assertNotIn("without weft", done.stderr)

    def test_what_children_do_is_their_affair(self):
        self.assertEqual(self.native("sh", "-c", f"env -i {MAKES_THREADS}; exit $?"), "")
        self.assertEqual(self.native("env", "-i", MAKES_THREADS, options=["--children=no"]), "")

    def test_strict_ends_what_would_run_without(self):
        done = weft("run", "--strict", "env", "-i", MAKES_THREADS)
        self.assert_refused(done, "not executing", "makes_threads")
        done = weft("run", "sh", "-c", f"env LD_PRELOAD= {MAKES_THREADS}; echo $?", WEFT_STRICT="1")
        self.assertEqual((done.returncode, done.stdout), (0, "125\n"))
        self.assertIn("not executing", done.stderr)
        done = weft("run", "--strict", "--stats", "sh", "-c", f"{MAKES_THREADS}; exit $?")
        self.assertEqual(done.returncode, 0)
        self.assertIn(UNDER, done.stderr)
        self.assertNotIn("strict", done.stderr)

    def test_a_program_that_is_not_there_is_not_said(self):
        done = weft("run", "env", "-i", "/no/such/program")
        self.assertEqual(done.returncode, 127)
        self.assertNotIn("weft", done.stderr)

    def test_a_bad_environment_is_the_kernels_to_refuse(self):
        code = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); a = (ctypes.c_char_p * 2)(b'x', None);"
                "libc.execve.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p];"
                "print(libc.execve(b'/bin/true', a, 8), ctypes.get_errno())")
        done = weft("run", "/usr/bin/python3", "-c", code)
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("-1 14\n", "", 0))

    def test_a_sandbox_is_asked_nothing(self):
        program = os.path.join(self.directory(), "sandbox")
        subprocess.run([*CC, "-x", "c", "-", "-o", program], input=SANDBOX, text=True, check=True)
        for options in ((), ("--strict",)):
            done = weft("run", *options, program)
            if done.returncode == 77:
                self.skipTest("no seccomp filters")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_weft_off(self):
        for word in ("0", "off", "Off", "NO", "false"):
            self.assertEqual(self.native(MAKES_THREADS, WEFT=word), "")
            done = subprocess.run([MAKES_THREADS], env=environment(LD_PRELOAD=LIBRARY, WEFT=word, WEFT_STATS="1"),
                                  capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("", "1", "on", "YES", "true"):
            self.assertIn(UNDER, weft("run", "--stats", MAKES_THREADS, WEFT=word).stderr)

    def test_other_words_are_said(self):
        for name in ("WEFT", "WEFT_STATS", "WEFT_STRICT"):
            self.assert_refused(weft("run", MAKES_THREADS, **{name: "perhaps"}), f"{name} takes 1 or 0", "'perhaps'")
            env = environment(LD_PRELOAD=LIBRARY, **{name: "perhaps"})
            done = subprocess.run([MAKES_THREADS], env=env, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, f"weft: ignoring a bad value of {name}\n"))
            done = subprocess.run(["true"], env=env, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_library_that_is_not_wefts(self):
        for other in ("/lib/x86_64-linux-gnu/libc.so.6", os.path.realpath("/lib64/libc.so.6")):
            if os.path.exists(other):
                self.assert_refused(weft("run", MAKES_THREADS, WEFT_LIBRARY=other), "is not weft's library")
                return
        self.skipTest("no libc where it usually is")

    def test_what_holds_for_all_programs_is_said_once(self):
        script = f"true; ls / >/dev/null; {MAKES_THREADS}; exit $?"
        for options, status in (((), 0), (("--strict",), 125)):
            done = subprocess.run([WEFT, "run", "--stats", *options, "sh", "-c", script], env=environment(),
                                  preexec_fn=deny_writing_text, capture_output=True, text=True, check=False)
            if done.returncode == 77:
                self.skipTest("no PR_SET_MDWE")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn("text may not be written here (PR_SET_MDWE)", done.stderr)

    def test_what_makes_no_thread_does_not_say_that_it_could_not(self):
        env = environment(LD_PRELOAD=LIBRARY)
        for command, said in (["ls", "/"], 0), ([MAKES_THREADS], 1), (["sh", "-c", f"ls /; {MAKES_THREADS}; ls /"], 1):
            done = subprocess.run(command, env=env, preexec_fn=deny_writing_text, capture_output=True, text=True,
                                  check=False)
            if done.returncode == 77:
                self.skipTest("no PR_SET_MDWE")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr.count("weft: running on plain NPTL: the text of libc may not be written"), said)
            self.assertEqual(done.stderr.count("\n"), said)
            done = subprocess.run(command, env=dict(env, WEFT_STRICT="1"), preexec_fn=deny_writing_text,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 125, done.stderr)

    def test_valgrind_is_named(self):
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")
        for command in ([WEFT, "run", "valgrind", "-q", MAKES_THREADS],
                        ["valgrind", "-q", "--trace-children=yes", WEFT, "run", MAKES_THREADS]):
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, "weft: running on plain NPTL: valgrind hides FSGSBASE, the right to write "
                                          "the FS and GS base\n")

    def test_a_program_of_another_libc_is_left_alone(self):
        compiler = shutil.which("musl-gcc")
        if not compiler:
            self.skipTest("no musl-gcc")
        with tempfile.TemporaryDirectory(prefix="weft-obs-") as d:
            program = os.path.join(d, "program")
            subprocess.run([compiler, "-x", "c", "-", "-o", program], input=PROGRAM, text=True, check=True)
            self.assert_refused(weft("run", program), "musl")
            done = weft("run", "--stats", "sh", "-c", f"{program} one; exit $?")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "2 one\n", ""))
            done = weft("run", "--strict", "sh", "-c", f"{program} one; exit $?")
            self.assertEqual((done.returncode, done.stdout), (125, ""))
            self.assertIn("libc is not glibc", done.stderr)


obstest.main()
