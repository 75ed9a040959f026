// SPDX-License-Identifier: Apache-2.0
/*
 * Thread identity: unique tids, names of oneself and of others, tgkill, pthread_kill with 0, tid addresses.
 */
#include <sys/prctl.h>
#include "check.h"

#define NR 40

static int tids[NR];
static pthread_barrier_t barrier;

/* Where the kernel says the word is that it clears at the end, libc's join waits: it must find it there. */
static void takes_its_tid_address_back(void)
{
	uintptr_t word = 0;

	if (prctl(PR_GET_TID_ADDRESS, &word) == 0) {
		CHECK(word != 0);
		CHECK_EQ(syscall(SYS_set_tid_address, NULL), gettid());
		CHECK_EQ(syscall(SYS_set_tid_address, word), gettid());
	}
}

static void *has_identity(void *arg)
{
	int i = (int)(intptr_t)arg;
	char name[16], want[16];

	tids[i] = gettid();
	CHECK_EQ(tids[i], syscall(SYS_gettid));
	takes_its_tid_address_back();
	CHECK(tids[i] > 0 && tids[i] != getpid());
	CHECK_PT(pthread_getname_np(pthread_self(), name, sizeof(name)));
	snprintf(want, sizeof(want), "own-%d", i);
	CHECK_PT(pthread_setname_np(pthread_self(), want));
	CHECK_PT(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_STR(name, want);
	pthread_barrier_wait(&barrier);
	/* main looks at us and gives us another name */
	pthread_barrier_wait(&barrier);
	snprintf(want, sizeof(want), "given-%d", i);
	CHECK_SYS(prctl(PR_GET_NAME, name));
	CHECK_STR(name, want);
	CHECK_EQ(tids[i], gettid());
	CHECK_SYS(syscall(SYS_tgkill, getpid(), gettid(), 0));
	return NULL;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	char name[16], want[16];

	CHECK_EQ(gettid(), getpid());
	CHECK_PT(pthread_setname_np(pthread_self(), "the-main-thread"));
	CHECK_PT(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_STR(name, "the-main-thread");
	CHECK_EQ(pthread_getname_np(pthread_self(), name, 3), ERANGE);
	CHECK_EQ(pthread_setname_np(pthread_self(), "longer-than-fifteen"), ERANGE);
	ok("main");

	pthread_barrier_init(&barrier, NULL, NR + 1);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(has_identity, (void *)i);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++) {
		for (int j = 0; j < i; j++)
			CHECK(tids[i] != tids[j]);
		CHECK_SYS(syscall(SYS_tgkill, getpid(), tids[i], 0));
		CHECK_PT(pthread_kill(t[i], 0));
		CHECK_PT(pthread_getname_np(t[i], name, sizeof(name)));
		snprintf(want, sizeof(want), "own-%d", i);
		CHECK_STR(name, want);
		snprintf(want, sizeof(want), "given-%d", i);
		CHECK_PT(pthread_setname_np(t[i], want));
		CHECK_PT(pthread_getname_np(t[i], name, sizeof(name)));
		CHECK_STR(name, want);
	}
	ok("40 unique tids; names of others");
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("names given by main are seen");

	for (int i = 0; i < NR; i++) {
		wait_until_gone(tids[i]);
		CHECK_ERRNO(syscall(SYS_tgkill, getpid(), tids[i], 0), ESRCH);
	}
	CHECK_ERRNO(syscall(SYS_tgkill, getpid(), -1, 0), EINVAL);
	CHECK_ERRNO(syscall(SYS_tgkill, getpid(), getpid(), 65), EINVAL);
	CHECK_PT(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_STR(name, "the-main-thread");
	ok("ended tids are gone");

	pthread_barrier_destroy(&barrier);
	pthread_barrier_init(&barrier, NULL, 2);
	t[0] = start(waits, NULL);
	CHECK_EQ(pthread_kill(t[0], 65), EINVAL);
	pthread_barrier_wait(&barrier);
	join(t[0]);
	return finish();
}
