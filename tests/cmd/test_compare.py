# SPDX-License-Identifier: Apache-2.0
"""`weft compare`: what it refuses, what it says of programs that behave alike or not, and that nothing is left."""
import json
import os
import signal
import subprocess
import time
import unittest

from cmdtest import WEFT, CommandTest

# ARGUMENT: threads N makes N threads that all wait for one another; port FILE listens and writes where.
VICTIM = r"""
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *wait(void *arg) { (void)arg; pthread_barrier_wait(&all); return NULL; }
static void threads(int nr)
{
	pthread_t t[100];
	pthread_barrier_init(&all, NULL, (unsigned)nr);
	for (int i = 1; i < nr; i++) pthread_create(&t[i], NULL, wait, NULL);
	while (clock() < CLOCKS_PER_SEC / 4) /* they are there for many looks */
		;
	pthread_barrier_wait(&all);
	for (int i = 1; i < nr; i++) pthread_join(t[i], NULL);
}
static void serve(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), c;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bind(fd, (struct sockaddr *)&a, sizeof(a));
	threads(3);
	listen(fd, 5);
	for (;;) {
		c = accept(fd, NULL, NULL);
		if (write(c, "hello 42 req/s\n", 15) < 0) return;
		close(c);
	}
}
int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "threads")) threads(atoi(argv[2]));
	if (argc > 1 && !strcmp(argv[1], "serve")) serve();
	if (argc > 2 && !strcmp(argv[1], "child")) {
		/* leaves a process behind that outlives it, and says which */
		int end[2];
		char c;
		if (pipe(end) < 0) return 9;
		if (fork() == 0) {
			FILE *f = fopen(argv[2], "a");
			setsid();
			fprintf(f, "%d\n", getpid());
			fclose(f);
			if (write(end[1], "x", 1) < 0) return 8;
			pause();
		}
		return read(end[0], &c, 1) != 1;
	}
	puts("ended");
	return 0;
}
"""

