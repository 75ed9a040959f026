// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at the environment of a program that is to be executed; see exec.h.
 *
 * The arguments of execve() may be anything, and there may be no thread yet whose faults we see: so the kernel reads them
 * for us, and the kernel refuses what cannot be read.
 */
#include "gate/exec.h"
#include "base/base.h"
#include "gate/say.h"
#include "linux/abi.h"
#include "sys/syscall.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#define REFUSED 125 /* as `weft run` ends */
#define PRELOAD "LD_PRELOAD="
#define PRELOAD_LEN (sizeof(PRELOAD) - 1)

static const char *library; /* the last part of its name */
static bool is_strict;
static long watched_pid;

/* Up to n bytes, as many as there are. */
static size_t fetch(void *to, const void *from, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };
	long got = sys6(__NR_process_vm_readv, sys0(__NR_getpid), &local, 1, &remote, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

enum found {
	NOT_THERE,
	THERE,
	UNKNOWN
};

/* The list, a piece at a time: it may be long, and the caller's stack small. Names are compared by their last part. */
static enum found look_at_list(const char *list)
{
	const char *name = library;
	bool is_same = true;
	char piece[128];
	size_t n;

	for (; (n = fetch(piece, list, sizeof(piece))); list += n) {
		for (size_t i = 0; i < n; i++) {
			const char c = piece[i];

			if ((!c || c == ':' || c == ' ') && is_same && !*name)
				return THERE;
			if (!c)
				return NOT_THERE;
			if (c == ':' || c == ' ' || c == '/') {
				name = library;
				is_same = true;
			} else {
				is_same = is_same && *name == c;
				name += is_same;
			}
		}
	}
	return UNKNOWN;
}

static enum found look_at_environment(const char *const *env)
{
	const char *entries[16];
	char start[PRELOAD_LEN];

	for (;; env += ARRAY_LEN(entries)) {
		size_t n = env ? fetch(entries, env, sizeof(entries)) / sizeof(*entries) : 0;

		if (!env)
			return NOT_THERE;
		for (size_t i = 0; i < n; i++) {
			size_t same = 0, got;

			if (!entries[i])
				return NOT_THERE;
			got = fetch(start, entries[i], sizeof(start));
			while (same < got && start[same] == PRELOAD[same])
				same++;
			if (same == PRELOAD_LEN)
				return look_at_list(entries[i] + PRELOAD_LEN);
		}
		if (n < ARRAY_LEN(entries))
			return UNKNOWN; /* it goes on where nothing is mapped */
	}
}

/* A file that the kernel will refuse says nothing: execvp() tries one folder after the other. */
static bool is_executable(int dir, const char *path)
{
	return sys4(__NR_faccessat, dir, path, X_OK, 0) == 0;
}

static void before_exec(int dir, const char *path, const char *const *env)
{
	char name[160];

	if (!is_strict && sys0(__NR_getpid) != watched_pid)
		return;
	name[fetch(name, path, sizeof(name) - 1)] = 0;
	if (look_at_environment(env) != NOT_THERE || (*name && !is_executable(dir, path)))
		return;
	wf_say(is_strict ? "not executing " : "running without weft: ", *name ? name : "a program",
	       ": its LD_PRELOAD does not name weft's library");
	if (is_strict)
		(void)sys1(__NR_exit_group, REFUSED);
}

void wf_exec_watch(const char *path, bool strict)
{
	library = path;
	for (; *path; path++)
		if (*path == '/')
			library = path + 1;
	is_strict = strict;
	watched_pid = sys0(__NR_getpid);
	lx_config.before_exec = before_exec;
}
