// SPDX-License-Identifier: Apache-2.0
/*
 * A process that shares our memory and runs beside us, as leak checkers and sandboxes make them: it waits
 * for a private futex that a thread wakes.
 */
#include "check.h"

#include <linux/futex.h>
#include <sched.h>

#define STACK_BYTES 65536

static char stack[STACK_BYTES] __attribute__((aligned(16)));
static unsigned word, done;

static long futex(unsigned *p, int op, unsigned value)
{
	long ret;
	register long r10 __asm__("r10") = 0;

	/* Not through libc: the child has our thread pointer, and errno with it. */
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(SYS_futex), "D"(p), "S"(op | FUTEX_PRIVATE_FLAG), "d"(value),
			   "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static int waits(void *arg)
{
	(void)arg;
	STORE(&done, 1);
	while (LOAD(&word) == 0)
		(void)futex(&word, FUTEX_WAIT, 0);
	return 0;
}

static void *wakes(void *arg)
{
	int pid = clone(waits, stack + STACK_BYTES, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD,
			NULL);

	CHECK_SYS(pid);
	while (!LOAD(&done))
		sched_yield();
	let_others_block();
	STORE(&word, 1);
	CHECK(futex(&word, FUTEX_WAKE, 1) >= 0);
	reap(pid);
	return arg;
}

int main(void)
{
	join(start(wakes, NULL));
	ok("woken by a thread");
	return finish();
}
