// SPDX-License-Identifier: Apache-2.0
/*
 * A filter of system calls, and the runtime's own kernel threads: it is asked before it is in force, since one that
 * kills for a call that it does not know would end the process at the next one of theirs.
 *
 * Called by: sandbox.c. The kernel's rules for such programs are few (no loops, words of struct seccomp_data only), and what
 * breaks one of them it refuses itself.
 */
#include "arch/arch.h"
#include "linux/abi.h"
#include "linux/sysfilter.h"
#include "sched/preempt.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>

struct call {
	int nr;
	uint32_t at, value; /* one of its arguments; the others are 0 */
};

#define PRIVATE(op) (FUTEX_##op | FUTEX_PRIVATE_FLAG)
#define PROT_READ_WRITE 3
#define CLOCK_MONOTONIC 1

/* The calls of those that run no thread: they wait, wake, keep the time, take signals, and end. */
static const struct call needed[] = {
	{ __NR_clock_gettime, 0, CLOCK_MONOTONIC },
	{ __NR_epoll_ctl, 1, 3 /* EPOLL_CTL_MOD */ },
	{ __NR_epoll_pwait2, 2, 64 },
	{ __NR_exit, 0, 0 },
	{ __NR_futex, 1, PRIVATE(WAIT) },
	{ __NR_futex, 1, PRIVATE(WAKE) },
	{ __NR_nanosleep, 0, 0 },
	{ __NR_rt_sigprocmask, 0, SIG_SETMASK },
	{ __NR_rt_sigreturn, 0, 0 },
	{ __NR_rt_sigtimedwait, 3, sizeof(uint64_t) },
	{ __NR_sched_yield, 0, 0 },
	{ __NR_tgkill, 2, WF_SIG_KICK },
	{ __NR_timerfd_settime, 1, 1 /* TFD_TIMER_ABSTIME */ },
};

/* Calls that they can do without, or are told of when one fails. */
static const struct call tried[] = {
	{ __NR_clone, 0, CLONE_VM | CLONE_THREAD },
	{ __NR_epoll_pwait, 2, 64 },
	{ __NR_fcntl, 1, 1 /* F_GETFD */ },
	{ __NR_getpid, 0, 0 },
	{ __NR_gettid, 0, 0 },
	{ __NR_io_uring_enter, 0, 0 },
	{ __NR_madvise, 2, 4 /* MADV_DONTNEED */ },
	{ __NR_membarrier, 0, 8 /* PRIVATE_EXPEDITED */ },
	{ __NR_mmap, 2, PROT_READ_WRITE },
	{ __NR_mprotect, 2, PROT_READ_WRITE },
	{ __NR_munmap, 0, 0 },
	{ __NR_read, 0, 0 },
	{ __NR_rseq, 2, 0 },
	{ __NR_rt_sigqueueinfo, 0, 0 },
	{ __NR_rt_tgsigqueueinfo, 0, 0 },
	{ __NR_sched_getattr, 0, 0 },
	{ __NR_sched_setattr, 0, 0 },
	{ __NR_sigaltstack, 0, 0 },
	{ __NR_timer_delete, 0, 0 },
	{ __NR_timer_gettime, 0, 0 },
	{ __NR_write, 0, 0 },
};

struct machine {
	uint32_t a, x, memory[BPF_MEMWORDS];
};

static uint32_t alu(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0; /* the kernel refuses a constant 0 */
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return a << (b & 31);
	case BPF_RSH:
		return a >> (b & 31);
	default:
		return -a;
	}
}

static bool jumps(uint16_t op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return a & b;
	}
}

static uint32_t load(const struct machine *m, const struct sock_filter *i,
		     const struct seccomp_data *data)
{
	switch (BPF_MODE(i->code)) {
	case BPF_IMM:
		return i->k;
	case BPF_MEM:
		return m->memory[i->k % BPF_MEMWORDS];
	case BPF_ABS:
		return i->k <= sizeof(*data) - 4 ? *(const uint32_t *)((const char *)data + i->k)
						 : 0;
	default:
		return sizeof(*data);
	}
}

/* One that does not jump or return. */
static void step(struct machine *m, const struct sock_filter *i, const struct seccomp_data *data)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		m->a = load(m, i, data);
		break;
	case BPF_LDX:
		m->x = load(m, i, data);
		break;
	case BPF_ST:
		m->memory[i->k % BPF_MEMWORDS] = m->a;
		break;
	case BPF_STX:
		m->memory[i->k % BPF_MEMWORDS] = m->x;
		break;
	case BPF_ALU:
		m->a = alu(BPF_OP(i->code), m->a, BPF_SRC(i->code) == BPF_X ? m->x : i->k);
		break;
	default:
		if (BPF_MISCOP(i->code) == BPF_TXA)
			m->a = m->x;
		else
			m->x = m->a;
	}
}

static uint32_t verdict(const struct sock_fprog *prog, const struct call *call)
{
	struct seccomp_data data = { .nr = call->nr, .arch = AUDIT_ARCH_X86_64 };
	struct machine m = { 0 };
	struct sock_filter i;

	data.args[call->at] = call->value;
	for (uint32_t at = 0; at < prog->len; at++) {
		if (wf_arch_copy(&i, prog->filter + at, sizeof(i)) < 0)
			break;
		if (BPF_CLASS(i.code) == BPF_RET)
			return (BPF_RVAL(i.code) == BPF_A ? m.a : i.k) & SECCOMP_RET_ACTION_FULL;
		if (i.code == (BPF_ALU | BPF_DIV | BPF_X) && !m.x)
			break;
		if (BPF_CLASS(i.code) != BPF_JMP)
			step(&m, &i, &data);
		else if (BPF_OP(i.code) == BPF_JA)
			at = WF_MIN(i.k, prog->len) + at;
		else
			at += jumps(BPF_OP(i.code), m.a, BPF_SRC(i.code) == BPF_X ? m.x : i.k)
				      ? i.jt
				      : i.jf;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static bool is_allowed(uint32_t action)
{
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

bool lx_sysfilter_lets_runtime(const void *user)
{
	struct sock_fprog prog;

	if (wf_arch_copy(&prog, user, sizeof(prog)) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (!is_allowed(verdict(&prog, &needed[i])))
			return false;
	for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
		uint32_t action = verdict(&prog, &tried[i]);

		/* Where the program uses the base register itself nothing goes without its answer. */
		if (!is_allowed(action) && (action != SECCOMP_RET_ERRNO ||
					    (tried[i].nr == __NR_gettid &&
					     wf_load_acquire(&wf_arch_gate_on) == WF_GATE_SHARED)))
			return false;
	}
	return true;
}

bool lx_sysfilter_lets_say(const void *user)
{
	const struct call say = { __NR_write, 0, 2 };
	struct sock_fprog prog;
	uint32_t action;

	if (wf_arch_copy(&prog, user, sizeof(prog)) < 0)
		return true;
	action = verdict(&prog, &say);
	return is_allowed(action) || action == SECCOMP_RET_ERRNO;
}
