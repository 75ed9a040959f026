// SPDX-License-Identifier: Apache-2.0
/*
 * Demangling with libstdc++; see demangle.h.
 *
 * A child process has libstdc++ loaded, reads names from a socket and answers. It has little memory and CPU time, and is
 * left alone when an answer takes too long: we may not send it a signal (see sandbox.h), but it ends with us. It
 * is started for the first name that begins as C++ names do.
 *
 * Considered and dropped: a limit of the name's length alone. Two hundred characters can stand for 2^40. And a
 * demangler of our own: a thousand lines that others keep better.
 */
#include "target/demangle.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_SYMBOL 4096
#define MAX_PLAIN 1024 /* what is longer is cut */
#define ANSWER_MS 3000
#define CHILD_BYTES (64u << 20) /* on top of what we have */
#define CHILD_CPU_S 5           /* for some hundred thousand names */
#define MAX_CHILDREN 4          /* after so many have died, names stay as they are */
#define MAX_KEPT (1u << 16)

struct kept {
	char *symbol, *plain; /* plain: NULL, it has none */
};

static struct kept *kept; /* open addressing; a power of two of them */
static size_t nr_kept, nr_places;
static int channel = -1;
static pid_t child;
static int nr_children;

static void limit_memory(void)
{
	unsigned long pages = 0;
	struct rlimit l;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return;
	if (fscanf(f, "%lu", &pages) == 1) {
		l.rlim_cur = l.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + CHILD_BYTES;
		(void)setrlimit(RLIMIT_AS, &l);
	}
	fclose(f);
}

static void serve(int fd)
{
	char *(*demangle)(const char *, char *, size_t *, int *) = NULL;
	const struct rlimit none = { 0 }, cpu = { CHILD_CPU_S, CHILD_CPU_S };
	void *lib;
	ssize_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setrlimit(RLIMIT_CORE, &none);
	(void)setrlimit(RLIMIT_CPU, &cpu);
	lib = dlopen("libstdc++.so.6", RTLD_NOW);
	if (lib)
		*(void **)&demangle = dlsym(lib, "__cxa_demangle");
	limit_memory();
	for (;;) {
		char symbol[MAX_SYMBOL + 1], *plain = NULL;
		int status = 0;

		n = read(fd, symbol, MAX_SYMBOL);
		if (n <= 0)
			_exit(0);
		symbol[n] = '\0';
		if (demangle)
			plain = demangle(symbol, NULL, NULL, &status);
		/* An answer of one NUL: there is no plain form. */
		n = (ssize_t)(plain ? strnlen(plain, MAX_PLAIN) : 0);
		if (n ? write(fd, plain, (size_t)n) != n : write(fd, "", 1) != 1)
			_exit(0);
		free(plain);
	}
}

static void end_child(void)
{
	if (channel < 0)
		return;
	close(channel);
	channel = -1;
	(void)waitpid(child, NULL, WNOHANG);
}

static bool start_child(void)
{
	int ends[2];

	if (channel >= 0)
		return true;
	if (nr_children == MAX_CHILDREN ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return false;
	nr_children++;
	child = fork();
	if (child == 0) {
		close(ends[0]);
		serve(ends[1]);
	}
	close(ends[1]);
	channel = ends[0];
	if (child < 0) {
		close(channel);
		channel = -1;
	}
	return channel >= 0;
}

static char *ask(const char *symbol)
{
	struct pollfd answer = { .events = POLLIN };
	char plain[MAX_PLAIN + 1];
	size_t len = strlen(symbol);
	ssize_t n;

	if (len > MAX_SYMBOL || !start_child())
		return NULL;
	answer.fd = channel;
	if (send(channel, symbol, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    poll(&answer, 1, ANSWER_MS) != 1 || (n = recv(channel, plain, MAX_PLAIN, 0)) <= 0) {
		end_child();
		return NULL;
	}
	plain[n] = '\0';
	return plain[0] ? strdup(plain) : NULL;
}

static size_t place_of(const char *symbol)
{
	uint64_t h = 14695981039346656037u;

	for (const char *c = symbol; *c; c++)
		h = (h ^ (unsigned char)*c) * 1099511628211u;
	for (size_t i = h & (nr_places - 1);; i = (i + 1) & (nr_places - 1)) {
		if (!kept[i].symbol || strcmp(kept[i].symbol, symbol) == 0)
			return i;
	}
}

const char *wf_demangle(const char *symbol)
{
	char bare[MAX_SYMBOL + 1];
	size_t i;

	if (strncmp(symbol, "_Z", 2) != 0)
		return NULL;
	if (!kept) {
		nr_places = 2 * MAX_KEPT;
		kept = calloc(nr_places, sizeof(*kept));
		if (!kept)
			return NULL;
	}
	/* A version of the symbol is no part of its name. */
	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(symbol, "@"), symbol);
	i = place_of(bare);
	if (kept[i].symbol)
		return kept[i].plain;
	if (nr_kept == MAX_KEPT)
		return NULL;
	kept[i].symbol = strdup(bare);
	if (!kept[i].symbol)
		return NULL;
	nr_kept++;
	kept[i].plain = ask(bare);
	return kept[i].plain;
}

void wf_demangle_done(void)
{
	end_child();
	for (size_t i = 0; i < nr_places; i++) {
		free(kept[i].symbol);
		free(kept[i].plain);
	}
	free(kept);
	kept = NULL;
	nr_places = nr_kept = 0;
}
