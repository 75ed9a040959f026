// SPDX-License-Identifier: Apache-2.0
/*
 * Threads wait in page faults for one that serves them, by poll() and by read(): more of them than there are workers.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include "check.h"

#define NR 8
#define ROUNDS 3
#define PAGE ((size_t)4096)

static char *pages;
static int fd;

static void *touches(void *arg)
{
	char *page = arg;

	CHECK_EQ(*(volatile char *)page, 'a' + (page - pages) / (long)PAGE % 26);
	return NULL;
}

/* The same fault may be told twice: a signal interrupts it. */
static void *serves(void *arg)
{
	static char source[PAGE] __attribute__((aligned(4096)));
	int nr_served = 0;

	while (nr_served < NR) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct uffdio_copy copy = { .src = (uintptr_t)source, .len = PAGE };
		struct uffd_msg msg;

		if (arg)
			CHECK_SYS(poll(&p, 1, -1));
		if (read(fd, &msg, sizeof(msg)) != sizeof(msg)) {
			CHECK_EQ(errno, EAGAIN);
			continue;
		}
		CHECK_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
		copy.dst = msg.arg.pagefault.address & ~(PAGE - 1);
		memset(source, 'a' + (int)((copy.dst - (uintptr_t)pages) / PAGE % 26), PAGE);
		if (ioctl(fd, UFFDIO_COPY, &copy) == 0)
			nr_served++;
		else
			CHECK_EQ(errno, EEXIST);
	}
	return NULL;
}

static int open_userfault(int flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY | flags);
	if (fd < 0)
		return 0; /* not here */
	pages = mmap(NULL, NR * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	range.range.start = (uintptr_t)pages;
	range.range.len = NR * PAGE;
	CHECK_SYS(ioctl(fd, UFFDIO_API, &api));
	CHECK_SYS(ioctl(fd, UFFDIO_REGISTER, &range));
	return 1;
}

static int round_of_faults(int flags)
{
	pthread_t t[NR + 1];

	if (!open_userfault(flags))
		return 0;
	t[NR] = start(serves, flags ? &fd : NULL);
	for (int i = 0; i < NR; i++)
		t[i] = start(touches, pages + (size_t)i * PAGE);
	for (int i = 0; i <= NR; i++)
		join(t[i]);
	close(fd);
	munmap(pages, NR * PAGE);
	return 1;
}

int main(void)
{
	if (!round_of_faults(O_NONBLOCK))
		return EXIT_SKIP;
	for (int i = 0; i < ROUNDS; i++) {
		round_of_faults(O_NONBLOCK);
		round_of_faults(0);
	}
	ok("faults that threads serve");
	return finish();
}
