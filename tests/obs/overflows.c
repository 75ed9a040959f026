// SPDX-License-Identifier: Apache-2.0
/*
 * Overflows a stack in the way that its arguments name: KIND [KIB].
 *
 * Run by: test_overflow.py, natively and under weft. Its functions are exported, so that a report can name them.
 */
#include <alloca.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone, visibility("default")))
#define NR_AT_ONCE 100
#define NR_PLAIN 8300  /* stacks of libc's own mappings come first */
#define REGION_KIB 512 /* of the stack that overflows beside them */
#define HANDLED 7

static pthread_barrier_t barrier;
static volatile long sink;
static volatile bool goes_on = true; /* the compiler does not believe in an end either */
static char signal_stack[64 << 10];

KEEP int deep(int n)
{
	volatile char room[64];

	room[0] = (char)n;
	sink += room[0];
	return goes_on ? deep(n + 1) + room[0] : 0;
}

KEEP int even(int n);

KEEP int odd(int n)
{
	sink += n;
	return goes_on ? even(n + 1) + (int)sink : 0;
}

KEEP int even(int n)
{
	sink += n;
	return goes_on ? odd(n + 1) + (int)sink : 0;
}

KEEP int large(size_t bytes)
{
	volatile char *p = alloca(bytes);

	p[0] = 1;
	return p[0] + (int)sink;
}

/* The last of the stack goes to a call of libc's that takes some of it. */
KEEP int format(int n)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %f", n, (double)n / 3);
	sink += text[0];
	return goes_on ? format(n + 1) + text[1] : 0;
}

KEEP int allocate(int n)
{
	void *p = malloc((size_t)(n % 7 + 1) << 17);

	sink += p != NULL;
	free(p);
	return goes_on ? allocate(n + 1) + (int)sink : 0;
}

static void handler_recurses(int sig)
{
	deep(sig);
}

static void handler_ends(int sig)
{
	(void)sig;
	_exit(HANDLED);
}

static void handle(int sig, void (*handler)(int), bool is_elsewhere)
{
	stack_t s = { .ss_sp = signal_stack, .ss_size = sizeof(signal_stack) };
	struct sigaction act = { .sa_handler = handler, .sa_flags = is_elsewhere ? SA_ONSTACK : 0 };

	if (is_elsewhere)
		sigaltstack(&s, NULL);
	sigaction(sig, &act, NULL);
}

static void recurses_elsewhere(void)
{
	deep(0);
}

/* A stack that is not the thread's, with a guard of its own, somewhere below that one. */
static void overflow_coroutine(void)
{
	static ucontext_t there, here;
	const size_t bytes = 256 << 10;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE) || getcontext(&there))
		exit(2);
	there.uc_stack.ss_sp = p;
	there.uc_stack.ss_size = bytes;
	there.uc_link = &here;
	makecontext(&there, recurses_elsewhere, 0);
	swapcontext(&here, &there);
}

/* From high up on the stack: a wild pointer that happens to lead there. */
static void write_into_guard(void)
{
	pthread_attr_t attr;
	void *low;
	size_t bytes;

	if (pthread_getattr_np(pthread_self(), &attr) || pthread_attr_getstack(&attr, &low, &bytes))
		exit(2);
	((volatile char *)low)[-8] = 1;
}

static void overflow_signal_stack(void)
{
	const size_t bytes = sizeof(signal_stack), guard = 64 << 10;
	char *p = mmap(NULL, bytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	stack_t s = { .ss_sp = p + guard, .ss_size = bytes };
	struct sigaction act = { .sa_handler = handler_recurses, .sa_flags = SA_ONSTACK };

	if (p == MAP_FAILED || mprotect(p, guard, PROT_NONE) || sigaltstack(&s, NULL) ||
	    sigaction(SIGUSR1, &act, NULL))
		exit(2);
	raise(SIGUSR1);
}

/* Kills for what a report might ask the kernel: readlink(2) and prlimit(2). */
static void filter(void)
{
	static struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_readlink, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	static const struct sock_fprog program = { sizeof(rows) / sizeof(rows[0]), rows };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(HANDLED);
}

/* A guard that the kernel keeps inside a mapping: this stack's begins below it. */
static bool has_inner_guard(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, here = (unsigned long)&maps;
	char line[512];
	bool is_inner = false;

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && here >= from && here < to)
			is_inner = to - from > (size_t)REGION_KIB << 10;
	if (maps)
		fclose(maps);
	return is_inner;
}

static void *recurses(void *arg)
{
	const char *kind = arg;

	prctl(PR_SET_NAME, "recurser");
	if (strcmp(kind, "at-once") == 0)
		pthread_barrier_wait(&barrier);
	if (strcmp(kind, "region") == 0)
		fprintf(stderr, "guard: %s\n", has_inner_guard() ? "inner" : "own mapping");
	if (strcmp(kind, "alloca") == 0)
		large(1 << 20);
	if (strcmp(kind, "malloc") == 0)
		allocate(0);
	if (strcmp(kind, "format") == 0)
		format(0);
	if (strcmp(kind, "pair") == 0)
		odd(0);
	if (strcmp(kind, "wild") == 0)
		*(volatile char *)((uintptr_t)signal_stack - (1ul << 40)) = 1;
	if (strcmp(kind, "in-handler") == 0) {
		handle(SIGUSR1, handler_recurses, false);
		raise(SIGUSR1);
	}
	if (strcmp(kind, "filtered") == 0)
		filter();
	if (strcmp(kind, "coroutine") == 0)
		overflow_coroutine();
	if (strcmp(kind, "guard") == 0)
		write_into_guard();
	if (strcmp(kind, "signal-stack") == 0)
		overflow_signal_stack();
	if (strcmp(kind, "own-handler") == 0)
		handle(SIGSEGV, handler_ends, true);
	if (strcmp(kind, "no-room") == 0)
		handle(SIGSEGV, handler_ends, false);
	deep(0);
	return NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

/* So many stacks at once that the next one lies in a region of the runtime's, where the kernel has such guards. */
static void use_up_plain_stacks(void)
{
	static pthread_t thread[NR_PLAIN];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16 << 10);
	for (int i = 0; i < NR_PLAIN; i++)
		if (pthread_create(&thread[i], &attr, nothing, NULL))
			exit(2);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	const bool is_many = strcmp(kind, "at-once") == 0;
	pthread_t thread[NR_AT_ONCE];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	if (argc > 2)
		pthread_attr_setstacksize(&attr, (size_t)atoi(argv[2]) << 10);
	if (strcmp(kind, "region") == 0) {
		use_up_plain_stacks();
		pthread_attr_setstacksize(&attr, (size_t)REGION_KIB << 10);
	}
	if (strcmp(kind, "main") == 0 || strcmp(kind, "main-alloca") == 0) {
		struct rlimit limit = { 0, 0 };

		pthread_create(&thread[0], NULL, nothing, NULL);
		pthread_join(thread[0], NULL);
		getrlimit(RLIMIT_STACK, &limit);
		return kind[4] ? large((size_t)limit.rlim_cur + (1 << 20)) : deep(0);
	}
	pthread_barrier_init(&barrier, NULL, NR_AT_ONCE);
	for (int i = 0; i < (is_many ? NR_AT_ONCE : 1); i++)
		if (pthread_create(&thread[i], &attr, recurses, (void *)kind))
			return 2;
	for (int i = 0; i < (is_many ? NR_AT_ONCE : 1); i++)
		pthread_join(thread[i], NULL);
	return 0;
}
