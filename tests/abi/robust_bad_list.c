// SPDX-License-Identifier: Apache-2.0
/*
 * A process is killed while one of its threads holds a robust lock that it shares, and another has a list of locks that leads
 * nowhere: who waits for the first is told. Once more where the threads use the GS base themselves.
 */
#include "check.h"

#include <linux/futex.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

struct shared {
	pthread_mutex_t lock;
	int nr_there; /* atomic */
};

static struct shared *s;
static char block[64];

static void use_base(int is_used)
{
#if defined(__x86_64__)
	if (is_used)
		CHECK_SYS(syscall(SYS_arch_prctl, ARCH_SET_GS, block));
#endif
	(void)is_used;
}

static void *has_bad_list(void *arg)
{
	struct robust_list_head head = { .list = { (struct robust_list *)(uintptr_t)64 } };

	CHECK_SYS(syscall(SYS_set_robust_list, &head, sizeof(head)));
	ADD(&s->nr_there, 1);
	for (;;)
		pause();
	return arg;
}

static void *holds(void *arg)
{
	CHECK_PT(pthread_mutex_lock(&s->lock));
	ADD(&s->nr_there, 1);
	for (;;)
		pause();
	return arg;
}

static void *does_nothing(void *arg)
{
	return arg;
}

static void be_killed(int uses_base)
{
	join(start(does_nothing, NULL));
	use_base(uses_base);
	start(has_bad_list, NULL);
	while (LOAD(&s->nr_there) != 1)
		sleep_ns(MS);
	start(holds, NULL);
	for (;;)
		pause();
}

static void run(int uses_base)
{
	pthread_mutexattr_t a;
	int status;
	pid_t pid;

	CHECK_PT(pthread_mutexattr_init(&a));
	CHECK_PT(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	CHECK_PT(pthread_mutex_init(&s->lock, &a));
	STORE(&s->nr_there, 0);
	pid = CHECK_SYS(fork());
	if (pid == 0)
		be_killed(uses_base);
	while (LOAD(&s->nr_there) != 2)
		sleep_ns(MS);
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(pthread_mutex_lock(&s->lock), EOWNERDEAD);
	CHECK_PT(pthread_mutex_consistent(&s->lock));
	CHECK_PT(pthread_mutex_unlock(&s->lock));
}

int main(void)
{
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s != MAP_FAILED);
	run(0);
	ok("a list that leads nowhere");
	run(1);
	ok("and a base of the program's");
	return finish();
}
