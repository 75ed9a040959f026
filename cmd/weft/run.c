// SPDX-License-Identifier: Apache-2.0
/*
 * `weft run`: prepares the environment for the preloaded library and becomes the program.
 *
 * Called by: main.c. Invariant: the command execs and leaves no process between the caller and the program,
 * so pid, exit status, signals and stdio are the program's own. With WEFT=0 nothing is changed at all, and nothing is where
 * no program of the caller's could run under weft.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "binary.h"
#include "cmd.h"
#include "library.h"
#include "preflight.h"
#include "program.h"
#include "run.h"
#include "tracefile.h"

/*
 * glibc keeps 40 MB of dead stacks, five of the default size, and maps and unmaps the others: 17 us for a
 * thread that costs 0.4 us with its stack kept. 128 GiB is address space for 16,384 of them; a thread that lived for long gives its pages back.
 */
#define STACK_TUNABLE "glibc.pthread.stack_cache_size"
#define STACK_CACHE_BYTES "137438953472"

/*
 * The runtime of AddressSanitizer ends a program in which another library is loaded before it. We define none
 * of the functions that it replaces. Its leak checker, and the one that programs have without it, looks for
 * threads among the kernel's, finds only main and calls a leak what the stacks of the others hold. Programs that
 * the program starts may have it, too.
 */
#define ASAN_ORDER "verify_asan_link_order"
#define LEAKS "detect_leaks"

static void set_or_die(const char *name, const char *value)
{
	if (setenv(name, value, 1) < 0) {
		wf_cmd_error("cannot set %s: %s", name, strerror(errno));
		exit(WF_EXIT_REFUSED);
	}
}

static void set_number(const char *name, unsigned long long value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", value);
	set_or_die(name, text);
}

/* Puts a and b together with a colon between them, where both are there. */
static void set_joined(const char *name, const char *a, const char *b)
{
	char *joined;

	if (!a || !*a || !b || !*b) {
		set_or_die(name, a && *a ? a : b);
		return;
	}
	if (asprintf(&joined, "%s:%s", a, b) < 0) {
		wf_cmd_error("cannot set %s: out of memory", name);
		exit(WF_EXIT_REFUSED);
	}
	set_or_die(name, joined);
	free(joined);
}

static bool has_preload(const char *list, const char *library)
{
	size_t len = strlen(library);

	while (*list) {
		size_t item = strcspn(list, ": ");

		if (item == len && memcmp(list, library, len) == 0)
			return true;
		list += item + (list[item] != '\0');
	}
	return false;
}

/* The user's own value of an option stays: he may have a reason. */
static bool has_option(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t item = strcspn(list, ":");

		if (item > len && memcmp(list, name, len) == 0 && list[len] == '=')
			return true;
		list += item + (list[item] != '\0');
	}
	return false;
}

static void set_trace(const char *file)
{
	char *path = wf_tracefile_prepare(file, getenv("WEFT_PID") ? getenv("WEFT_TRACE") : NULL);

	if (!path)
		exit(WF_EXIT_REFUSED);
	set_or_die("WEFT_TRACE", path);
	free(path);
}

static void set_environment(const struct wf_run_options *o, const char *library)
{
	const char *preload = getenv("LD_PRELOAD");
	const char *tunables = getenv("GLIBC_TUNABLES");
	const char *asan = getenv("ASAN_OPTIONS"), *lsan = getenv("LSAN_OPTIONS");

	if (!preload || !has_preload(preload, library))
		set_joined("LD_PRELOAD", library, preload);
	if (!tunables || !has_option(tunables, STACK_TUNABLE))
		set_joined("GLIBC_TUNABLES", tunables, STACK_TUNABLE "=" STACK_CACHE_BYTES);
	if (!asan || !has_option(asan, ASAN_ORDER))
		set_joined("ASAN_OPTIONS", asan, ASAN_ORDER "=0");
	if (!asan || !has_option(asan, LEAKS))
		set_joined("ASAN_OPTIONS", getenv("ASAN_OPTIONS"), LEAKS "=0");
	if (!lsan || !has_option(lsan, LEAKS))
		set_joined("LSAN_OPTIONS", lsan, LEAKS "=0");
	if (o->workers)
		set_number("WEFT_WORKERS", o->workers);
	if (o->has_stats)
		set_or_die("WEFT_STATS", "1");
	if (o->trace)
		set_trace(o->trace);
	if (o->record)
		set_or_die("WEFT_RECORD", o->record);
	if (o->has_seed)
		set_number("WEFT_SEED", o->seed);
	if (o->slice_us)
		set_number("WEFT_SLICE", o->slice_us);
	if (o->io_uring)
		set_or_die("WEFT_IO_URING", o->io_uring);
	if (o->children)
		set_or_die("WEFT_CHILDREN", o->children);
	if (o->model)
		set_or_die("WEFT_MODEL", o->model);
	if (o->watchdog)
		set_or_die("WEFT_WATCHDOG", o->watchdog);
	if (o->is_strict)
		set_or_die("WEFT_STRICT", "1");
	set_number("WEFT_PID", (unsigned long long)getpid());
}

