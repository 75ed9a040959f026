# SPDX-License-Identifier: Apache-2.0
"""`weft run` becomes the program: status, signals, environment, names; and the command's own options."""
import os
import signal
import subprocess
import unittest

from cmdtest import WEFT, CommandTest

TUNABLE = "glibc.pthread.stack_cache_size=137438953472"


class RunTest(CommandTest):
    def program_env(self, *options, **changes):
        done = self.weft("run", *options, "--", "env", "-0", **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)


class Run(RunTest):
    def test_exit_status_is_the_programs(self):
        for status in (0, 1, 7, 124, 255):
            self.assertEqual(self.weft("run", "sh", "-c", f"exit {status}").returncode, status)

    def test_signal_is_the_programs(self):
        done = self.weft("run", "sh", "-c", "kill -TERM $$")
        self.assertEqual(done.returncode, -signal.SIGTERM)
        done = subprocess.run(["sh", "-c", '"$0" run sh -c "kill -TERM \\$\\$"; echo $?', WEFT],
                              env=self.environment(), capture_output=True, check=False)
        self.assertEqual(done.stdout.strip(), b"143")

    def test_pid_is_the_programs(self):
        with subprocess.Popen([WEFT, "run", "sh", "-c", "echo $$"], env=self.environment(),
                              stdout=subprocess.PIPE) as p:
            self.assertEqual(int(p.communicate()[0]), p.pid)

    def test_streams_are_the_programs(self):
        done = subprocess.run([WEFT, "run", "sh", "-c", "cat; echo no >&2"], input=b"yes",
                              env=self.environment(), capture_output=True, check=False)
        self.assertEqual((done.stdout, done.stderr), (b"yes", b"no\n"))

    def test_no_descriptor_is_left_open(self):
        with_weft = self.weft("run", "ls", "/proc/self/fd").stdout
        without = self.weft("run", "ls", "/proc/self/fd", WEFT="0").stdout
        self.assertEqual(with_weft, without)

    def test_options_become_environment(self):
        env = self.program_env("--workers", "3", "--stats", "--trace", "t.bin", "--seed", "0x10",
                               "--slice", "500", "--strict")
        self.assertEqual(env["WEFT_WORKERS"], "3")
        self.assertEqual(env["WEFT_STATS"], "1")
        self.assertEqual(env["WEFT_TRACE"], os.path.join(os.path.realpath(self.dir), "t.bin"))
        self.assertEqual(env["WEFT_SEED"], "16")
        self.assertEqual(env["WEFT_SLICE"], "500")
        self.assertEqual(env["WEFT_STRICT"], "1")
        self.assertEqual(env["LD_PRELOAD"], os.path.realpath(self.library))
        self.assertEqual(env["GLIBC_TUNABLES"], TUNABLE)

    def test_without_options_nothing_else_is_set(self):
        before = self.environment(WEFT_WORKERS="5")
        env = self.program_env(WEFT_WORKERS="5")
        for name in ("LD_PRELOAD", "GLIBC_TUNABLES", "LSAN_OPTIONS", "WEFT_PID"):
            del env[name]
        self.assertEqual(env.pop("ASAN_OPTIONS"), before.pop("ASAN_OPTIONS") + ":detect_leaks=0")
        self.assertEqual({k: env[k] for k in before}, before)
        self.assertEqual(set(env) - set(before), set())

    def test_option_wins_over_environment(self):
        self.assertEqual(self.program_env("--workers=2", WEFT_WORKERS="5")["WEFT_WORKERS"], "2")

    def test_children_is_yes_or_no(self):
        for word in ("yes", "no"):
            self.assertEqual(self.program_env("--children", word)["WEFT_CHILDREN"], word)
        self.assertEqual(self.weft("run", "--children=some", "true").returncode, 125)

    def test_stack_size_is_the_limit_of_the_program(self):
        for size, kib in (("64K", 64), ("256K", 256), ("1M", 1024), ("131072", 128)):
            done = self.weft("run", "--stack-size", size, "sh", "-c", "ulimit -s; ulimit -Hs")
            soft, hard = done.stdout.decode().split()
            self.assertEqual((soft, done.stderr), (str(kib), b""))
            self.assertEqual(hard, self.weft("run", "sh", "-c", "ulimit -Hs").stdout.decode().strip())
        done = self.weft("run", "--stack-size", "1M", "sh", "-c", "ulimit -s", WEFT="0")
        self.assertEqual(done.stdout, self.weft("run", "sh", "-c", "ulimit -s").stdout)

    def test_stack_size_is_checked(self):
        for size in ("", "0", "4K", "65535", "-1M", "1T", "1MB", "1m", "x", "2000G", "99999999999999999999", "0x100000"):
            self.assert_refused(self.weft("run", "--stack-size", size, "true"), 125, "--stack-size", repr(size))
        done = subprocess.run(["sh", "-c", 'ulimit -s 1024 && exec "$0" run --stack-size 2M true', WEFT],
                              env=self.environment(), capture_output=True, check=False)
        self.assert_refused(done, 125, "hard limit", "1048576 bytes")

    def test_other_preloads_are_kept(self):
        other = self.compile("libother.so", "int other;", "-shared", "-fPIC")
        env = self.program_env(LD_PRELOAD=other)
        self.assertEqual(env["LD_PRELOAD"], f"{os.path.realpath(self.library)}:{other}")

    def test_weft_inside_weft_preloads_once(self):
        done = self.weft("run", WEFT, "run", "sh", "-c", 'echo "$LD_PRELOAD"')
        self.assertEqual(done.stdout.decode().strip(), os.path.realpath(self.library))

    def test_other_tunables_are_kept(self):
        env = self.program_env(GLIBC_TUNABLES="glibc.malloc.arena_max=2")
        self.assertEqual(env["GLIBC_TUNABLES"], f"glibc.malloc.arena_max=2:{TUNABLE}")

    def test_the_users_stack_cache_is_kept(self):
        own = "glibc.pthread.stack_cache_size=4096:glibc.malloc.arena_max=2"
        self.assertEqual(self.program_env(GLIBC_TUNABLES=own)["GLIBC_TUNABLES"], own)

    def test_options_of_asan_are_kept(self):
        def options(**own):
            return self.program_env(**own)["ASAN_OPTIONS"]
        self.assertEqual(options(ASAN_OPTIONS=None), "verify_asan_link_order=0:detect_leaks=0")
        self.assertEqual(options(ASAN_OPTIONS="a=1:detect_leaks=1"),
                         "a=1:detect_leaks=1:verify_asan_link_order=0")
        own = "verify_asan_link_order=1:detect_leaks=1"
        self.assertEqual(options(ASAN_OPTIONS=own), own)

    def test_options_of_the_leak_checker_are_kept(self):
        def options(**own):
            return self.program_env(**own)["LSAN_OPTIONS"]
        self.assertEqual(options(LSAN_OPTIONS=None), "detect_leaks=0")
        self.assertEqual(options(LSAN_OPTIONS="verbosity=1"), "verbosity=1:detect_leaks=0")
        self.assertEqual(options(LSAN_OPTIONS="detect_leaks=1"), "detect_leaks=1")

    def test_weft_0_changes_no_byte(self):
        for word in ("0", "off", "NO", "False"):
            env = self.environment(WEFT=word, LD_PRELOAD="", ODD="a=b\n\x01")
            plain = subprocess.run(["env", "-0"], env=env, capture_output=True, check=True).stdout
            woven = subprocess.run([WEFT, "run", "--workers", "2", "env", "-0"], env=env,
                                   capture_output=True, check=True).stdout
            self.assertEqual(woven, plain)

    def test_the_pid_is_told(self):
        done = self.weft("run", "sh", "-c", 'echo $$ "$WEFT_PID"')
        self.assertRegex(done.stdout.decode(), r"^(\d+) \1\n$")

    def test_weft_0_runs_what_would_be_refused(self):
        static = self.compile("static0", "int main(void) { return 9; }", "-static")
        if not static:
            self.skipTest("no static libc")
        self.assertEqual(self.weft("run", static, WEFT="0").returncode, 9)

    def test_weft_0_has_the_shells_exit_codes(self):
        self.assert_refused(self.weft("run", "no-such-program", WEFT="0"), 127)
        self.assert_refused(self.weft("run", "/", WEFT="0"), 126)

    def test_arguments_after_the_program_are_its_own(self):
        done = self.weft("run", "echo", "--workers", "-x", "--")
        self.assertEqual(done.stdout, b"--workers -x --\n")

    def test_argv0_is_the_name_given(self):
        shown = self.compile("shown", '#include <stdio.h>\nint main(int c, char **v)'
                             '{ (void)c; puts(v[0]); return 0; }')
        self.assertEqual(self.weft("run", "./shown").stdout, b"./shown\n")
        done = self.weft("run", "shown", PATH=f"/nowhere:{self.dir}:/bin:/usr/bin")
        self.assertEqual(done.stdout, b"shown\n")
        self.assertTrue(shown)

    def test_path_skips_what_cannot_run(self):
        os.makedirs(self.path("a/tool"))
        os.makedirs(self.path("b"))
        os.makedirs(self.path("c"))
        self.write("b/tool", b"#!/bin/sh\n", mode=0o644)
        path = ":".join(self.path(d) for d in "ab")
        self.assert_refused(self.weft("run", "tool", PATH=path), 126, "not executable")
        self.write("c/tool", b"#!/bin/sh\nexit 5\n")
        self.assertEqual(self.weft("run", "tool", PATH=path + ":" + self.path("c")).returncode, 5)

    def test_empty_path_element_is_the_current_directory(self):
        self.write("here", b"#!/bin/sh\nexit 4\n")
        self.assertEqual(self.weft("run", "here", PATH=":/bin").returncode, 4)

    def test_scripts_run(self):
        self.write("one", b"#! /bin/sh -e\nexit 6\n")
        self.assertEqual(self.weft("run", "./one").returncode, 6)
        last = self.path("one")
        for i in range(4):
            last = self.write(f"chain{i}", f"#!{last}\n".encode())
        self.assertEqual(self.weft("run", last).returncode, 6)

    def test_scripts_without_a_first_line_run_by_sh(self):
        script = self.write("plain-script", b'echo "$0 $#: $1 $2"\nexit 3\n')
        for name, changes in ((script, {}), ("./plain-script", {}),
                              ("plain-script", {"PATH": self.dir + ":/bin:/usr/bin"})):
            native = subprocess.run(["env", name, "a b", "c"], env=self.environment(**changes), cwd=self.dir,
                                    capture_output=True, check=False)
            woven = self.weft("run", name, "a b", "c", **changes)
            self.assertEqual((woven.returncode, woven.stdout, woven.stderr),
                             (native.returncode, native.stdout, native.stderr))
            self.assertEqual(woven.returncode, 3)
        self.assertEqual(self.weft("run", self.write("no-line", b"")).returncode, 0)


