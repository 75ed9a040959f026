// SPDX-License-Identifier: Apache-2.0
/* getaddrinfo() against a name server that never answers, in namespaces of its own: a scope ends it. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

/* A loopback of our own, with a name server on it, that resolv.conf names. False: it may not be made here. */
static bool make_silent_server(int *out_fd)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(53) };
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	char path[] = "/tmp/weft-resolv-XXXXXX";
	int fd;

	if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	fd = mkstemp(path);
	CHECK(fd >= 0 && dprintf(fd, "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n") > 0);
	close(fd);
	if (mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL) < 0) {
		unlink(path);
		return false;
	}
	unlink(path);
	*out_fd = socket(AF_INET, SOCK_DGRAM, 0);
	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_EQ(ioctl(*out_fd, SIOCSIFFLAGS, &lo), 0);
	CHECK_EQ(bind(*out_fd, (struct sockaddr *)&any, sizeof(any)), 0);
	return true;
}

TEST(a_name_that_nobody_answers_for_is_given_up_in_time)
{
	weft_time began = weft_now();
	struct addrinfo *found;
	weft_scope s;
	int server, first;

	if (is_native_run())
		SKIP("in native mode scopes reach only functions of libweft");
	if (!make_silent_server(&server))
		SKIP("no right to make namespaces");
	for (int i = 0; i < 3; i++) {
		weft_scope_open(&s, weft_now() + 50 * WEFT_MS, "lookup");
		CHECK(getaddrinfo("nobody.example", "https", NULL, &found) != 0);
		CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
		/* No descriptor is left behind. */
		first = open("/dev/null", O_RDONLY | O_CLOEXEC);
		CHECK_EQ(first, server + 1);
		close(first);
	}
	/* Natively it takes twice five seconds each. */
	CHECK(weft_now() - began < 4 * WEFT_SEC);
	close(server);
}
