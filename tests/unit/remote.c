// SPDX-License-Identifier: Apache-2.0
/*
 * linux/remote: a kernel thread does what it is asked for, and whoever writes an errand of his own into its memory gets
 * nothing that the process could not have without it.
 */
#include "linux/remote.c"

#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct wf_kthread us;

static long answer_forged(enum lx_remote what, long a, long b)
{
	struct errand e = { .what = what, .args = { a, b } };

	us.errand = &e;
	lx_remote_answer(&us);
	CHECK(e.is_done);
	CHECK(!us.errand);
	return e.ret;
}

TEST(the_death_signal_is_set_and_told)
{
	int sig = -1;

	CHECK_EQ(answer_forged(LX_REMOTE_SET_DEATH_SIGNAL, SIGUSR1, 0), 0);
	CHECK_EQ(answer_forged(LX_REMOTE_DEATH_SIGNAL, 0, 0), SIGUSR1);
	CHECK_EQ(answer_forged(LX_REMOTE_SET_DEATH_SIGNAL, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_PDEATHSIG, &sig), 0);
	CHECK_EQ(sig, 0);
}

TEST(nobody_begins_to_trace)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	CHECK_EQ(answer_forged(LX_REMOTE_PTRACE, PTRACE_ATTACH, pid), -ESRCH);
	CHECK_EQ(answer_forged(LX_REMOTE_PTRACE, PTRACE_SEIZE, pid), -ESRCH);
	CHECK_EQ(answer_forged(LX_REMOTE_PTRACE, PTRACE_TRACEME, 0), -ESRCH);
	/* it is nobody's */
	CHECK_EQ(answer_forged(LX_REMOTE_PTRACE, PTRACE_DETACH, pid), -ESRCH);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(a_request_goes_to_one_that_is_traced)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0) {
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
		CHECK_EQ(answer_forged(LX_REMOTE_PTRACE, PTRACE_DETACH, pid), 0);
	}
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(nothing_else_is_done)
{
	CHECK_EQ(answer_forged((enum lx_remote)__NR_getpid, 0, 0), -EINVAL);
	CHECK_EQ(answer_forged((enum lx_remote) - 1, 0, 0), -EINVAL);
	CHECK_EQ(answer_forged((enum lx_remote)__NR_openat, -100, (long)"/etc/passwd"), -EINVAL);
}

#define LOOKS_OF_THE_ASKER 10000

/* Of no process: a kick reaches nobody. */
static struct wf_kthread asked = { .self = &asked, .tid = -1 };
static struct wf_kthread taker = { .self = &taker };

static void *await_errand(void)
{
	void *errand;

	while (!(errand = wf_load_acquire(&asked.errand)))
		(void)sched_yield();
	return errand;
}

/* It takes the errand, has another number since, and answers late. */
static void *takes_it(void *arg)
{
	(void)await_errand();
	taker.errand = wf_exchange(&asked.errand, NULL);
	wf_store_release(&asked.tid, 0);
	for (int i = 0; i < LOOKS_OF_THE_ASKER; i++)
		(void)sched_yield();
	lx_remote_answer(&taker);
	return arg;
}

TEST(the_asker_waits_for_the_one_that_has_taken_it)
{
	pthread_t t;

	wf_store_release(&asked.tid, -1);
	CHECK_EQ(pthread_create(&t, NULL, takes_it, NULL), 0);
	CHECK_EQ(lx_remote_do(&asked, LX_REMOTE_DEATH_SIGNAL, 0, 0, 0, 0), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(!asked.errand);
}

static void *ends(void *arg)
{
	(void)await_errand();
	wf_store_release(&asked.tid, 0);
	return arg;
}

TEST(the_asker_takes_it_back_from_one_that_has_ended)
{
	pthread_t t;

	wf_store_release(&asked.tid, -1);
	CHECK_EQ(pthread_create(&t, NULL, ends, NULL), 0);
	CHECK_EQ(lx_remote_do(&asked, LX_REMOTE_DEATH_SIGNAL, 0, 0, 0, 0), -ESRCH);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK(!asked.errand);
}
