// SPDX-License-Identifier: Apache-2.0
/*
 * A program that makes system calls without libc, from its own text: with and without call frame information,
 * with numbers that are known before and that are not.
 */
#include "check.h"
#include "lib_syscalls.c"

#include <linux/futex.h>

#define NR 6

static unsigned word;
static int nr_waiting, fds[2];

static void check_identity(void)
{
	CHECK_EQ(lib_gettid(), gettid());
	CHECK_EQ(lib_gettid_bare(), gettid());
	CHECK_EQ(lib_call(SYS_gettid, 0, 0, 0, 0), gettid());
}

static void *waits(void *arg)
{
	check_identity();
	ADD(&nr_waiting, 1);
	while (LOAD(&word) == 0)
		(void)lib_futex_wait(&word, 0);
	return arg;
}

static void *reads(void *arg)
{
	char c = 0;

	CHECK_EQ(lib_read(fds[0], &c, 1), 1);
	return arg;
}

int main(void)
{
	pthread_t t[NR];

	CHECK_EQ(lib_gettid_at_load(), gettid());
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	while (LOAD(&nr_waiting) < NR)
		sched_yield();
	let_others_block();
	STORE(&word, 1);
	CHECK_SYS(syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, NR));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("futex wait");
	CHECK_SYS(pipe(fds));
	for (int i = 0; i < NR; i++)
		t[i] = start(reads, NULL);
	let_others_block();
	CHECK_EQ(write(fds[1], "123456", NR), NR);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	check_identity();
	ok("read");
	return finish();
}
