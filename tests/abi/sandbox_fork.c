// SPDX-License-Identifier: Apache-2.0
/*
 * A program with threads sets a filter that kills for what plain threads never call, and forks: the child makes threads.
 * It sets it when it is alone, for all its threads at once, or as one of several.
 */
#include "check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define NR 4
#define KILL(name)                                                                                 \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

/* Calls that a runtime with its own kernel threads needs to begin with, and none that runs needs again. */
static struct sock_filter no_new_runtime[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	KILL(epoll_create1),
	KILL(eventfd2),
	KILL(timerfd_create),
	KILL(prctl),
	KILL(getpriority),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static const struct sock_fprog filter = { sizeof(no_new_runtime) / sizeof(no_new_runtime[0]),
					  no_new_runtime };

static pthread_barrier_t barrier;

static void *meets(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

static void make_threads(void)
{
	pthread_t t[NR];

	CHECK_PT(pthread_barrier_init(&barrier, NULL, NR));
	for (int i = 0; i < NR; i++)
		t[i] = start(meets, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

static void set_filter(unsigned long flags)
{
	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter));
}

/* The child of a child has it as well. */
static void fork_with_threads(int depth)
{
	pid_t pid = CHECK_SYS(fork());

	if (pid == 0) {
		make_threads();
		if (depth)
			fork_with_threads(depth - 1);
		_exit(0);
	}
	reap(pid);
}

static void when_alone(void)
{
	make_threads();
	set_filter(0);
	make_threads();
	fork_with_threads(1);
}

static void *forks(void *arg)
{
	fork_with_threads(1);
	return arg;
}

static void for_all(void)
{
	make_threads();
	set_filter(SECCOMP_FILTER_FLAG_TSYNC);
	join(start(forks, NULL));
	fork_with_threads(0);
}

/* A child of a thread with a filter has it, too. */
static void *filters_itself(void *arg)
{
	set_filter(0);
	fork_with_threads(1);
	join(start(forks, NULL));
	return arg;
}

static void as_one_of_several(void)
{
	pthread_t t;

	make_threads();
	t = start(filters_itself, NULL);
	join(t);
	fork_with_threads(0); /* without one */
}

/* A look at what the kernel knows changes nothing. */
static void only_looks(void)
{
	make_threads();
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL),
		 -1);
	CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL), -1);
	fork_with_threads(1);
}

static void in_child(const char *what, void (*fn)(void))
{
	pid_t pid = CHECK_SYS(fork());

	if (pid == 0) {
		fn();
		_exit(0);
	}
	reap(pid);
	ok(what);
}

int main(void)
{
	in_child("alone", when_alone);
	in_child("all threads", for_all);
	in_child("one of several", as_one_of_several);
	in_child("no filter", only_looks);
	return finish();
}