CONNECT = ("import os, socket; s = socket.create_connection(('127.0.0.1', int(os.environ['PORT']))); "
           "print(s.recv(100).decode())")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class Compare(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.victim = cls.compile("victim", VICTIM, "-pthread")
        cls.load = cls.write("load", f"#!/usr/bin/env python3\n{CONNECT}\n".encode())

    def compare(self, *args, **changes):
        changes.setdefault("WEFT_LIBRARY", None)  # the real one
        return self.weft("compare", *args, **changes)

    def document(self, *args, code=0):
        done = self.compare("--json", *args)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual(done.stderr, b"")
        return json.loads(done.stdout)

    def test_wrong_arguments(self):
        for args, code, words in (
                ((), 125, ("which program",)),
                (("--rounds", "0", "true"), 125, ("--rounds", "1 to 1000", "'0'")),
                (("--rounds", "x", "true"), 125, ("--rounds",)),
                (("--warmup", "101", "true"), 125, ("--warmup",)),
                (("--limit", "0", "true"), 125, ("--limit",)),
                (("--limit", "nan", "true"), 125, ("--limit",)),
                (("--port", "65536", "true"), 125, ("--port",)),
                (("--port", "80", "true"), 125, ("--port", "which load")),
                (("--score", "[", "true"), 125, ("--score", "regular expression")),
                (("--score", "a", "true"), 125, ("--score", "group")),
                (("--load", "", "true"), 125, ("--load",)),
                (("--nothing", "true"), 125, ("--nothing",)),
                (("--input", "/nowhere", "true"), 1, ("/nowhere",)),
                (("no-such-program",), 127, ("no-such-program",)),
                (("/etc/passwd",), 126, ("/etc/passwd",)),
        ):
            with self.subTest(args=args):
                self.assert_refused(self.compare(*args), code, *words)

    def test_the_table_fits_a_narrow_terminal(self):
        for columns in (40, 80):
            lines = self.on_a_terminal(columns, "compare", "--rounds", "1", "--warmup", "0", "--", "true")
            table = lines[next(i for i, l in enumerate(lines) if "native" in l):]
            table = table[:table.index("")]
            self.assertLessEqual(max(map(len, table)), columns, table)
            self.assertEqual(len(table), 11 if columns == 40 else 6)

    def test_kernel_threads_are_counted(self):
        d = self.document("--rounds", "3", "--workers", "1", self.victim, "threads", "60")
        self.assertTrue(d["is_alike"])
        self.assertEqual(d["native"]["end"], "exit status 0")
        self.assertEqual(len(d["native"]["rounds"]), 3)
        self.assertEqual(len(d["weft"]["rounds"]), 3)
        for side in ("native", "weft"):
            for r in d[side]["rounds"]:
                self.assertGreater(r["wall_s"], 0)
                self.assertGreater(r["cpu_s"], 0)
                self.assertGreater(r["memory_bytes"], 100000)
        self.assertEqual(d["native"]["median"]["kernel_threads"], 60)
        self.assertLess(d["weft"]["median"]["kernel_threads"], 10)

    def test_same_status_and_output(self):
        done = self.compare("--rounds", "3", "--", "sh", "-c", "echo x; exit 3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"exit status 3 on both sides; the same output", done.stdout)
        self.assertIn(b"nothing to do", done.stdout)

    def test_a_signal_is_named(self):
        done = self.compare("--rounds", "1", "--", "sh", "-c", "kill -SEGV $$")
        self.assertIn(b"SIGSEGV on both sides", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_other_output_under_weft(self):
        done = self.compare("--rounds", "2", "--", "sh", "-c", "echo $LD_PRELOAD")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"DIFFERENT OUTPUT in 2 of 2", done.stdout)

    def test_other_status_under_weft(self):
        done = self.compare("--rounds", "2", "--", "sh", "-c", "test -z $LD_PRELOAD")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"DIFFERENT ENDS: natively exit status 0", done.stdout)

    def test_output_that_always_differs_says_nothing(self):
        done = self.compare("--rounds", "2", "--", "sh", "-c", "echo $$")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"differs from run to run", done.stdout)

    def test_input_and_score(self):
        name = self.write("input", b"speed 17.5\n")
        d = self.document("--rounds", "1", "--input", name, "--score", "speed ([0-9.]+)", "cat")
        self.assertEqual(d["native"]["median"]["score"], 17.5)
        self.assertEqual(d["weft"]["median"]["score"], 17.5)
        self.assert_refused(self.compare("--score", "speed ([0-9.]+)", "true"), 1, "no number")

    def test_one_round_is_doubted(self):
        done = self.compare("--rounds", "1", "true")
        self.assertIn(b"cannot tell a difference from chance", done.stdout)

    def test_a_static_program_is_refused(self):
        static = self.compile("static", "int main(void) { return 0; }", "-static")
        if not static:
            self.skipTest("no static libc here")
        self.assert_refused(self.compare(static), 125, "statically linked")

    def test_a_program_that_does_not_end(self):
        done = self.compare("--limit", "0.3", "sleep", "1000")
        self.assert_refused(done, 1, "natively", "0.3 s")

    def test_server_and_load(self):
        d = self.document("--rounds", "2", "--load", self.load, "--score", "hello ([0-9]+)", self.victim, "serve")
        self.assertEqual(d["native"]["median"]["score"], 42)
        self.assertEqual(d["native"]["end"], "SIGTERM")
        self.assertTrue(d["is_alike"])

    def test_server_that_never_listens(self):
        self.assert_refused(self.compare("--load", "true", "--limit", "0.3", "sleep", "1000"), 1,
                            "natively", "no TCP port")
        self.assert_refused(self.compare("--load", "true", self.victim), 1, "before it listened")

    def test_load_that_fails(self):
        done = self.compare("--load", "echo no luck; exit 3", self.victim, "serve")
        self.assert_refused(done, 1, "exit status 3", "no luck")

    def test_nothing_is_left(self):
        pids = self.path("pids")
        self.assertEqual(self.compare("--rounds", "2", "--warmup", "0", self.victim, "child", pids).returncode, 0)
        with open(pids, encoding="ascii") as f:
            left = [int(line) for line in f]
        self.assertEqual(len(left), 4)
        self.assertEqual([pid for pid in left if is_alive(pid)], [])

    def test_an_interrupt_ends_the_program(self):
        pids = self.path("interrupted")
        with subprocess.Popen([WEFT, "compare", "--", "sh", "-c", f"echo $$ >{pids}; exec sleep 1000"],
                              env=self.environment(WEFT_LIBRARY=None), stderr=subprocess.DEVNULL) as p:
            while not os.path.exists(pids) or not os.path.getsize(pids):
                time.sleep(0.01)
            with open(pids, encoding="ascii") as f:
                pid = int(f.read())
            p.send_signal(signal.SIGINT)
            p.wait()
        deadline = time.monotonic() + 60
        while is_alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(is_alive(pid))

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([WEFT, "compare", "--rounds", "1", "true"], env=self.environment(WEFT_LIBRARY=None),
                                  stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn(b"cannot write to standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
