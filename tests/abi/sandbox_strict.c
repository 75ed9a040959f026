// SPDX-License-Identifier: Apache-2.0
/*
 * A program that has one thread left allows itself a few calls only, and kills for all others. weft's own kernel threads make
 * some of those: such a filter is the thread's alone, and the program goes on. Where the filter lets them live it holds for
 * them as well; see sandbox_alone.
 */
#include "check.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define NR 4
#define ENDS 300
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static pthread_barrier_t barrier;

static void *meets(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

/* The calls of the program, and those of weft for a thread with a kernel thread of its own (docs/limits.md). */
static struct sock_filter few[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	ALLOW(write),
	ALLOW(getppid),
	ALLOW(nanosleep),
	ALLOW(clock_nanosleep),
	ALLOW(clock_gettime),
	ALLOW(exit_group),
	ALLOW(futex),
	ALLOW(tgkill),
	ALLOW(rt_sigreturn),
	ALLOW(sched_yield),
	ALLOW(membarrier),
	ALLOW(epoll_ctl),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

/* For itself; and when it has ended, what was its own must not be met by what the last thread does for all. */
static void *may_set_nothing(void *arg)
{
	struct sock_filter kills[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(kills) / sizeof(kills[0]), kills };

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
	return arg;
}

static void have_one_thread_left(void)
{
	pthread_t t[NR];

	CHECK_PT(pthread_barrier_init(&barrier, NULL, NR));
	for (int i = 0; i < NR; i++)
		t[i] = start(meets, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

static void set_filter(struct sock_filter *code, size_t bytes)
{
	const struct sock_fprog filter = { (unsigned short)(bytes / sizeof(*code)), code };

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
}

/* Nobody may write, weft neither. */
static void say_nothing(void)
{
	for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++)
		if (few[i].k == SYS_write)
			few[i].k = SYS_getppid;
	have_one_thread_left();
	set_filter(few, sizeof(few));
	CHECK(syscall(SYS_getppid) > 0);
	_exit(finish());
}

int main(void)
{
	pid_t pid = fork();

	if (pid == 0)
		say_nothing();
	reap(pid);
	ok("one that may not even write");
	have_one_thread_left();
	for (int i = 0; i < ENDS; i++) {
		join(start(may_set_nothing, NULL));
		CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	}
	ok("it has one thread left");
	set_filter(few, sizeof(few));
	for (int i = 0; i < 5; i++) {
		CHECK(syscall(SYS_getppid) > 0);
		sleep_ns(10 * MS);
	}
	ok("it goes on");
	return finish();
}
