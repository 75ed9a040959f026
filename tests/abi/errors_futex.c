// SPDX-License-Identifier: Apache-2.0
/* futex(2): every operation, private and shared, with good and bad arguments. Nobody else waits. */
#include "show.h"

#include <linux/futex.h>

static void *calls(void *arg)
{
	static uint32_t w, w2;
	struct timespec ts = { 0, 1000 }, bad = { 0, 1000000000 }, neg = { -1, 0 }, past = { 0, 0 };
	for (int priv = 0; priv < 2; priv++) {
		int p = priv ? FUTEX_PRIVATE_FLAG : 0;
		printf("private %d\n", priv);
		w = 0;
		w2 = 0;
		SHOW(CALL(futex, &w, FUTEX_WAIT | p, 1, NULL));
		SHOW(CALL(futex, &w, FUTEX_WAIT | p, 0, &ts));
		SHOW(CALL(futex, &w, FUTEX_WAIT | p, 0, &bad));
		SHOW(CALL(futex, &w, FUTEX_WAIT | p, 0, &neg));
		SHOW(CALL(futex, &w, FUTEX_WAIT | p, 0, BAD));
		SHOW(CALL(futex, BAD, FUTEX_WAIT | p, 0, NULL));
		SHOW(CALL(futex, NULL, FUTEX_WAIT | p, 0, &ts));
		SHOW(CALL(futex, KERNEL, FUTEX_WAIT | p, 0, &ts));
		SHOW(CALL(futex, NOT_CANONICAL, FUTEX_WAIT | p, 0, &ts));
		SHOW(CALL(futex, &w, FUTEX_WAIT | FUTEX_CLOCK_REALTIME | p, 1, &ts));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 0, &past, NULL, 1));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME | p, 0, &past, NULL,
			  1));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 0, &past, NULL, 0));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 1, NULL, NULL, 0));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 1, NULL, NULL, 1));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 1, &bad, NULL, 1));
		SHOW(CALL(futex, &w, FUTEX_WAIT_BITSET | p, 1, &neg, NULL, 1));
		SHOW(CALL(futex, &w, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, &w, FUTEX_WAKE | p, 0));
		SHOW(CALL(futex, &w, FUTEX_WAKE | p, -1));
		SHOW(CALL(futex, BAD, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, NULL, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, KERNEL, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, NOT_CANONICAL, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, (void *)4096, FUTEX_WAKE | p, 1));
		SHOW(CALL(futex, &w, FUTEX_WAKE_BITSET | p, 1, NULL, NULL, 0));
		SHOW(CALL(futex, &w, FUTEX_WAKE_BITSET | p, 1, NULL, NULL, 1));
		SHOW(CALL(futex, &w, FUTEX_WAKE | FUTEX_CLOCK_REALTIME | p, 1));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, 1, 1, &w2));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, -1, 1, &w2));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, 1, -1, &w2));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, 1, 1, BAD));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, 1, 1, NULL));
		SHOW(CALL(futex, &w, FUTEX_REQUEUE | p, 1, 1, KERNEL));
		SHOW(CALL(futex, KERNEL, FUTEX_REQUEUE | p, 1, 1, &w2));
		SHOW(CALL(futex, &w, FUTEX_CMP_REQUEUE | p, 1, 1, &w2, 0));
		SHOW(CALL(futex, &w, FUTEX_CMP_REQUEUE | p, 1, 1, &w2, 5));
		SHOW(CALL(futex, NULL, FUTEX_CMP_REQUEUE | p, 1, 1, &w2, 5));
		SHOW(CALL(futex, &w, FUTEX_CMP_REQUEUE | p, 1, 1, NULL, 0));
		SHOW(CALL(futex, &w, FUTEX_CMP_REQUEUE | p, 1, 1, &w, 0));
		for (int op = 0; op < 8; op++)
			for (int cmp = 0; cmp < 8; cmp++) {
				w2 = 3;
				char t[64];
				snprintf(t, 64, "wake_op %d %d", op, cmp);
				errno = 0;
				show(t, CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, &w2,
					     FUTEX_OP(op, 2, cmp, 1)));
				printf("w2 %u\n", w2);
				w2 = 3;
				errno = 0;
				show(t, CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, &w2,
					     FUTEX_OP((op | 8), 2, cmp, 1)));
				printf("w2 %u\n", w2);
				w2 = 3;
				errno = 0;
				show(t, CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, &w2,
					     FUTEX_OP((op | 8), 35, cmp, 1)));
				printf("w2 %u\n", w2);
			}
		w2 = 3;
		SHOW(CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, NULL, FUTEX_OP(0, 2, 0, 1)));
		SHOW(CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, BAD, FUTEX_OP(0, 2, 0, 1)));
		SHOW(CALL(futex, KERNEL, FUTEX_WAKE_OP | p, 1, 1, &w2, FUTEX_OP(0, 2, 0, 1)));
		SHOW(CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1, KERNEL, FUTEX_OP(0, 2, 0, 1)));
		SHOW(CALL(futex, &w, FUTEX_WAKE_OP | p, 1, 1,
			  (void *)((uintptr_t) "ab12cd34ef56" & ~3ul), FUTEX_OP(0, 2, 0, 1)));
		w = 0;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, NULL));
		printf("mine %d\n", (w & FUTEX_TID_MASK) == (uint32_t)my_tid());
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, NULL));
		SHOW(CALL(futex, &w, FUTEX_TRYLOCK_PI | p, 0, NULL));
		SHOW(CALL(futex, &w, FUTEX_UNLOCK_PI | p, 0));
		printf("w %x\n", w);
		SHOW(CALL(futex, &w, FUTEX_UNLOCK_PI | p, 0));
		w = other_tid;
		SHOW(CALL(futex, &w, FUTEX_TRYLOCK_PI | p, 0));
		printf("bits %x\n", w & ~FUTEX_TID_MASK);
		w = other_tid;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, &past));
		printf("bits %x\n", w & ~FUTEX_TID_MASK);
		w = other_tid;
		SHOW(CALL(futex, &w, FUTEX_UNLOCK_PI | p, 0));
		w = dead_tid;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, NULL));
		w = dead_tid;
		SHOW(CALL(futex, &w, FUTEX_TRYLOCK_PI | p, 0, NULL));
		w = FUTEX_OWNER_DIED;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, NULL));
		printf("bits %x\n", w & ~FUTEX_TID_MASK);
		SHOW(CALL(futex, &w, FUTEX_UNLOCK_PI | p, 0));
		w = FUTEX_WAITERS;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, &past));
		w = FUTEX_WAITERS | my_tid();
		SHOW(CALL(futex, &w, FUTEX_UNLOCK_PI | p, 0));
		printf("w %x\n", w);
		w = 0;
		SHOW(CALL(futex, NULL, FUTEX_LOCK_PI | p, 0, NULL));
		SHOW(CALL(futex, BAD, FUTEX_LOCK_PI | p, 0, NULL));
		SHOW(CALL(futex, NULL, FUTEX_UNLOCK_PI | p, 0, NULL));
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, &bad));
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | p, 0, BAD));
		w = 0;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI2 | p, 0, &past));
		w = 0;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI2 | FUTEX_CLOCK_REALTIME | p, 0, &past));
		w = 0;
		SHOW(CALL(futex, &w, FUTEX_LOCK_PI | FUTEX_CLOCK_REALTIME | p, 0, &past));
		SHOW(CALL(futex, &w, 2 | p, 0, NULL));
		SHOW(CALL(futex, &w, 14 | p, 0, NULL));
		SHOW(CALL(futex, &w, 0x200 | p, 0, NULL));
		SHOW(CALL(futex, (char *)&w + 1, 14 | p, 0, NULL));
	}
	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
