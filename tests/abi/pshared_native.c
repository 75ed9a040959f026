// SPDX-License-Identifier: Apache-2.0
/*
 * Locks and the like shared with a process that runs natively, since it was executed with an empty environment: each
 * side waits for the other, and the other may be killed. Of locks that inherit priorities, which the kernel owns, the
 * native side is the owner: see docs/limits.md.
 */
#include <semaphore.h>
#include <sys/mman.h>

#include "check.h"

#define NR_THREADS 3
#define NR_ROUNDS 50
#define SHARED_FD 100
#define SHARED_BYTES 4096

static struct shared {
	pthread_mutex_t plain, robust, inherits, robust_inherits;
	pthread_cond_t cond;
	pthread_rwlock_t rwlock;
	pthread_barrier_t barrier;
	sem_t sem, back, holds, may_go;
	int counter, turn;
} * s;

static void init_mutex(pthread_mutex_t *m, int robust, int protocol)
{
	pthread_mutexattr_t a;

	CHECK_PT(pthread_mutexattr_init(&a));
	CHECK_PT(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_setrobust(&a, robust));
	CHECK_PT(pthread_mutexattr_setprotocol(&a, protocol));
	CHECK_PT(pthread_mutex_init(m, &a));
}

static void init(void)
{
	pthread_condattr_t c;
	pthread_rwlockattr_t r;
	pthread_barrierattr_t b;

	init_mutex(&s->plain, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_NONE);
	init_mutex(&s->robust, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
	init_mutex(&s->inherits, PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
	init_mutex(&s->robust_inherits, PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT);
	pthread_condattr_init(&c);
	pthread_condattr_setpshared(&c, PTHREAD_PROCESS_SHARED);
	CHECK_PT(pthread_cond_init(&s->cond, &c));
	pthread_rwlockattr_init(&r);
	pthread_rwlockattr_setpshared(&r, PTHREAD_PROCESS_SHARED);
	CHECK_PT(pthread_rwlock_init(&s->rwlock, &r));
	pthread_barrierattr_init(&b);
	pthread_barrierattr_setpshared(&b, PTHREAD_PROCESS_SHARED);
	CHECK_PT(pthread_barrier_init(&s->barrier, &b, 2 * NR_THREADS));
	CHECK_SYS(sem_init(&s->sem, 1, 0));
	CHECK_SYS(sem_init(&s->back, 1, 0));
	CHECK_SYS(sem_init(&s->holds, 1, 0));
	CHECK_SYS(sem_init(&s->may_go, 1, 0));
}

static pid_t run_native(const char *what)
{
	char *const argv[] = { "pshared_native", (char *)what, NULL }, *const none[] = { NULL };
	pid_t pid = fork();

	if (pid == 0) {
		execve("/proc/self/exe", argv, none);
		_exit(99);
	}
	return pid;
}

static void count(void)
{
	int seen = s->counter;

	sched_yield();
	s->counter = seen + 1;
}

/* Both sides run this. */
static void *takes_part(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		CHECK_PT(pthread_mutex_lock(&s->plain));
		count();
		CHECK_PT(pthread_mutex_unlock(&s->plain));
		CHECK_PT(pthread_rwlock_rdlock(&s->rwlock));
		CHECK_PT(pthread_rwlock_unlock(&s->rwlock));
		(void)pthread_barrier_wait(&s->barrier);
		CHECK_PT(pthread_rwlock_wrlock(&s->rwlock));
		count();
		CHECK_PT(pthread_rwlock_unlock(&s->rwlock));
		(void)pthread_barrier_wait(&s->barrier);
	}
	return arg;
}

/* side 0 and side 1 in turn */
static void *takes_turns(void *side)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		CHECK_PT(pthread_mutex_lock(&s->robust));
		while (s->turn % 2 != (int)(intptr_t)side)
			CHECK_PT(pthread_cond_wait(&s->cond, &s->robust));
		s->turn++;
		CHECK_PT(pthread_cond_broadcast(&s->cond));
		CHECK_PT(pthread_mutex_unlock(&s->robust));
		CHECK_SYS(sem_post(side ? &s->back : &s->sem));
		CHECK_SYS(sem_wait(side ? &s->sem : &s->back));
	}
	return side;
}

