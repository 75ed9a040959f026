// SPDX-License-Identifier: Apache-2.0
/* errno is what the last call of this thread has left there, at an address that the compiler may keep. */
#include "rules.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static void keeps_errno(int nr)
{
	int *const where = &errno;
	const pthread_t self = pthread_self();

	for (int i = 0; i < 40; i++) {
		errno = 1000 + nr;
		rule_wait();
		CHECK_EQ(errno, 1000 + nr);
		CHECK(close(-1) < 0);
		rule_wait();
		CHECK_EQ(errno, EBADF);
		/* The fibers of a thread share its errno, so only a place is kept here. */
		rule_turn();
		CHECK(&errno == where);
		CHECK(pthread_equal(pthread_self(), self));
	}
}

RULE(errno_is_kept, keeps_errno, 0)
