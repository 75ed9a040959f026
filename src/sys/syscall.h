// SPDX-License-Identifier: Apache-2.0
/*
 * Raw Linux: every function returns >= 0 or -errno and never sets errno.
 */
#ifndef WF_SYS_SYSCALL_H
#define WF_SYS_SYSCALL_H

#include "arch/arch.h"

#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/time_types.h>

/* Younger than the oldest headers that we build with. */
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#define __NR_futex_wait 455
#define __NR_futex_requeue 456
#endif
#ifndef __NR_lsm_set_self_attr
#define __NR_lsm_set_self_attr 460
#endif

#define WF_NR_SIGNALS 64

struct epoll_event;

/* The kernel's signal action, as rt_sigaction(2) takes it on x86-64. */
struct sys_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};
#define SYS_SA_RESTORER 0x04000000ul

#ifdef WF_FAULT
/* tests/fault: any call of the runtime's own may be made to fail. */
long wf_fault_syscall(long nr, long a, long b, long c, long d, long e, long f);
#define WF_SYSCALL wf_fault_syscall
#else
#define WF_SYSCALL wf_syscall6
#endif

#define sys0(nr) WF_SYSCALL((nr), 0, 0, 0, 0, 0, 0)
#define sys1(nr, a) WF_SYSCALL((nr), (long)(a), 0, 0, 0, 0, 0)
#define sys2(nr, a, b) WF_SYSCALL((nr), (long)(a), (long)(b), 0, 0, 0, 0)
#define sys3(nr, a, b, c) WF_SYSCALL((nr), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys4(nr, a, b, c, d) WF_SYSCALL((nr), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys5(nr, a, b, c, d, e)                                                                    \
	WF_SYSCALL((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define sys6(nr, a, b, c, d, e, f)                                                                 \
	WF_SYSCALL((nr), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* The error in what a raw call returned that may also be an address; or 0. */
WF_INLINE long sys_failed(long ret)
{
	return (unsigned long)ret > -4096ul ? ret : 0;
}

WF_INLINE long sys_protect(uintptr_t start, uintptr_t end, int prot)
{
	return sys3(__NR_mprotect, start, end - start, prot);
}

/*
 * Anonymous private memory, zeroed; NULL when there is none. Reserves address space only. It lies apart from where the
 * kernel puts the program's mappings: what a program has unmapped stays free until it maps there again, and if it does
 * so with MAP_FIXED it must not find us there.
 */
void *sys_map(size_t bytes);
/* Addresses only, of which a part is made memory by sys_commit(): mlockall() would fill what can be written. */
void *sys_reserve(size_t bytes);
long sys_commit(void *p, size_t bytes);
void sys_unmap(void *p, size_t bytes);
/*
 * So many of a table's objects as the process may have at all, each of which comes with at least so many bytes of other
 * memory: most, or fewer by the limit of its addresses (RLIMIT_AS); in whole steps.
 */
uint32_t sys_room_for(size_t bytes_beside, uint32_t step, uint32_t most);

WF_INLINE long sys_write(int fd, const void *p, size_t n)
{
	return sys3(__NR_write, fd, p, n);
}

WF_INLINE long sys_close(int fd)
{
	return sys1(__NR_close, fd);
}

/* Private futex wait; timeout_ns < 0 waits for ever. 0, -EAGAIN, -EINTR, -ETIMEDOUT. */
long sys_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns);
long sys_futex_wake(uint32_t *word, int n);

/*
 * One turn of a wait for another kernel thread: spins at first, then yields, and at last sleeps, since one with a
 * real-time priority keeps the processor from whom it waits for however often it yields.
 */
void sys_relax(uint32_t round);

WF_INLINE long sys_sigprocmask(int how, const uint64_t *set, uint64_t *old)
{
	return sys4(__NR_rt_sigprocmask, how, set, old, sizeof(*set));
}

WF_INLINE long sys_sigaction(int sig, const struct sys_sigaction *act, struct sys_sigaction *old)
{
	return sys4(__NR_rt_sigaction, sig, act, old, sizeof(uint64_t));
}

WF_INLINE long sys_tgkill(int pid, int tid, int sig)
{
	return sys3(__NR_tgkill, pid, tid, sig);
}

/*
 * CLOCK_MONOTONIC in nanoseconds. A system call, not the vDSO: a kick that lands in vDSO code could not tell
 * our call from the program's, unless it is marked: wf_now() does that.
 */
int64_t sys_now(void);
/* Any clock; -errno for a bad one. */
long sys_clock_read(int clock, int64_t *out_ns);

#endif