static void all(int side)
{
	pthread_t t[NR_THREADS];

	for (int i = 0; i < NR_THREADS; i++)
		t[i] = start(takes_part, NULL);
	for (int i = 0; i < NR_THREADS; i++)
		join(t[i]);
	join(start(takes_turns, (void *)(intptr_t)side));
}

static void *holds_until_told(void *m)
{
	CHECK_PT(pthread_mutex_lock(m));
	CHECK_SYS(sem_post(&s->holds));
	CHECK_SYS(sem_wait(&s->may_go));
	CHECK_PT(pthread_mutex_unlock(m));
	return m;
}

static void *holds_for_ever(void *m)
{
	CHECK_PT(pthread_mutex_lock(m));
	CHECK_SYS(sem_post(&s->holds));
	for (;;)
		pause();
	return m;
}

static void *waits(void *m)
{
	int ret = pthread_mutex_lock(m);

	if (ret == EOWNERDEAD)
		CHECK_PT(pthread_mutex_consistent(m));
	CHECK_PT(pthread_mutex_unlock(m));
	return (void *)(intptr_t)ret;
}

static int native_side(const char *what)
{
	if (what[0] == 'a')
		all(1);
	else if (what[0] == 'h')
		join(start(holds_until_told, what[1] == 'p' ? &s->plain : &s->inherits));
	else if (what[0] == 'd')
		join(start(holds_for_ever, what[1] == 'r' ? &s->robust : &s->robust_inherits));
	return finish();
}

static void native_holds(const char *what, pthread_mutex_t *m)
{
	pid_t pid = run_native(what);
	struct timespec soon;
	pthread_t t;

	CHECK_SYS(sem_wait(&s->holds));
	CHECK_EQ(pthread_mutex_trylock(m), EBUSY);
	soon = timespec_of(clock_ns(CLOCK_REALTIME) + 5 * MS);
	CHECK_EQ(pthread_mutex_timedlock(m, &soon), ETIMEDOUT);
	t = start(waits, m);
	CHECK_SYS(sem_post(&s->may_go));
	CHECK_EQ((intptr_t)join(t), 0);
	reap(pid);
}

static void native_dies(const char *what, pthread_mutex_t *m)
{
	pid_t pid = run_native(what);
	pthread_t t;

	CHECK_SYS(sem_wait(&s->holds));
	t = start(waits, m);
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ((intptr_t)join(t), EOWNERDEAD);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ((intptr_t)join(start(waits, m)), 0);
}

/* Here a child under weft, if we are: a native thread waits for a lock whose owner is killed. */
static void owner_dies(pthread_mutex_t *m)
{
	pid_t pid = fork();

	if (pid == 0)
		join(start(holds_for_ever, m));
	CHECK_SYS(sem_wait(&s->holds));
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ((intptr_t)join(start(waits, m)), EOWNERDEAD);
}

int main(int argc, char **argv)
{
	int fd = argc > 1 ? SHARED_FD : memfd_create("shared", 0);
	pid_t pid;

	if (argc == 1)
		CHECK_SYS(dup2(fd, SHARED_FD));
	CHECK_SYS(ftruncate(SHARED_FD, SHARED_BYTES));
	s = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
	if (argc > 1)
		return native_side(argv[1]);
	init();
	pid = run_native("all");
	all(0);
	reap(pid);
	CHECK_EQ(s->counter, 2 * 2 * NR_THREADS * NR_ROUNDS);
	ok("both take part");
	native_holds("hp", &s->plain);
	native_holds("hi", &s->inherits);
	ok("the native side holds");
	native_dies("dr", &s->robust);
	native_dies("di", &s->robust_inherits);
	ok("the native side dies");
	owner_dies(&s->robust);
	ok("this side dies");
	return finish();
}
