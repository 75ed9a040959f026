// SPDX-License-Identifier: Apache-2.0
/*
 * clone3 with arguments of another size than the system's: larger is fine as long as the rest is zero.
 */
#include <sched.h>
#include "check.h"

#include <sched.h>

struct large_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
	uint64_t set_tid, set_tid_size, cgroup;
	uint64_t unknown[8];
};

static long clone3(struct large_args *args, size_t bytes)
{
	return syscall(SYS_clone3, args, bytes);
}

static char stack[65536];

static void *clones(void *arg)
{
	struct large_args args = { .exit_signal = SIGCHLD };
	const size_t sizes[] = { 64, 80, 88, sizeof(args) };

	for (int i = 0; i < 4; i++) {
		long pid = clone3(&args, sizes[i]);
		int status = 0;

		if (pid == 0)
			_exit(7 + i);
		CHECK_SYS(pid);
		CHECK_EQ(waitpid((pid_t)pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7 + i);
	}
	ok("sizes of 64 bytes and more");
	args.unknown[7] = 1;
	CHECK_EQ(clone3(&args, sizeof(args)), -1);
	CHECK_EQ(errno, E2BIG);
	CHECK_EQ(clone3(&args, 63), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK_EQ(clone3(&args, 1 << 20), -1);
	CHECK_EQ(errno, E2BIG);
	/* nor for a thread */
	args.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		     CLONE_SYSVSEM;
	args.exit_signal = 0;
	args.stack = (uintptr_t)stack;
	args.stack_size = sizeof(stack);
	CHECK_EQ(clone3(&args, sizeof(args)), -1);
	CHECK_EQ(errno, E2BIG);
	ok("sizes and contents that are refused");
	return arg;
}

static void *has_no_arguments(void *arg)
{
	CHECK_ERRNO(clone3(NULL, 64), EFAULT);
	CHECK_ERRNO(clone3((struct large_args *)-1l, 64), EFAULT);
	return arg;
}

/* And flags that do not go together. */
static void has_no_stack(void)
{
	struct large_args args = {
		.flags = CLONE_VM | CLONE_VFORK | CLONE_FS | CLONE_NEWNS,
		.exit_signal = SIGCHLD,
		.stack = 4096,
		.stack_size = 4096,
	};

	CHECK_ERRNO(clone3(&args, 64), EINVAL);
}

int main(void)
{
	has_no_arguments(NULL);
	has_no_stack();
	ok("no arguments and no stack, before the first thread");
	join(start(has_no_arguments, NULL));
	ok("no arguments");
	join(start(clones, NULL));
	return finish();
}
