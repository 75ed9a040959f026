# SPDX-License-Identifier: Apache-2.0
"""`weft doctor --program`: the verdict and the facts behind it."""
import json
import os
import subprocess
import unittest

from cmdtest import WEFT, CommandTest

PLAIN = "int main(void) { return 0; }"
THREAD = """
#include <pthread.h>
static void *f(void *p) { return p; }
int run(void) { pthread_t t; return pthread_create(&t, 0, f, 0) || pthread_join(t, 0); }
"""
# Five threads wait for a condition, one of them has been deep; main waits for its input to end.
SLEEPERS = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static sem_t here;
static int word;
static void __attribute__((noinline)) dive(void)
{
	volatile char room[300 << 10];
	for (unsigned i = 0; i < sizeof(room); i += 512) room[i] = 1;
}
static void *wait_for(void *deep)
{
	if (deep) dive();
	sem_post(&here);
	while (!__atomic_load_n(&word, __ATOMIC_ACQUIRE)) syscall(SYS_futex, &word, 128, 0, NULL, NULL, 0);
	return NULL;
}
/* A task of the process still runs: it has posted, and does not wait yet. */
static int is_anybody_on_the_way(void)
{
	char path[64], text[64];
	int waiting = 0;
	snprintf(path, sizeof(path), "cat /proc/%d/task/*/syscall | grep -c '^202 '", getpid());
	FILE *f = popen(path, "r");
	if (fgets(text, sizeof(text), f)) sscanf(text, "%d", &waiting);
	pclose(f);
	return waiting < 5;
}
int main(void)
{
	pthread_t t[5];
	char c;
	sem_init(&here, 0, 0);
	for (long i = 0; i < 5; i++) pthread_create(&t[i], NULL, wait_for, (void *)(i == 3));
	for (int i = 0; i < 5; i++) sem_wait(&here);
	while (is_anybody_on_the_way()) ;
	puts("here"); fflush(stdout);
	while (read(0, &c, 1) > 0) ;
	__atomic_store_n(&word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, 129, 99, NULL, NULL, 0);
	for (int i = 0; i < 5; i++) pthread_join(t[i], NULL);
	return 0;
}
"""


class Program(CommandTest):
    def examine(self, program, code):
        done = self.weft("doctor", "--json", "--program", program)
        self.assertEqual(done.stderr, b"")
        self.assertEqual(done.returncode, code, done.stdout)
        text = self.weft("doctor", "--program", program)
        self.assertEqual(text.returncode, code)
        report = json.loads(done.stdout)
        self.assertIn(f"verdict       {report['verdict']}: ", text.stdout.decode())
        return report

    def test_what_to_expect_of_a_file(self):
        program = self.compile("holder", "#include <sys/file.h>\n" + THREAD.replace("return p;", "return 0;") +
                               "pthread_mutex_t m; int main(void) { pthread_mutex_lock(&m); flock(9, LOCK_SH); "
                               "return run(); }", "-pthread")
        text = self.weft("doctor", "--program", program).stdout.decode()
        self.assertRegex(text, r"\nholds +flock: ")
        self.assertRegex(text, r"\nlocks +mutexes; ")
        self.assertRegex(text, r"\nstack +as it is: ")
        self.assertRegex(text, r"\nworkers +as it is: \d")
        limited = subprocess.run(["sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"', WEFT, "doctor", "--program", program],
                                 env=self.environment(), capture_output=True, timeout=60, check=False)
        self.assertRegex(limited.stdout.decode(), r"\nstack +weft run --stack-size 256K: ")

    def test_what_to_expect_of_a_process(self):
        program = self.compile("sleepers", SLEEPERS, "-pthread")
        with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), b"here\n")
            report = self.examine(str(p.pid), 0)
            text = self.weft("doctor", "--program", str(p.pid)).stdout.decode()
            p.stdin.close()
            self.assertEqual(p.wait(), 0)
        self.assertEqual(report["file"], os.path.realpath(program))
        self.assertEqual((report["pid"], report["kernel_threads"], report["under_weft"]), (p.pid, 6, False))
        # One of them has used 300 KiB of its stack: twice that.
        self.assertGreater(report["stack_used_bytes"], 300 << 10)
        self.assertLess(report["stack_used_bytes"], 500 << 10)
        self.assertGreaterEqual(report["proposed_stack_bytes"], 2 * report["stack_used_bytes"])
        self.assertEqual(report["proposed_workers"], 1)
        self.assertRegex(text, r"\nnow +6 kernel threads: 5 in futex \(emulated\), 1 in read ")

    def test_a_process_that_is_not_there(self):
        with subprocess.Popen(["true"]) as p:
            p.wait()
        self.assertEqual(self.examine(str(p.pid), 2)["verdict"], "refused")

    def test_no_threads(self):
        report = self.examine(self.compile("plain", PLAIN), 0)
        self.assertEqual(report["reason"], "0 pthread_create: nothing to do")
        self.assertFalse(report["makes_threads"])
        self.assertEqual(report["libc"], "glibc")
        self.assertEqual(report["loader"], "/lib64/ld-linux-x86-64.so.2")
        self.assertIn("libc.so.6", report["needed"])
        libc = [x for x in report["libraries"] if x["name"] == "libc.so.6"]
        self.assertTrue(os.path.exists(libc[0]["path"]))

    def test_own_threads(self):
        program = self.compile("threads", THREAD + "int main(void) { return run(); }", "-pthread")
        report = self.examine(program, 0)
        self.assertEqual(report["verdict"], "runs")
        self.assertEqual(report["thread_makers"], [program])

    def test_threads_of_an_indirect_library(self):
        self.compile("libdeep.so", THREAD, "-shared", "-fPIC", "-pthread")
        self.compile("libmid.so", "int run(void); int mid(void) { return run(); }", "-shared", "-fPIC",
                     f"-L{self.dir}", "-ldeep", "-Wl,-rpath,$ORIGIN")
        program = self.compile("indirect", "int mid(void); int main(void) { return mid(); }",
                               f"-L{self.dir}", "-lmid", "-Wl,-rpath,$ORIGIN",
                               f"-Wl,-rpath-link,{self.dir}")
        report = self.examine(program, 0)
        self.assertEqual(report["thread_makers"], ["libdeep.so"])
        self.assertIn("libmid.so", report["needed"])
        self.assertNotIn("libdeep.so", report["needed"])

    def test_missing_library(self):
        self.compile("libgone.so", "int gone;", "-shared", "-fPIC")
        program = self.compile("lost", "extern int gone; int main(void) { return gone; }",
                               f"-L{self.dir}", "-lgone")
        os.unlink(self.path("libgone.so"))
        self.assertEqual(self.examine(program, 2)["verdict"], "incomplete")

    def test_calls(self):
        source = ("#include <pthread.h>\n#include <unistd.h>\n" + THREAD +
                  "int main(void) { if (fork() == 0) setuid(1);"
                  "return run() + (int)pread(0, 0, 0, 0) + pthread_equal(pthread_self(), pthread_self()); }")
        report = self.examine(self.compile("calls", source, "-pthread", "-O0"), 0)
        fates = {call["name"]: call["fate"] for call in report["calls"] if "library" not in call}
        self.assertEqual(fates["fork"], "passed")
        self.assertEqual(fates["setuid"], "emulated")
        self.assertEqual(fates["pthread_create"], "emulated")
        self.assertEqual(fates["pthread_self"], "libc")
        self.assertEqual(fates["pread64"], "handed on")
        tests = {call["name"]: call["test"] for call in report["calls"]}
        self.assertEqual(tests["setuid"], "setuid_all")

    def test_calls_by_other_names(self):
        source = ("#define _GNU_SOURCE\n#include <fcntl.h>\n#include <poll.h>\n#include <setjmp.h>\n#include <stdlib.h>\n"
                  "#include <signal.h>\n#include <unistd.h>\n"
                  "int __pthread_key_create(unsigned *, void (*)(void *));"
                  "int main(int argc, char **argv) { unsigned key; char buf[8]; sigjmp_buf jump; struct pollfd p[1];"
                  "if (argc == 1) return __pthread_key_create(&key, 0) + sigsetjmp(jump, 1);"
                  "if (argc == 2) return open64(argv[1], atoi(argv[1])) + sigpause(3);"
                  "return (int)read(0, buf, strtoul(argv[1], 0, 0)) + poll(p, strtoul(argv[2], 0, 0), 0); }")
        report = self.examine(self.compile("names", source, "-O2", "-D_FORTIFY_SOURCE=2", "-Wno-deprecated-declarations"), 0)
        fates = {call["name"]: call["fate"] for call in report["calls"] if "library" not in call}
        for name, fate in {"pthread_key_create": "libc", "__sigsetjmp": "libc", "open": "passed", "read": "emulated",
                           "poll": "emulated"}.items():
            self.assertEqual(fates.get(name), fate, name)
        self.assertTrue({"sigpause", "__xpg_sigpause"} & set(fates))

    def test_calls_of_libraries(self):
        self.compile("libsets.so", "#include <unistd.h>\nint sets(void) { return setuid(1); }", "-shared",
                     "-fPIC")
        program = self.compile("user", "int sets(void); int main(void) { return sets(); }",
                               f"-L{self.dir}", "-lsets", "-Wl,-rpath,$ORIGIN")
        report = self.examine(program, 0)
        found = [call for call in report["calls"] if call["name"] == "setuid"]
        self.assertEqual([call.get("library") for call in found], ["libsets.so"])

    def test_tls_and_inline_syscalls(self):
        source = ("__thread char big[4000]; int main(void) { long r = 39; "
                  '__asm__ volatile("syscall" : "+a"(r) : : "rcx", "r11", "memory");'
                  "return big[r & 7]; }")
        report = self.examine(self.compile("tls", source, "-O2"), 0)
        self.assertGreaterEqual(report["tls_bytes"], 4000)
        self.assertGreaterEqual(report["tls_bytes_with_libraries"], report["tls_bytes"])
        self.assertGreaterEqual(report["syscall_pairs"], 1)
        self.assertIn("getpid", [call["name"] for call in report["calls"] if call["inline"]])

    def test_programs_with_a_use_for_the_gs_base(self):
        base = '__asm__ volatile("wrgsbase %0" : : "r"(0ul));'
        program = self.compile("base", THREAD + "int main(void) { " + base + " return run(); }", "-pthread")
        report = self.examine(program, 0)
        self.assertTrue(report["uses_gs_base"])
        self.assertEqual(report["verdict"], "runs")
        self.compile("libfilters.so", "#include <sys/prctl.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
                     "int filters(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) +"
                     " (int)syscall(SYS_seccomp, 0, 0, 0); }", "-shared", "-fPIC", "-O2")
        program = self.compile("browser", THREAD + "int filters(void); int main(int argc, char **argv) { " + base +
                               " return argc > 1 ? filters() : run(); }", "-pthread", f"-L{self.dir}", "-lfilters",
                               "-Wl,-rpath,$ORIGIN")
        self.assertEqual(self.examine(program, 1)["verdict"], "plain NPTL")

    def test_refusal_is_the_one_of_run(self):
        static = self.compile("static", PLAIN, "-static")
        if not static:
            self.skipTest("no static libc")
        report = self.examine(static, 2)
        self.assertEqual(report["verdict"], "refused")
        refusal = self.weft("run", static).stderr.decode()
        self.assertEqual(refusal, f"weft: cannot run {static}: {report['reason']}; {report['advice']}\n")

    def test_script_is_judged_by_its_interpreter(self):
        report = self.examine(self.write("script", b"#!/bin/sh\n"), 0)
        self.assertEqual(report["file"], "/bin/sh")

    def test_a_script_of_env_is_judged_by_what_env_runs(self):
        other = self.compile("interpreter", PLAIN)
        path = os.path.dirname(other) + ":" + os.environ["PATH"]

        def target(line):
            done = self.weft("doctor", "--json", "--program", self.write("by-env", line.encode()), PATH=path)
            return os.path.realpath(json.loads(done.stdout)["file"])

        env = os.path.realpath("/usr/bin/env")
        for line in ("#!/usr/bin/env interpreter\n", "#! /usr/bin/env  interpreter \nmore\n", "#!/usr/bin/env -S interpreter -u -x\n",
                     "#!/usr/bin/env -S NAME=value interpreter -u\n"):
            self.assertEqual(target(line), os.path.realpath(other), line)
        for line in ("#!/usr/bin/env -i interpreter\n", "#!/usr/bin/env -S -i interpreter\n", "#!/usr/bin/env interpreter -u\n",
                     "#!/usr/bin/env NAME=value interpreter\n", "#!/usr/bin/env\n", "#!/usr/bin/env -S 'interpreter'\n"):
            self.assertEqual(target(line), env, line)
        script = self.write("lost-env", b"#!/usr/bin/env weft-has-no-such-program\n")
        self.assertEqual(self.examine(script, 2)["verdict"], "refused")
        self.assert_refused(self.weft("run", script), 127, "weft-has-no-such-program", "is missing")
        # A second look: the interpreter is a script of env's itself.
        self.write("shim", b"#!/usr/bin/env interpreter\n")
        self.assertEqual(target("#!/usr/bin/env shim\n"), os.path.realpath(other))

    def test_links_are_followed_before_origin(self):
        os.makedirs(self.path("real/lib"), exist_ok=True)
        self.compile("real/lib/libbeside.so", "int beside;", "-shared", "-fPIC")
        program = self.compile("real/tool", "extern int beside; int main(void) { return beside; }",
                               f"-L{self.path('real/lib')}", "-lbeside", "-Wl,-rpath,$ORIGIN/lib")
        link = self.path("linked")
        os.symlink(program, link)
        self.assertEqual(self.examine(link, 0)["verdict"], "runs")

    def test_the_verdict_comes_in_few_lines(self):
        program = self.compile("short", "#include <sched.h>\n" + THREAD +
                               "int main(void) { return unshare(0) + run(); }", "-pthread", "-D_GNU_SOURCE",
                               "-include", "sched.h")
        done = self.weft("doctor", "--program", program)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(done.returncode, 1)
        self.assertLessEqual(len(lines), 13)
        calls = [x for x in lines if x.startswith("calls ")]
        self.assertEqual(len(calls), 1)
        self.assertIn("1 bound (unshare)", calls[0])
        self.assertIn("--calls", calls[0])
        whole = self.weft("doctor", "--calls", "--program", program).stdout.decode().splitlines()
        self.assertEqual(whole[:len(lines)], lines)
        self.assertTrue(any(x.split()[:3] == ["uses", "unshare", "bound;"] or x.split()[:3] == ["uses", "unshare", "bound"]
                            for x in whole), whole)
        self.assert_refused(self.weft("doctor", "--calls"), 125, "--program")

    def test_calls_of_its_own_are_said_to_be_answered(self):
        program = self.compile("own", 'int main(void) { long r = 39; __asm__ volatile("syscall" : "+a"(r) : :'
                               ' "rcx", "r11", "memory"); return (int)r; }', "-O2")
        self.assertIn("1 possible system calls of its own; weft finds and answers them",
                      self.weft("doctor", "--program", program).stdout.decode())

    def test_nothing_there(self):
        self.assertEqual(self.examine("weft-has-no-such-program", 2)["verdict"], "refused")


if __name__ == "__main__":
    unittest.main()
