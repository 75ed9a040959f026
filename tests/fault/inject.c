// SPDX-License-Identifier: Apache-2.0
/*
 * The n-th of the runtime's own system calls that can fail in a certain way does so.
 *
 * Linked into libweft-run-fault.so only. WEFT_FAULT_FILE names a file that is a struct fault: test_fault.py
 * writes what is to happen and reads how many calls there were. Only what the kernel might do at that point is
 * done: no EAGAIN for data that is there, no EINTR for a call that knows none.
 */
#include "arch/arch.h"
#include "sys/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define FUTEX_COMMAND 127

enum kind {
	KIND_EINTR = 1,
	KIND_ENOMEM,
	KIND_EMFILE,
	KIND_EAGAIN,
	KIND_SHORT,
	KIND_ENOSPC,
	KIND_EPERM,
	KIND_KTHREAD, /* the user's or the group's limit of kernel threads is reached */
	KIND_MPROTECT,
	KIND_REFUSED, /* a filter from before the program began */
};

struct fault {
	uint32_t kind;
	uint32_t nth;   /* 1: the first; 0: none, only count */
	uint32_t times; /* so many from there on */
	uint32_t nr;    /* (a) such calls so far */
};

struct iovec_k {
	char *base;
	size_t len;
};

static struct fault nothing;
static struct fault *fault = &nothing;

/* Before libc's own constructor, like the library's: getenv() knows nothing yet. */
__attribute__((constructor)) static void attach(int argc, char **argv, char **env)
{
	static const char variable[] = "WEFT_FAULT_FILE=";
	const char *name = NULL;
	long fd, p;

	(void)argc;
	(void)argv;
	for (; *env; env++) {
		if (strncmp(*env, variable, sizeof(variable) - 1) == 0)
			name = *env + sizeof(variable) - 1;
	}
	fd = name ? wf_syscall6(__NR_open, (long)name, O_RDWR, 0, 0, 0, 0) : -1;
	p = fd < 0 ? -1
		   : wf_syscall6(__NR_mmap, 0, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED,
				 fd, 0);
	if (fd >= 0)
		(void)wf_syscall6(__NR_close, fd, 0, 0, 0, 0, 0);
	if (p > 0)
		fault = (struct fault *)p;
}

static bool strikes(enum kind kind)
{
	uint32_t n;

	if (fault->kind != kind)
		return false;
	n = __atomic_add_fetch(&fault->nr, 1, __ATOMIC_SEQ_CST);
	return fault->nth && n >= fault->nth && n - fault->nth < fault->times;
}

static bool waits(long nr, long b, long c, long d)
{
	const struct __kernel_timespec *ts = (const void *)(nr == __NR_epoll_pwait2 ? d : c);

	switch (nr) {
	case __NR_futex:
		return (b & FUTEX_COMMAND) == FUTEX_WAIT;
	case __NR_io_uring_enter:
		return c;
	case __NR_epoll_pwait2:
	case __NR_rt_sigtimedwait:
		return !ts || ts->tv_sec || ts->tv_nsec;
	default:
		return false;
	}
}

static bool makes_descriptor(long nr, long b)
{
	switch (nr) {
	case __NR_fcntl:
		return b == F_DUPFD_CLOEXEC;
	case __NR_epoll_create1:
	case __NR_eventfd2:
	case __NR_timerfd_create:
	case __NR_memfd_create:
	case __NR_io_uring_setup:
		return true;
	default:
		return false;
	}
}

static bool registers(long nr, long b)
{
	return nr == __NR_epoll_ctl && b == 1 /* EPOLL_CTL_ADD */;
}

/* A standard signal always has its bit; what comes with a siginfo or is one of many needs a place. */
static bool queues_signal(long nr, long c)
{
	return (nr == __NR_tgkill && c >= 32) || nr == __NR_rt_tgsigqueueinfo ||
	       nr == __NR_rt_sigqueueinfo;
}

/* A read of a file from the page cache, which may have none or only the first part of it. */
static bool reads_cache(long nr, long fd, long flags)
{
	return nr == __NR_preadv2 && flags == RWF_NOWAIT &&
	       wf_syscall6(__NR_lseek, fd, 0, SEEK_CUR, 0, 0, 0) >= 0;
}

static bool may_be_refused(long nr)
{
	switch (nr) {
	case __NR_sigaltstack:
	case __NR_membarrier:
	case __NR_madvise:
	case __NR_rseq:
	case __NR_prlimit64:
	case __NR_eventfd2:
	case __NR_epoll_create1:
	case __NR_timerfd_create:
		return true;
	default:
		return false;
	}
}

long wf_fault_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	if (waits(nr, b, c, d) && strikes(KIND_EINTR))
		return -EINTR;
	if ((nr == __NR_mmap || nr == __NR_io_uring_register || registers(nr, b)) &&
	    strikes(KIND_ENOMEM))
		return -ENOMEM;
	if (registers(nr, b) && strikes(KIND_ENOSPC))
		return -ENOSPC;
	if ((nr == __NR_timerfd_settime || nr == __NR_io_uring_enter) && strikes(KIND_EPERM))
		return -EPERM; /* a filter that the program has set */
	if (nr == __NR_mprotect && strikes(KIND_MPROTECT))
		return -ENOMEM;
	if (may_be_refused(nr) && strikes(KIND_REFUSED))
		return -EPERM;
	if (makes_descriptor(nr, b) && strikes(KIND_EMFILE))
		return -EMFILE;
	if ((queues_signal(nr, c) || nr == __NR_io_uring_enter) && strikes(KIND_EAGAIN))
		return -EAGAIN;
	if (reads_cache(nr, a, f) && strikes(KIND_EAGAIN))
		return -EAGAIN;
	if (nr == __NR_sendto && c > 1 && strikes(KIND_SHORT))
		c = 1;
	if ((nr == __NR_pwritev2 || reads_cache(nr, a, f)) && c == 1 &&
	    ((struct iovec_k *)b)->len > 1 && strikes(KIND_SHORT)) {
		struct iovec_k one = { ((struct iovec_k *)b)->base, 1 };

		return wf_syscall6(nr, a, (long)&one, 1, d, e, f);
	}
	return wf_syscall6(nr, a, b, c, d, e, f);
}

/* ld --wrap: what is not made through the macros. */
long __real_wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention);
long __wrap_wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention);
long __wrap_wf_arch_raw_call(long nr, const long args[6], const uint32_t *attention)
{
	return strikes(KIND_EINTR) ? -EINTR : __real_wf_arch_raw_call(nr, args, attention);
}

long __real_wf_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid);
long __wrap_wf_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid);
long __wrap_wf_arch_spawn_kthread(void *stack_top, void (*fn)(void *), void *arg, int *out_tid)
{
	return strikes(KIND_EAGAIN) || strikes(KIND_KTHREAD)
		       ? -EAGAIN
		       : __real_wf_arch_spawn_kthread(stack_top, fn, arg, out_tid);
}
