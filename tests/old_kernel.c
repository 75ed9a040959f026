// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a program, and whatever that starts, as on an old kernel or in a container: what weft uses where it can is not
 * there. Each of these has another way, which is to be as good.
 *
 *	old_kernel PROGRAM [ARGUMENT]...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NR_IO_URING_SETUP 425
#define RWF_NOWAIT 8
#define MADV_GUARD_INSTALL 102

#define CALL offsetof(struct seccomp_data, nr)
#define ARG(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
/* The next so many instructions are for k only. */
#define SKIP_UNLESS(k, nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, nr)
#define SKIP_UNLESS_BIT(k, nr) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, k, 0, nr)
#define ANSWER(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

int main(int argc, char **argv)
{
	struct sock_filter code[] = {
		LOAD(CALL),
		/* refused by most containers */
		SKIP_UNLESS(NR_IO_URING_SETUP, 1),
		ANSWER(EPERM),
		/* Linux 6.13 */
		SKIP_UNLESS(SYS_madvise, 3),
		LOAD(ARG(2)),
		SKIP_UNLESS(MADV_GUARD_INSTALL, 1),
		ANSWER(EINVAL),
		LOAD(CALL),
		/* pipes know the flag since Linux 6.5, other kinds of files never */
		SKIP_UNLESS(SYS_preadv2, 3),
		LOAD(ARG(5)),
		SKIP_UNLESS_BIT(RWF_NOWAIT, 1),
		ANSWER(EOPNOTSUPP),
		LOAD(CALL),
		SKIP_UNLESS(SYS_pwritev2, 3),
		LOAD(ARG(5)),
		SKIP_UNLESS_BIT(RWF_NOWAIT, 1),
		ANSWER(EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (argc < 2)
		return 2;
	/* One that may set a filter as it is need not give up more for it. */
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) &&
	    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	     prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))) {
		printf("1..0 # SKIP no filter can be set\n");
		return 0;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 126;
}
