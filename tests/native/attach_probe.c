// SPDX-License-Identifier: Apache-2.0
/*
 * Does what its arguments say, one after the other, and prints a word about each: test_attach.py knows what it should be.
 *
 * Built three times: PROBE_LINKED, the program itself is linked with libweft; PROBE_LIBRARY, a library of its is;
 * PROBE_DLOPEN, it opens that library.
 */
#include "attach_plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_KERNEL_TID (1 << 22) /* threads of weft's have greater ones */

static enum weft_mode (*mode)(const char **out_why);
static int (*attach)(void);
static void *library;

#if PROBE_LINKED
static void find(void)
{
	mode = weft_mode;
	attach = weft_attach;
}

#define AT_ONCE 30

static int waits_for_all(void *barrier)
{
	return pthread_barrier_wait(barrier) > 0;
}

/* Threads that have ended, and may rest. */
static const char *end_threads(void)
{
	weft_thread *t[AT_ONCE];
	pthread_barrier_t all;

	pthread_barrier_init(&all, NULL, AT_ONCE);
	for (int i = 0; i < AT_ONCE; i++)
		if (weft_thread_spawn(waits_for_all, &all, NULL, &t[i]))
			return "not made";
	for (int i = 0; i < AT_ONCE; i++)
		weft_thread_join(t[i], NULL, WEFT_NEVER);
	return "ended";
}
#elif PROBE_LIBRARY
static void find(void)
{
	mode = plugin_mode;
	attach = plugin_attach;
}
#else
static void find(void)
{
	library = dlopen(getenv("PROBE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	mode = (enum weft_mode(*)(const char **))dlsym(library, "plugin_mode");
	attach = (int (*)(void))dlsym(library, "plugin_attach");
}
#endif

static void *says_whose(void *arg)
{
	*(const char **)arg = syscall(SYS_gettid) > MOST_KERNEL_TID ? "weft" : "kernel";
	return NULL;
}

static const char *make_thread(void)
{
	const char *whose = "none";
	pthread_t t;
	int error = pthread_create(&t, NULL, says_whose, &whose);

	return error || pthread_join(t, NULL) ? strerror(error) : whose;
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

static const char *hold_thread(void)
{
	pthread_t t;

	return pthread_create(&t, NULL, waits, NULL) ? "none" : "held";
}

static const char *say_mode(void)
{
	static char line[200];
	const char *why = "?";

	if (mode(&why) == WEFT_MODE_ATTACHED)
		return why ? "attached, and says why not" : "attached";
	snprintf(line, sizeof(line), "native: %s", why ? why : "(no reason)");
	return line;
}

static const char *do_attach(void)
{
	const char *name = strerrorname_np(-attach());

	return name;
}

/* A filter that allows everything. */
static const char *filter(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog prog = { 1, &all };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? "refused" : "filtered";
}

/* The child goes on with the rest. */
static const char *do_fork(void)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		return "child";
	waitpid(pid, &status, 0);
	printf("%s\n", status ? "died" : "parent");
	exit(0);
}

static const char *wait_for_input(void)
{
	char c;

	printf("waiting\n");
	fflush(stdout);
	while (read(0, &c, 1) == 1)
		;
	return "went on";
}

static const char *do_close(void)
{
	return !library ? "nothing" : dlclose(library) ? "not closed" : "closed";
}

static const struct {
	const char *word;
	const char *(*action)(void);
} words[] = {
	{ "mode", say_mode },       { "attach", do_attach }, { "thread", make_thread },
	{ "hold", hold_thread },    { "filter", filter },    { "fork", do_fork },

#if PROBE_LINKED
	{ "ended", end_threads },
#endif
	{ "wait", wait_for_input }, { "close", do_close },
};

static const char *do_word(const char *word)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i].word) == 0)
			return words[i].action();
	return "unknown word";
}

/* Before main(), as libraries do it. */
__attribute__((constructor)) static void early(void)
{
	const char *word = getenv("PROBE_EARLY");

	find();
	if (word)
		printf("early %s\n", do_word(word));
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "exec") == 0) {
			fflush(stdout);
			execv(argv[0], (char *[]){ argv[0], argv[i + 1], argv[i + 2], NULL });
		}
		printf("%s\n", do_word(argv[i]));
	}
	return 0;
}
