# SPDX-License-Identifier: Apache-2.0
"""`weft bench threads`, `models` and `ring`: options, that all rows come out, and what is said of those that cannot;
`weft run --model`, which they stand on."""
import json
import math
import os
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

from cmdtest import WEFT, CommandTest

# Four threads wait for a file lock that a child holds until a line comes; then the program says so and waits for the end.
HOLDERS = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
static const char *name;
static void *lock(void *arg)
{
	int fd = open(name, O_RDWR);
	flock(fd, LOCK_EX);
	close(fd);
	return arg;
}
/* A task of the process is in flock(): only a look from outside tells. */
static int is_anybody_waiting(pid_t pid)
{
	char command[128];
	snprintf(command, sizeof(command), "cat /proc/%d/task/*/syscall 2>/dev/null | grep -q '^73 '", (int)pid);
	return system(command) == 0;
}
int main(int argc, char **argv)
{
	pthread_t t[4];
	int locked[2];
	pid_t parent = getpid();
	char c;
	name = argv[1];
	if (argc < 2 || pipe(locked) < 0) return 2;
	if (fork() == 0) {
		int fd = open(name, O_RDWR);
		flock(fd, LOCK_EX);
		if (write(locked[1], "x", 1) != 1) return 3;
		while (!is_anybody_waiting(parent)) ;
		_exit(0);
	}
	if (read(locked[0], &c, 1) != 1) return 4;
	for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, lock, NULL);
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	puts("done"); fflush(stdout);
	return read(0, &c, 1) < 0;
}
"""


class Grid(CommandTest):
    def bench(self, *args, **changes):
        changes.setdefault("WEFT_LIBRARY", None)  # the real one
        return self.weft("bench", *args, **changes)

    def rows(self, *args, **changes):
        done = self.bench(*args, "--json", **changes)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(done.stderr, b"")
        return {r["name"]: r for r in json.loads(done.stdout)["rows"]}

    def test_wrong_arguments(self):
        for args, words in (
                (("threads", "--nothing"), ("--nothing",)),
                (("threads", "extra"), ("'extra'",)),
                (("threads", "--rounds", "0"), ("--rounds", "1 to 100")),
                (("threads", "--rounds", "101"), ("--rounds",)),
                (("threads", "--only", "yield,nothing"), ("--only", "yield,nothing", "create, create-many")),
                (("threads", "--only", ""), ("--only",)),
                (("threads", "--svg", ""), ("--svg",)),
                (("threads", "--svg", "no/such/folder.svg"), ("no/such/folder.svg", "No such file")),
                (("models", "--only", "hogs"), ("--only", "compute")),
                (("ring", "--perl"), ("--perl",))):
            with self.subTest(args=args):
                self.assert_refused(self.bench(*args), 125, "bench: ", *words)

    def test_help(self):
        for name in ("threads", "models", "ring"):
            done = self.bench(name, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertIn(name.encode(), done.stdout)

    def test_threads_rows_and_picture(self):
        picture = self.path("threads.svg")
        self.write("threads.svg", b"x" * 100000)  # what was there before is gone afterwards
        names = ["create", "pingpong-sem-1", "ring-503", "mutex", "memory"]
        rows = self.rows("threads", "--rounds", "2", "--only", ",".join(names), "--svg", picture)
        self.assertEqual(list(rows), names)
        for name, row in rows.items():
            for side in ("native", "weft", "libweft"):
                with self.subTest(row=name, side=side):
                    self.assertEqual(len(row[side]["samples"]), 2)
                    self.assertTrue(math.isfinite(row[side]["median"]["mean"]))
                    self.assertGreater(row[side]["median"]["mean"], 0)
        for side in ("native", "weft", "libweft"):
            m = rows["create"][side]["median"]
            self.assertLessEqual(m["p50"], m["p99"])
            self.assertLessEqual(m["p99"], m["max"])
            points = rows["create"][side]["distribution"]
            self.assertEqual(points, sorted(points, key=lambda p: (p["share"], p["ns"])))
            self.assertEqual([p["ns"] for p in points], sorted(p["ns"] for p in points))
            self.assertEqual(points[-1]["share"], 1)
            if side != "native":  # forty times on a quiet machine: these are no kernel threads
                self.assertLess(m["p50"], rows["create"]["native"]["median"]["p50"] / 3)
        text = "".join(xml.etree.ElementTree.parse(picture).getroot().itertext())
        self.assertIn("the share that took no longer", text)
        self.assertIn("ring of 503", text)
        for label in ("NPTL: p50 ", "weft run: p50 ", "libweft: p50 "):
            self.assertIn(label, text)
        self.assertIn("prefers-color-scheme:dark", text)

    def test_the_table_fits_the_terminal(self):
        for columns, there, missing in ((40, ("mean", "p99", "times"), ("p50", "max", "CPU")),
                                        (80, ("mean", "p50", "p99", "max", "CPU ms", "times"), ())):
            with self.subTest(columns=columns):
                lines = self.on_a_terminal(columns, "bench", "threads", "--rounds", "1", "--only", "mutex")
                self.assertLessEqual(max(map(len, lines)), columns, lines)
                head = next(l for l in lines if "mean" in l)
                for word in there:
                    self.assertIn(word, head)
                for word in missing:
                    self.assertNotIn(word, head)
                self.assertEqual([l.split("  ")[1] for l in lines if l.startswith("  ") and "mean" not in l],
                                 ["NPTL", "weft run", "libweft"])

    def test_the_linked_program_measures_nothing_but_weft(self):
        program = os.path.join(os.path.dirname(WEFT), "../../bench/threads/bench-threads-native")
        for value, words in ((None, b"result mean="), ("0", b"cannot run on weft: ")):
            done = subprocess.run([program, "create", "100"], env=self.environment(WEFT=value), capture_output=True,
                                  timeout=60, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertTrue(done.stdout.startswith(words), done.stdout)

    def test_a_row_that_the_system_does_not_allow(self):
        prlimit = shutil.which("prlimit")
        if not prlimit:
            self.skipTest("no prlimit")
        # An address space in which 10,000 stacks have no room.
        done = subprocess.run([prlimit, f"--as={4 << 30}", WEFT, "bench", "threads", "--rounds", "1", "--only",
                               "sleepers-10k"], env=self.environment(WEFT_LIBRARY=None), cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False)
        self.assertRegex(done.stdout, rb"\n  NPTL +cannot make the thread: ")

    def test_models(self):
        rows = self.rows("models", "--rounds", "1", "--only", "wait,mixed")
        for row in rows.values():
            for side in ("1:1", "1:N", "M:N"):
                self.assertGreater(row[side]["median"]["mean"], 0)

    def test_ring(self):
        rows = self.rows("ring", "--python", "--rounds", "1")
        self.assertEqual(list(rows), ["python"])
        self.assertGreater(rows["python"]["weft"]["median"]["mean"], 0)
        self.assert_refused(self.bench("ring", "--ruby", PATH="/nowhere"), 125, "ruby is not installed")
        self.assert_refused(self.bench("ring", PATH="/nowhere"), 125, "neither ruby nor python3")

    def test_model_is_checked(self):
        for value in ("", "2:1", "m:n"):
            self.assert_refused(self.weft("run", "--model", value, "true"), 125, "--model", "1:1, 1:N or M:N")
        self.assert_refused(self.weft("run", "true", WEFT_MODEL="N:1"), 125, "WEFT_MODEL")
        self.assert_refused(self.weft("run", "--model", "1:N", "--workers", "2", "true"), 125, "one worker")

    def test_model_1_1_is_native(self):
        env = self.weft("run", "--model", "1:1", "env").stdout.decode()
        self.assertNotIn("LD_PRELOAD", env)
        self.assertIn("WEFT=0\n", env)

    def kernel_threads(self, model):
        """How many the program has after four of its threads had to wait in the kernel at one time."""
        name = self.write("lock", b"")
        with subprocess.Popen([WEFT, "run", "--workers", "1", "--model", model, self.holders, name],
                              env=self.environment(WEFT_LIBRARY=None), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as p:
            self.assertEqual(p.stdout.readline(), b"done\n")
            nr = len(os.listdir(f"/proc/{p.pid}/task"))
            p.stdin.close()
            self.assertEqual(p.wait(), 0)
        return nr

    def test_model_1_n_waits_in_one_kernel_thread(self):
        self.holders = self.compile("holders", HOLDERS, "-pthread")
        self.assertEqual(self.kernel_threads("1:N"), 2)  # the worker's, and the one for signals
        self.assertGreater(self.kernel_threads("M:N"), 2)


if __name__ == "__main__":
    unittest.main()
