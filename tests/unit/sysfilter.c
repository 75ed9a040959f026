// SPDX-License-Identifier: Apache-2.0
/* Filters of system calls that the runtime's kernel threads can live under, and others. */
#include "linux/sysfilter.h"
#include "sys/syscall.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "tap.h"

#define NR BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define ARCH BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch))
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

#define LETS(...)                                                                                  \
	__extension__({                                                                            \
		struct sock_filter code_[] = { __VA_ARGS__ };                                      \
		struct sock_fprog prog_ = { ARRAY_LEN(code_), code_ };                             \
		lx_sysfilter_lets_runtime(&prog_);                                                 \
	})

TEST(what_allows_all_lets)
{
	CHECK(LETS(RETURN(SECCOMP_RET_ALLOW)));
	CHECK(LETS(RETURN(SECCOMP_RET_LOG)));
	CHECK(!LETS(RETURN(SECCOMP_RET_KILL_PROCESS)));
	CHECK(!LETS(RETURN(SECCOMP_RET_TRAP)));
	CHECK(!LETS(RETURN(SECCOMP_RET_USER_NOTIF)));
	CHECK(!LETS(RETURN(SECCOMP_RET_ERRNO | 1)));
}

TEST(what_forbids_a_call_that_they_do_not_make_lets)
{
	CHECK(LETS(ARCH, IF(AUDIT_ARCH_X86_64, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), NR,
		   IF(__NR_execve, 0, 1), RETURN(SECCOMP_RET_KILL_PROCESS),
		   RETURN(SECCOMP_RET_ALLOW)));
}

TEST(a_call_that_is_needed_must_be_allowed)
{
	CHECK(!LETS(NR, IF(__NR_futex, 0, 1), RETURN(SECCOMP_RET_ERRNO | 1),
		    RETURN(SECCOMP_RET_ALLOW)));
	CHECK(!LETS(NR, IF(__NR_rt_sigtimedwait, 0, 1), RETURN(SECCOMP_RET_KILL_THREAD),
		    RETURN(SECCOMP_RET_ALLOW)));
}

TEST(one_that_is_tried_may_fail_and_not_kill)
{
	CHECK(LETS(NR, IF(__NR_clone, 0, 1), RETURN(SECCOMP_RET_ERRNO | 1),
		   RETURN(SECCOMP_RET_ALLOW)));
	CHECK(!LETS(NR, IF(__NR_clone, 0, 1), RETURN(SECCOMP_RET_KILL_THREAD),
		    RETURN(SECCOMP_RET_ALLOW)));
	CHECK(!LETS(NR, IF(__NR_mmap, 0, 1), RETURN(SECCOMP_RET_TRACE), RETURN(SECCOMP_RET_ALLOW)));
}

/* The number of futex by all that such a program can compute with. */
TEST(instructions_mean_what_they_mean_to_the_kernel)
{
	const uint32_t nr = __NR_futex, kill = SECCOMP_RET_KILL_PROCESS, allow = SECCOMP_RET_ALLOW;

	CHECK(!LETS(NR, BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4),
		    BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 3), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
		    IF(nr, 0, 1), RETURN(kill), RETURN(allow)));
	CHECK(!LETS(NR, BPF_STMT(BPF_ST, 5), BPF_STMT(BPF_LD | BPF_IMM, 0),
		    BPF_STMT(BPF_LDX | BPF_MEM, 5), BPF_STMT(BPF_MISC | BPF_TXA, 0), IF(nr, 0, 1),
		    RETURN(kill), RETURN(allow)));
	CHECK(!LETS(NR, BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_IMM, nr),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1), RETURN(kill), RETURN(allow)));
	CHECK(!LETS(NR, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, nr, 0, 2),
		    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, nr, 1, 0), RETURN(kill), RETURN(allow)));
	CHECK(!LETS(NR, BPF_STMT(BPF_ALU | BPF_XOR | BPF_K, nr), IF(0, 1, 0),
		    BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), RETURN(kill), RETURN(allow)));
	CHECK(!LETS(NR, BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 2),
		    BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 2), BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, nr),
		    BPF_STMT(BPF_ALU | BPF_NEG, 0), IF(0, 0, 1), RETURN(kill), RETURN(allow)));
	CHECK(!LETS(BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), IF(sizeof(struct seccomp_data), 0, 1),
		    RETURN(kill), RETURN(allow)));
	/* an argument */
	CHECK(!LETS(NR, IF(__NR_clock_gettime, 0, 3),
		    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		    IF(0, 1, 0), RETURN(kill), RETURN(allow)));
	CHECK(LETS(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
		   IF(0, 1, 0), RETURN(kill), RETURN(allow)));
	/* what is computed is returned */
	CHECK(LETS(BPF_STMT(BPF_LD | BPF_IMM, allow), BPF_STMT(BPF_RET | BPF_A, 0)));
}

TEST(what_the_kernel_refuses_does_not_let)
{
	CHECK(!LETS(NR, BPF_JUMP(BPF_JMP | BPF_JA, ~0u, 0, 0), RETURN(SECCOMP_RET_ALLOW)));
	CHECK(!LETS(NR, BPF_JUMP(BPF_JMP | BPF_JA, 4000000000u, 0, 0), RETURN(SECCOMP_RET_ALLOW)));
	CHECK(!LETS(NR));
	/* a division by zero ends in death */
	CHECK(!LETS(BPF_STMT(BPF_LDX | BPF_IMM, 0), BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
		    RETURN(SECCOMP_RET_ALLOW)));
}
