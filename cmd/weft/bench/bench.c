// SPDX-License-Identifier: Apache-2.0
/*
 * `weft bench`: measurements that need nothing but an installed weft.
 *
 * Called by: main.c. Invariant: a benchmark is one row of the table below.
 */
#include "bench/bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static const char bench_help[] =
	"Usage: weft bench BENCHMARK [OPTION]...\n"
	"\n"
	"Benchmarks:\n"
	"  threads     what threads do, natively, under weft, and with libweft: create, yield, wake,\n"
	"              a ring of 503, a mutex, sleepers, memory, a sleeper beside threads that compute\n"
	"  models      the same program with a kernel thread for each thread (1:1), with one for all\n"
	"              (1:N), and with some (M:N): computing, waiting, and both\n"
	"  ring        the thread-ring of an interpreter: --ruby, --python\n"
	"  io-models   the same TCP echo served by blocking threads on NPTL and under weft, a busy\n"
	"              loop, poll, epoll and io_uring: one table, and one picture\n"
	"  report      all of these in one page of HTML\n"
	"\n"
	"Options of all:\n"
	"  --rounds N              how often each is repeated, in turn, 1 to 100 (default: 3)\n"
	"  --json                  print JSON\n"
	"  --help                  show this text\n"
	"\n"
	"Options of threads and models:\n"
	"  --only NAME[,NAME]...   only these rows\n"
	"  --svg FILE              write a picture to FILE\n"
	"\n"
	"Options of ring:\n"
	"  --ruby, --python        with these interpreters (default: those that are installed)\n"
	"\n"
	"Options of report:\n"
	"  -o FILE                 the page (default: report.html)\n"
	"  --only NAME[,NAME]...   only these benchmarks\n"
	"\n"
	"Options of io-models:\n"
	"  --connections N[,N]...  how many connections (default: 50,1000)\n"
	"  --seconds N             length of each measurement, 0.05 to 60 (default: 1)\n"
	"  --size N                bytes of a message, 1 to 4096 (default: 64)\n"
	"  --models NAME[,NAME]... of threads, spin, poll, epoll, io_uring, weft (default: all)\n"
	"  --svg FILE              write the picture to FILE\n"
	"\n"
	"Exit status: 0, also if this system cannot do a row; 1 if a program failed; 125 if weft fails.\n";

void wf_bench_help(void)
{
	fputs(bench_help, stdout);
}

void wf_bench_prepare(void)
{
	(void)signal(SIGCHLD, SIG_DFL); /* ignored, there would be nothing to wait for */
	(void)signal(SIGPIPE, SIG_IGN); /* a load may have ended */
	(void)unsetenv("WEFT");         /* WEFT=0 would make all sides native */
}

static const struct {
	const char *name;
	int (*main)(int argc, char **argv);
} benchmarks[] = {
	{ "threads", wf_bench_threads_main }, { "models", wf_bench_threading_main },
	{ "ring", wf_bench_ring_main },       { "io-models", wf_bench_io_models_main },
	{ "report", wf_bench_report_main },
};

static int bench_main(int argc, char **argv)
{
	if (argc < 2) {
		wf_cmd_error("bench: which benchmark? see 'weft help bench'");
		return WF_EXIT_REFUSED;
	}
	if (strcmp(argv[1], "--help") == 0) {
		wf_bench_help();
		return 0;
	}
	for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
		if (strcmp(argv[1], benchmarks[i].name) == 0)
			return benchmarks[i].main(argc - 1, argv + 1);
	}
	if (strncmp(argv[1], "--", 2) == 0)
		wf_cmd_error("bench: which benchmark? options come after its name; see 'weft help "
			     "bench'");
	else
		wf_cmd_error("bench: no benchmark '%s'; see 'weft help bench'", argv[1]);
	return WF_EXIT_REFUSED;
}

const struct wf_cmd wf_bench_cmd = {
	.name = "bench",
	.summary = "measure weft against other ways to run threads, and to serve",
	.help = bench_help,
	.main = bench_main,
};
