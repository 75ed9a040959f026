// SPDX-License-Identifier: Apache-2.0
/*
 * Threads wait in page faults for one that serves them, by poll() and by read(): more of them than there are workers.
 * Some fault in system calls.
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
static int fd, flags;

static char content_of(const char *page)
{
	return (char)('a' + (page - pages) / (long)PAGE % 26);
}

static void *touches(void *arg)
{
	char *page = arg;

	CHECK_EQ(*(volatile char *)page, content_of(page));
	return NULL;
}

static void *receives(void *arg)
{
	char *page = arg;
	int p[2];

	CHECK_SYS(pipe(p));
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(read(p[0], page + 1, 1), 1);
	CHECK_EQ(page[0], content_of(page));
	CHECK_EQ(page[1], 'x');
	close(p[0]);
	close(p[1]);
	return NULL;
}

static void *sleeps(void *arg)
{
	char *page = arg;
	const struct timespec *ts = arg;

	CHECK_ERRNO(syscall(SYS_nanosleep, ts, NULL), EINVAL);
	CHECK_EQ(page[0], content_of(page));
	return NULL;
}

/* Not seen by what has replaced libc's calls, before there are threads. */
static long make_inline(long fd_flags)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(SYS_userfaultfd), "D"(fd_flags)
			 : "rcx", "r11", "memory");
	return ret;
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

static int open_userfault(int is_inline)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	fd = (int)(is_inline ? make_inline(O_CLOEXEC | flags)
			     : syscall(SYS_userfaultfd, O_CLOEXEC | flags));
	if (fd < 0)
		return 0; /* not here, or not for everybody */
	pages = mmap(NULL, NR * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
	range.range.start = (uintptr_t)pages;
	range.range.len = NR * PAGE;
	CHECK_SYS(ioctl(fd, UFFDIO_API, &api));
	CHECK_SYS(ioctl(fd, UFFDIO_REGISTER, &range));
	return 1;
}

static int round_of_faults(int is_inline, void *(*faults)(void *))
{
	pthread_t t[NR + 1];

	if (!open_userfault(is_inline))
		return 0;
	t[NR] = start(serves, flags & O_NONBLOCK ? &fd : NULL);
	for (int i = 0; i < NR; i++)
		t[i] = start(faults, pages + (size_t)i * PAGE);
	for (int i = 0; i <= NR; i++)
		join(t[i]);
	close(fd);
	munmap(pages, NR * PAGE);
	return 1;
}

static void in_child(int is_inline)
{
	pid_t pid = fork();

	if (pid == 0) {
		round_of_faults(is_inline, touches);
		_exit(finish());
	}
	reap(pid);
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	flags = O_NONBLOCK | UFFD_USER_MODE_ONLY;
	if (!open_userfault(1))
		return EXIT_SKIP;
	close(fd);
	in_child(0);
	in_child(1);
	join(start(nothing, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		flags = O_NONBLOCK | UFFD_USER_MODE_ONLY;
		round_of_faults(0, touches);
		flags = UFFD_USER_MODE_ONLY;
		round_of_faults(0, touches);
	}
	ok("faults that threads serve");
	flags = O_NONBLOCK;
	round_of_faults(0, receives);
	round_of_faults(0, sleeps);
	ok("in system calls");
	return finish();
}
