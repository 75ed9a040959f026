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

#define DIES_SAID_BYTES 8192

/* fn ends by abort(), having said something with all of parts in it, in that order. said: of DIES_SAID_BYTES, all of it. */
static inline bool dies_having_said(void (*fn)(void), const char *const *parts, char *said)
{
	size_t len = 0;
	ssize_t n;
	int to[2], status = 0;
	const char *at = said;
	pid_t pid;

	said[0] = '\0';
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
	while (len < DIES_SAID_BYTES - 1 &&
	       (n = read(to[0], said + len, DIES_SAID_BYTES - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	close(to[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	for (; *parts && at; parts++) {
		at = strstr(at, *parts);
		at = at ? at + strlen(*parts) : NULL;
	}
	return at && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static inline bool dies_saying(void (*fn)(void), const char *const *parts)
{
	char said[DIES_SAID_BYTES];

	if (dies_having_said(fn, parts, said))
		return true;
	tap_note("said: %s", said);
	return false;
}

#define CHECK_DIES(fn, ...)                                                                        \
	CHECK(dies_saying((fn), (const char *const[]){ "weft: ", __VA_ARGS__, "\n", NULL }))

#endif
