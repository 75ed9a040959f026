// SPDX-License-Identifier: Apache-2.0
/* Scopes of a program that has made no thread: they reach into libc all the same, where weft runs it. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

TEST(the_first_scope_of_a_program_without_threads_ends_its_calls)
{
	struct pollfd never;
	weft_scope s;
	int fds[2];

	if (is_native_run())
		SKIP("in native mode scopes reach only functions of libweft");
	CHECK_EQ(pipe(fds), 0);
	never = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	weft_scope_open(&s, weft_now() + 20 * WEFT_MS, "alone");
	errno = 0;
	CHECK_EQ(poll(&never, 1, -1), -1);
	CHECK_EQ(errno, ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	CHECK_EQ(close(fds[0]) + close(fds[1]), 0);
}
