// SPDX-License-Identifier: Apache-2.0
/*
 * Programs that limit themselves before their first thread, or after: no text becomes executable any more
 * (PR_SET_MDWE), and filters of system calls (seccomp) that refuse what weft would have to do.
 */
#include "library.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#define REFUSE_EXEC_GAIN 1

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turns;

static void *takes_turns(void *arg)
{
	int mine = (int)(intptr_t)arg;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < 100; i++) {
		while (turns % 2 != mine)
			pthread_cond_wait(&cond, &lock);
		turns++;
		pthread_cond_signal(&cond);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void use_threads(void)
{
	pthread_t a = start(takes_turns, (void *)0), b = start(takes_turns, (void *)1);

	join(a);
	join(b);
	CHECK_EQ(turns % 200, 0);
	CHECK(turns > 0);
}

static void limit_text(void)
{
	if (prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) < 0)
		CHECK_EQ(errno, EINVAL);
}

/* mprotect() that makes something executable: EPERM; epoll_create1(): the end. */
static void filter_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_create1, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter));
}

static void text_before(void)
{
	limit_text();
	use_threads();
	ok("no text may be written, before the first thread");
}

static void text_after(void)
{
	char path[PATH_MAX + 64];
	struct lib_syscalls lib;

	use_threads();
	limit_text();
	library_path(path, "lib_syscalls.so");
	library_open(&lib, path);
	CHECK_EQ(lib.call(SYS_getppid, 0, 0, 0, 0), getppid());
	use_threads();
	ok("no text may be written, after it");
}

static void calls_before(void)
{
	filter_calls();
	use_threads();
	ok("calls are filtered, before the first thread");
}

static void in_child(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		run();
		exit(finish());
	}
	CHECK_SYS(pid);
	reap(pid);
}

int main(void)
{
	in_child(text_before);
	in_child(text_after);
	in_child(calls_before);
	return finish();
}