class Options(RunTest):
    def test_help(self):
        for args in (["--help"], ["help"], ["help", "run"], ["run", "--help"], ["help", "doctor"],
                     ["doctor", "--help"]):
            done = self.weft(*args)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertTrue(done.stdout.startswith(b"Usage: weft "), args)

    def test_version(self):
        for args in (["--version"], ["-V"], ["version"], ["run", "--version"], ["run", "--version", "true"]):
            done = self.weft(*args)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertRegex(done.stdout.decode(), r"^weft \d+\.\d+\.\d+\n$")

    def test_no_command_is_answered_with_help(self):
        done = self.weft()
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertEqual(done.stderr, self.weft("--help").stdout)

    def test_bad_commands(self):
        self.assert_refused(self.weft("rum"), 125, "'rum'")
        self.assert_refused(self.weft("help", "rum"), 125, "'rum'")
        self.assert_refused(self.weft("--rum"), 125, "'--rum'")

    def test_bad_options(self):
        self.assert_refused(self.weft("run"), 125, "which program")
        self.assert_refused(self.weft("run", "--"), 125, "which program")
        self.assert_refused(self.weft("run", "--nope", "true"), 125, "'--nope'")
        self.assert_refused(self.weft("run", "-n", "true"), 125, "'-n'")
        self.assert_refused(self.weft("run", "--stats=1", "true"), 125, "'--stats' takes no value")
        self.assert_refused(self.weft("run", "--workers"), 125, "needs a value")
        for value in ("0", "1025", "-1", "+1", " 1", "", "2x", "1e3", "99999999999999999999"):
            self.assert_refused(self.weft("run", "--workers", value, "true"), 125, "1 to 1024")
        for value in ("", "x", "-1", "18446744073709551616"):
            self.assert_refused(self.weft("run", "--seed", value, "true"), 125, "--seed")
        self.assertEqual(self.program_env("--workers", "010")["WEFT_WORKERS"], "10")

    def test_bad_variables(self):
        for name, value, words in (("WEFT_WORKERS", "0", "1 to 1024"), ("WEFT_WORKERS", "many", "'many'"),
                                   ("WEFT_SEED", "-1", "64 bits"), ("WEFT_IO_URING", "yes", "auto, always"),
                                   ("WEFT_CHILDREN", "1", "yes or no"), ("WEFT_STATS", "2", "1 or 0"),
                                   ("WEFT_STRICT", "y", "1 or 0"), ("WEFT_OVERFLOW", "yes", "auto or always")):
            self.assert_refused(self.weft("run", "true", **{name: value}), 125, f"run: {name} takes", words)
            self.assertEqual(self.weft("run", "true", WEFT="0", **{name: value}).returncode, 0)
        self.assertEqual(self.weft("run", "true", WEFT_WORKERS="").returncode, 0)
        self.assertEqual(self.weft("run", "--workers", "2", "true", WEFT_WORKERS="many").returncode, 0)

    def test_trace_file_that_cannot_be_written(self):
        self.assert_refused(self.weft("run", "--trace", "", "true"), 125, "--trace")
        for name, why in (("no/such/file", "No such file"), ("/", "Is a directory")):
            self.assert_refused(self.weft("run", "--trace", name, "true"), 125, f"cannot write {name}: ", why)
        os.mkfifo(self.path("trace-fifo"))
        self.assertEqual(self.weft("run", "--trace", "trace-fifo", "true").returncode, 0)
        self.assertEqual(self.weft("run", "--trace", "new", "true", WEFT="0").returncode, 0)
        self.assertFalse(os.path.exists(self.path("new")))

    def test_limits_are_accepted(self):
        for value in ("1", "1024"):
            self.assertEqual(self.weft("run", "--workers", value, "true").returncode, 0)
        done = self.weft("run", "--seed", "18446744073709551615", "true")
        self.assertEqual(done.returncode, 0)

    def test_output_that_is_lost_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for args in (["--help"], ["--version"], ["help", "run"], ["run", "--help"], ["dump", "--help"], ["doctor"],
                     ["doctor", "--json"], ["doctor", "--explain", "kernel"], ["doctor", "--program", "true"]):
            for where in ("/dev/full", None):
                with open(where or "/dev/null", "wb") as out:
                    done = subprocess.run([WEFT, *args], env=self.environment(), stdout=out, stderr=subprocess.PIPE,
                                          preexec_fn=None if where else lambda: os.close(1), check=False)
                self.assertEqual((done.returncode, done.stderr), (125, b"weft: cannot write to standard output\n"),
                                 (args, where))


