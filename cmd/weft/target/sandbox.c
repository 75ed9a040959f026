// SPDX-License-Identifier: Apache-2.0
/*
 * A seccomp filter; see sandbox.h. It names the calls that are allowed, and refuses the others with EPERM, so that
 * a library that asks for one more goes on without it.
 */
#include "target/sandbox.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const int allowed[] = {
	/* files, and memory */
	SYS_read,
	SYS_pread64,
	SYS_write,
	SYS_writev,
	SYS_pwrite64,
	SYS_close,
	SYS_fstat,
	SYS_newfstatat,
	SYS_lseek,
	SYS_readlink,
	SYS_readlinkat,
	SYS_access,
	SYS_faccessat,
	SYS_faccessat2,
	SYS_statfs,
	SYS_fstatfs,
	SYS_getdents64,
	SYS_fcntl,
	SYS_memfd_create,
	SYS_mmap,
	SYS_munmap,
	SYS_mremap,
	SYS_mprotect,
	SYS_madvise,
	SYS_brk,
	/* time, and ourselves */
	SYS_clock_gettime,
	SYS_clock_nanosleep,
	SYS_nanosleep,
	SYS_gettimeofday,
	SYS_alarm,
	SYS_setitimer,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_sigreturn,
	SYS_restart_syscall,
	SYS_getpid,
	SYS_gettid,
	SYS_getuid,
	SYS_geteuid,
	SYS_getgid,
	SYS_getegid,
	SYS_futex,
	SYS_set_robust_list,
	SYS_rseq,
	SYS_getrandom,
	SYS_sysinfo,
	SYS_uname,
	SYS_exit,
	SYS_exit_group,
	/* the child that makes C++ names readable */
	SYS_socketpair,
	SYS_sendto,
	SYS_recvfrom,
	SYS_poll,
	SYS_wait4,
};

/* Allowed if the argument, masked, has this value. */
static const struct {
	int call, argument;
	uint32_t mask, value;
} conditional[] = {
	{ SYS_openat, 2, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, O_RDONLY },
	{ SYS_ioctl, 1, UINT32_MAX, TCGETS }, /* is the output a terminal? */
	{ SYS_clone, 0, ~(uint32_t)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID), SIGCHLD },
	{ SYS_prctl, 0, UINT32_MAX, PR_SET_PDEATHSIG },
	{ SYS_prlimit64, 0, UINT32_MAX, 0 }, /* our own */
};

#define NR_ALLOWED (sizeof(allowed) / sizeof(allowed[0]))
#define NR_CONDITIONAL (sizeof(conditional) / sizeof(conditional[0]))
#define WORD(field) ((uint32_t)offsetof(struct seccomp_data, field))

void wf_sandbox_enter(void)
{
	struct sock_filter f[8 + 2 * NR_ALLOWED + 6 * NR_CONDITIONAL];
	struct sock_fprog program = { .filter = f };
	size_t n = 0;

	/* Numbers of another kind of program would mean other calls. */
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD(arch));
	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WORD(nr));
	for (size_t i = 0; i < NR_ALLOWED; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)allowed[i], 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	for (size_t i = 0; i < NR_CONDITIONAL; i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      (uint32_t)conditional[i].call, 0, 5);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      WORD(args[conditional[i].argument]));
		f[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K,
						      conditional[i].mask);
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						      conditional[i].value, 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	program.len = (unsigned short)n;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
