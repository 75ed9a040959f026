// SPDX-License-Identifier: Apache-2.0
/*
 * Dies in the way that its argument names, by a thread other than main.
 *
 * Run by: test_crash.py, natively and under weft.
 */
#include "../../src/obs/inspect.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NR_AT_ONCE 20

static pthread_barrier_t barrier;
static const char *how;

static void write_nowhere(void)
{
	volatile int *volatile nowhere = (volatile int *)8;

	*nowhere = 1;
}

static void read_behind_file(void)
{
	FILE *f = tmpfile();
	volatile char *p = f ? mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fileno(f), 0) : NULL;

	if (p && p != MAP_FAILED)
		(void)p[0];
}

static void divide(void)
{
	__asm__ volatile("xorl %%ecx, %%ecx; xorl %%edx, %%edx; divl %%ecx" ::
				 : "eax", "ecx", "edx");
}

static void undefined(void)
{
	__asm__ volatile("ud2");
}

static void breakpoint(void)
{
	__asm__ volatile("int3");
}

static void wait_for(int sig)
{
	kill(getpid(), sig);
	for (;;)
		pause();
}

static uint32_t offset_of(const struct wf_inspect *view, const char *name)
{
	for (uint32_t i = 0; i < view->nr_fields; i++)
		if (strcmp(view->fields[i].name, name) == 0)
			return view->fields[i].offset;
	exit(3);
}

/* The ring of the runtime's first kernel thread is no memory: who writes the events down crashes. */
static void break_recorder(void)
{
	const struct wf_inspect *view = dlsym(RTLD_DEFAULT, WF_INSPECT_SYMBOL);
	const char *runtime = NULL;
	char **kthreads;

	for (uint32_t i = 0; view && i < view->nr_roots; i++)
		if (strcmp(view->roots[i].type, "wf_runtime") == 0)
			runtime = view->roots[i].address;
	if (!runtime)
		return;
	memcpy(&kthreads, runtime + offset_of(view, "wf_runtime.kthreads"), sizeof(kthreads));
	*(uintptr_t *)(kthreads[0] + offset_of(view, "wf_kthread.ring")) = 8;
}

static void *dies(void *arg)
{
	static const struct {
		const char *name;
		void (*die)(void);
	} faults[] = {
		{ "segv", write_nowhere }, { "bus", read_behind_file }, { "fpe", divide },
		{ "ill", undefined },      { "trap", breakpoint },      { "abort", abort },
	};
	static const struct {
		const char *name;
		int sig;
	} signals[] = {
		{ "term", SIGTERM }, { "int", SIGINT },   { "quit", SIGQUIT },
		{ "hup", SIGHUP },   { "usr1", SIGUSR1 }, { "sent-segv", SIGSEGV },
	};

	prctl(PR_SET_NAME, "dying");
	if (strcmp(how, "all") == 0) {
		pthread_barrier_wait(&barrier);
		write_nowhere();
	}
	if (strcmp(how, "exit-too") == 0) {
		pthread_barrier_wait(&barrier);
		if (arg)
			_exit(7);
		write_nowhere();
	}
	if (strcmp(how, "recorder") == 0) {
		break_recorder();
		write_nowhere();
	}
	if (strcmp(how, "recorder-exit") == 0) {
		break_recorder();
		_exit(7);
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strcmp(how, faults[i].name) == 0)
			faults[i].die();
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (strcmp(how, signals[i].name) == 0)
			wait_for(signals[i].sig);
	return NULL;
}

int main(int argc, char **argv)
{
	const int many = argc > 1 && (!strcmp(argv[1], "all") || !strcmp(argv[1], "exit-too"));
	pthread_t thread[NR_AT_ONCE];
	const int nr = many ? NR_AT_ONCE : 1;

	if (argc < 2)
		return 2;
	how = argv[1];
	pthread_barrier_init(&barrier, NULL, NR_AT_ONCE);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&thread[i], NULL, dies, (void *)(i & 1)))
			return 2;
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	puts("survived");
	return 0;
}