class Library(CommandTest):
    def test_missing(self):
        self.assert_refused(self.weft("run", "true", WEFT_LIBRARY="/no/such.so"), 125, "/no/such.so")

    def test_unusable(self):
        self.assert_refused(self.weft("run", "true", WEFT_LIBRARY="/etc/passwd"), 125,
                            "not a shared library")

    def test_not_wefts(self):
        other = self.compile("libelse.so", "int other;", "-shared", "-fPIC")
        self.assert_refused(self.weft("run", "true", WEFT_LIBRARY=other), 125, "is not weft's library")

    def test_no_proc(self):
        if os.geteuid() != 0:
            self.skipTest("only root can unmount /proc in a namespace of its own")
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$0" run true', WEFT],
                              env=self.environment(WEFT_LIBRARY=None), capture_output=True, check=False)
        if done.stderr.startswith((b"unshare", b"umount")):
            self.skipTest(done.stderr.decode().strip())
        self.assert_refused(done, 125, "/proc", "mounted")

    def test_path_that_preload_cannot_name(self):
        for name in ("a b", "a:b", "a$b"):
            os.makedirs(self.path(name), exist_ok=True)
            copy = self.path(f"{name}/libdummy.so")
            with open(self.library, "rb") as f:
                self.write(f"{name}/libdummy.so", f.read())
            self.assert_refused(self.weft("run", "true", WEFT_LIBRARY=copy), 125, "LD_PRELOAD")

    def test_relative_path_becomes_absolute(self):
        done = self.weft("run", "sh", "-c", 'echo "$LD_PRELOAD"', WEFT_LIBRARY="libdummy.so")
        self.assertEqual(done.stdout.decode().strip(), os.path.realpath(self.library))

    def test_places_beside_the_command(self):
        with open(WEFT, "rb") as f:
            weft = f.read()
        with open(self.library, "rb") as f:
            library = f.read()
        for bin_dir, lib_dir in (("bin", "lib"), ("bin", "lib/x86_64-linux-gnu"),
                                 ("bin", "lib64"), ("cmd/weft", "src")):
            prefix = lib_dir.replace("/", "_")
            for d in (bin_dir, lib_dir):
                os.makedirs(self.path(f"{prefix}/{d}"))
            command = self.write(f"{prefix}/{bin_dir}/weft", weft)
            self.write(f"{prefix}/{lib_dir}/libweft.so.0", library)
            done = subprocess.run([command, "run", "sh", "-c", 'echo "$LD_PRELOAD"'],
                                  env=self.environment(WEFT_LIBRARY=None), capture_output=True,
                                  check=False)
            self.assertEqual(done.stdout.decode().strip(),
                             os.path.realpath(self.path(f"{prefix}/{lib_dir}/libweft.so.0")))


if __name__ == "__main__":
    unittest.main()
