// SPDX-License-Identifier: Apache-2.0
/* Mistakes end the process: they are made in a child, whose last words are looked at. */
#ifndef WEFT_TESTS_DIES_H
#define WEFT_TESTS_DIES_H

#include "tap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* fn ends by abort(), having said one line with all of parts in it, in that order. */
static inline bool dies_saying(void (*fn)(void), const char *const *parts)
{
	char said[8192] = "";
	size_t len = 0;
	ssize_t n;
	int to[2], status = 0;
	const char *at = said;
	pid_t pid;

	if (pipe(to) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = { 0, 0 };

		(void)setrlimit(RLIMIT_CORE, &none);
		(void)dup2(to[1], STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	close(to[1]);
	while (len < sizeof(said) - 1 && (n = read(to[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	close(to[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	for (; *parts && at; parts++) {
		at = strstr(at, *parts);
		at = at ? at + strlen(*parts) : NULL;
	}
	if (at && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
		return true;
	tap_note("status %#x, said: %s", (unsigned)status, said);
	return false;
}

#define CHECK_DIES(fn, ...)                                                                        \
	CHECK(dies_saying((fn), (const char *const[]){ "weft: ", __VA_ARGS__, "\n", NULL }))

#endif
