// SPDX-License-Identifier: Apache-2.0
/* Calls that a scope ends when a part is done: the count of that is what the call returns, and the next one fails. */
#include "scope_call_ends.h"
#include "tap.h"

#include <netinet/in.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <weft/scope.h>
#include <weft/weft.h>

static long push(int kind, int fd, size_t bytes)
{
	static char much[1 << 21];
	struct iovec v = { much, bytes };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	off_t at = 0;

	switch (kind) {
	case 0:
		return ret_of(write(fd, much, bytes));
	case 1:
		return ret_of(writev(fd, &v, 1));
	case 2:
		return ret_of(send(fd, much, bytes, MSG_NOSIGNAL));
	case 3:
		return ret_of(sendmsg(fd, &m, MSG_NOSIGNAL));
	default:
		return ret_of(sendfile(fd, file_fd, &at, bytes));
	}
}

TEST(what_was_transferred_is_counted)
{
	IF_REACHED();
	(void)!ftruncate(file_fd, 1 << 21);
	for (int kind = 0; kind < 5; kind++) {
		for (int is_tcp = 0; is_tcp < 3; is_tcp++) {
			const size_t all = 1 << 21;
			int ends[2];
			weft_scope s;
			long ret;

			if (is_tcp == 2 && (kind == 2 || kind == 3))
				continue;
			if (is_tcp == 2)
				(void)!pipe(ends);
			else if (is_tcp == 1)
				socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
			else {
				struct sockaddr_in at;
				socklen_t len = sizeof(at);
				int few = 4096;

				getsockname(listener, (void *)&at, &len);
				ends[1] = socket(AF_INET, SOCK_STREAM, 0);
				setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
				connect(ends[1], (void *)&at, sizeof(at));
				ends[0] = accept(listener, NULL, NULL);
			}
			weft_scope_open(&s, weft_now() + SOON, "partial");
			ret = push(kind, ends[1], all);
			if (ret <= 0 || ret >= (long)all)
				tap_note("kind %d of %d: %ld", kind, is_tcp, ret);
			CHECK(ret > 0 && ret < (long)all);
			weft_scope_close(&s);
			close(ends[0]);
			close(ends[1]);
		}
	}
}

static long recv_all(void)
{
	return ret_of(recv(unix_empty[0], buf, 8, MSG_WAITALL));
}

TEST(a_part_of_MSG_WAITALL_is_returned)
{
	weft_scope s;

	IF_REACHED();
	CHECK_EQ(send(unix_empty[1], "abc", 3, 0), 3);
	weft_scope_open(&s, weft_now() + SOON, "partial");
	CHECK_EQ(recv_all(), 3);
	CHECK_EQ(recv_all(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
}