/* The kernel gives main's stack this limit, and libc takes it for the threads that it makes. */
static void set_stack_size(unsigned long long bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) == 0) {
		limit.rlim_cur = bytes;
		if (setrlimit(RLIMIT_STACK, &limit) == 0)
			return;
	}
	wf_cmd_error("run: cannot set the limit of stacks to %llu bytes: %s", bytes,
		     strerror(errno));
	exit(WF_EXIT_REFUSED);
}

static int exec_failed(const char *name)
{
	int error = errno;

	wf_cmd_error("cannot run %s: %s", name, strerror(error));
	return error == ENOENT || error == ENOTDIR ? WF_EXIT_NOT_FOUND : WF_EXIT_NOT_EXECUTABLE;
}

/* As execvp() does it with a script that has no #! line. */
static int exec_by_shell(const char *script, char **argv)
{
	static char shell[] = WF_PROGRAM_SHELL;
	size_t nr = 0;
	char **own;

	while (argv[nr])
		nr++;
	own = calloc(nr + 2, sizeof(*own));
	if (!own)
		return -1;
	own[0] = shell;
	own[1] = (char *)script;
	for (size_t i = 1; i < nr; i++)
		own[i + 1] = argv[i];
	execv(shell, own);
	free(own);
	return -1;
}

/* Returns the exit code only if the program does not run. */
static int run_woven(const struct wf_run_options *o, char **argv)
{
	char library[PATH_MAX], why[256];
	struct wf_program p;
	int exit_code;

	wf_program_examine(&p, argv[0]);
	exit_code = p.exit_code;
	if (exit_code) {
		wf_cmd_error("cannot run %s: %s; %s", argv[0], p.what, p.advice);
	} else if (!wf_library_find(library, why, sizeof(why))) {
		wf_cmd_error("cannot run %s: %s", argv[0], why);
		exit_code = WF_EXIT_REFUSED;
	} else {
		set_environment(o, library);
		if (o->stack_bytes)
			set_stack_size(o->stack_bytes);
		(void)(p.needs_shell ? exec_by_shell(p.path, argv) : execv(p.path, argv));
		exit_code = exec_failed(argv[0]);
	}
	wf_program_done(&p);
	return exit_code;
}

static int run_native(char **argv)
{
	execvp(argv[0], argv);
	return exec_failed(argv[0]);
}

static int run_main(int argc, char **argv)
{
	struct wf_run_options o = { 0 };
	const char *weft = getenv("WEFT"), *why;
	bool is_done = false, is_on = true;
	int ret = wf_run_parse_options(argc, argv, &o, &is_done);

	if (ret || is_done)
		return ret;
	argv += optind;
	if (weft && *weft)
		ret = wf_run_take_answer(&is_on, "WEFT", weft);
	if (!ret && !is_on)
		return run_native(argv);
	if (!ret)
		ret = wf_run_parse_environment(&o);
	if (ret)
		return ret;
	if (o.model && strcmp(o.model, "1:1") == 0) {
		set_or_die("WEFT", "0"); /* for its children, too */
		return run_native(argv);
	}
	why = wf_preflight_why_native();
	if (!why)
		return run_woven(&o, argv);
	if (o.is_strict) {
		wf_cmd_error("not running %s on plain NPTL, as --strict asks: %s", argv[0], why);
		return WF_EXIT_REFUSED;
	}
	wf_cmd_error("running on plain NPTL: %s", why);
	return run_native(argv);
}

const struct wf_cmd wf_run_cmd = {
	.name = "run",
	.summary = "run a program with user-level threads",
	.help = wf_run_help,
	.main = run_main,
};
