// SPDX-License-Identifier: Apache-2.0
/*
 * Threads made by clone(2) itself, of which libc knows nothing: before the first of libc's threads, and beside them.
 * They share the thread-local storage of who made them, or have a block of their own; so nothing here uses errno.
 */
#include "check.h"

#include <asm/prctl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define STACK_BYTES 65536
#define TURNS 2000
#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |        \
	 CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)

struct raw {
	pid_t told; /* CLONE_PARENT_SETTID */
	pid_t tid;  /* CLONE_CHILD_SETTID; 0 when it has ended */
	pid_t own;  /* what gettid() says there */
	pid_t process;
	int fds[2];
	uint32_t turn;
	unsigned char got;
	int handled_by;
	unsigned long fs;
	char *stack;
	char rseq[32] __attribute__((aligned(32)));
	long rseq_rets[4];
};

static long call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
}

static void wait_while(void *word, uint32_t value, int private)
{
	while (__atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE) == value)
		(void)call(SYS_futex, (long)word, FUTEX_WAIT | private, value, 0);
}

static void give_turn(struct raw *r, uint32_t next)
{
	STORE(&r->turn, next);
	(void)call(SYS_futex, (long)&r->turn, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0);
}

/* An area for restartable sequences, which nobody has given it. */
static void use_rseq(struct raw *r)
{
	static const int flags[4] = { 0, 0, 1, 1 }; /* 1: takes it back */

	for (int i = 0; i < 4; i++)
		r->rseq_rets[i] = call(SYS_rseq, (long)r->rseq, sizeof(r->rseq), flags[i],
				       0x12345678);
}

static int runs(void *arg)
{
	struct raw *r = arg;

	r->own = (pid_t)call(SYS_gettid, 0, 0, 0, 0);
	r->process = (pid_t)call(SYS_getpid, 0, 0, 0, 0);
	(void)call(SYS_arch_prctl, ARCH_GET_FS, (long)&r->fs, 0, 0);
	use_rseq(r);
	(void)call(SYS_read, r->fds[0], (long)&r->got, 1, 0);
	for (uint32_t i = 0; i < TURNS; i++) {
		wait_while(&r->turn, 0, FUTEX_PRIVATE_FLAG);
		give_turn(r, 0);
	}
	wait_while(&r->handled_by, 0, FUTEX_PRIVATE_FLAG);
	return 0;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct raw *r = info->si_value.sival_ptr;

	(void)sig;
	(void)context;
	STORE(&r->handled_by, (int)call(SYS_gettid, 0, 0, 0, 0));
}

/* With tls, the thread has a block of its own: libc's functions are not for it. */
static void begin(struct raw *r, void *tls)
{
	int flags = THREAD_FLAGS | (tls ? CLONE_SETTLS : 0);

	*r = (struct raw){ .tid = -1 };
	CHECK_SYS(pipe(r->fds));
	r->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	CHECK_SYS(clone(runs, r->stack + STACK_BYTES, flags, r, &r->told, tls, &r->tid));
}

static void end(struct raw *r, unsigned long fs)
{
	siginfo_t info = { .si_code = SI_QUEUE, .si_value.sival_ptr = r };
	pid_t tid = r->told;

	CHECK(tid > 0 && tid != getpid());
	CHECK_EQ(write(r->fds[1], "x", 1), 1);
	for (uint32_t i = 0; i < TURNS; i++) {
		give_turn(r, 1);
		wait_while(&r->turn, 1, FUTEX_PRIVATE_FLAG);
	}
	CHECK_SYS(syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, SIGUSR1, &info));
	wait_while(&r->tid, (uint32_t)tid, 0); /* the kernel wakes the futex as a shared one */
	CHECK_EQ(r->tid, 0);
	CHECK_EQ(r->own, tid);
	CHECK_EQ(r->process, getpid());
	CHECK_EQ(r->got, 'x');
	CHECK_EQ(r->handled_by, tid);
	CHECK_EQ(r->fs, fs);
	if (r->rseq_rets[0] != -ENOSYS && r->rseq_rets[0] != -EPERM) {
		CHECK_EQ(r->rseq_rets[0], 0);
		CHECK_EQ(r->rseq_rets[1], -EBUSY);
		CHECK_EQ(r->rseq_rets[2], 0);
		CHECK_EQ(r->rseq_rets[3], -EINVAL);
	}
	wait_until_gone(tid);
	munmap(r->stack, STACK_BYTES);
	close(r->fds[0]);
	close(r->fds[1]);
}

static unsigned long my_fs(void)
{
	unsigned long fs = 0;

	CHECK_SYS(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs));
	return fs;
}

static void *makes_one(void *arg)
{
	struct raw r;

	begin(&r, NULL);
	end(&r, my_fs());
	return arg;
}

int main(void)
{
	static unsigned long block[16];
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO };
	struct raw many[8];
	pthread_t t;

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	makes_one(NULL);
	ok("the first thread, with the thread-local storage of main");

	block[0] = (unsigned long)block;
	begin(&many[0], block);
	end(&many[0], (unsigned long)block);
	ok("one with a block of its own");

	t = start(makes_one, NULL);
	for (int i = 0; i < 8; i++)
		begin(&many[i], NULL);
	for (int i = 0; i < 8; i++)
		end(&many[i], my_fs());
	join(t);
	ok("several, beside those of libc");
	return finish();
}
