// SPDX-License-Identifier: Apache-2.0
/* Attributes of threads, mutexes, conditions, rwlocks, barriers; defaults; priority ceilings. */
#include "show.h"

#include <sched.h>

static void threads(void)
{
	struct sched_param sp = { 0 };
	pthread_attr_t a, def;
	cpu_set_t cpus;
	sigset_t set;
	size_t bytes = 0;
	void *addr = NULL;
	int v = -1;

	SHOW_PT(pthread_attr_init(&a));
	SHOW_PT(pthread_attr_getdetachstate(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_attr_setdetachstate(&a, 77));
	SHOW_PT(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED));
	SHOW_PT(pthread_attr_setdetachstate(&a, PTHREAD_CREATE_JOINABLE));
	SHOW_PT(pthread_attr_getguardsize(&a, &bytes));
	SHOW(bytes);
	SHOW_PT(pthread_attr_setguardsize(&a, 5));
	SHOW_PT(pthread_attr_getinheritsched(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_attr_setinheritsched(&a, 77));
	SHOW_PT(pthread_attr_setinheritsched(&a, PTHREAD_EXPLICIT_SCHED));
	SHOW_PT(pthread_attr_getschedpolicy(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_attr_setschedpolicy(&a, 77));
	SHOW_PT(pthread_attr_setschedpolicy(&a, SCHED_OTHER));
	SHOW_PT(pthread_attr_getschedparam(&a, &sp));
	SHOW(sp.sched_priority);
	sp.sched_priority = 5;
	SHOW_PT(pthread_attr_setschedparam(&a, &sp));
	sp.sched_priority = 0;
	SHOW_PT(pthread_attr_setschedparam(&a, &sp));
	SHOW_PT(pthread_attr_getscope(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_attr_setscope(&a, PTHREAD_SCOPE_PROCESS));
	SHOW_PT(pthread_attr_setscope(&a, 77));
	SHOW_PT(pthread_attr_getstacksize(&a, &bytes));
	SHOW_PT(pthread_attr_setstacksize(&a, 77));
	SHOW_PT(pthread_attr_setstacksize(&a, 1 << 20));
	SHOW_PT(pthread_attr_setstackaddr(&a, &a));
	SHOW_PT(pthread_attr_getstackaddr(&a, &addr));
	SHOW_PT(pthread_attr_setstack(&a, &a, 77));
	SHOW_PT(pthread_attr_getstack(&a, &addr, &bytes));
	SHOW_PT(pthread_attr_destroy(&a));

	SHOW_PT(pthread_attr_init(&a));
	CPU_ZERO(&cpus);
	SHOW_PT(pthread_attr_getaffinity_np(&a, sizeof(cpus), &cpus));
	SHOW(CPU_COUNT(&cpus) == (int)sizeof(cpus) * 8);
	CPU_ZERO(&cpus);
	SHOW_PT(pthread_attr_setaffinity_np(&a, sizeof(cpus), &cpus));
	SHOW_PT(pthread_create(&(pthread_t){ 0 }, &a, parks, NULL));
	SHOW_PT(pthread_attr_setaffinity_np(&a, 0, NULL));
	SHOW_PT(pthread_attr_getsigmask_np(&a, &set));
	sigfillset(&set);
	SHOW_PT(pthread_attr_setsigmask_np(&a, &set));
	SHOW_PT(pthread_attr_getsigmask_np(&a, &set));
	SHOW(sigismember(&set, SIGUSR1));
	SHOW_PT(pthread_attr_destroy(&a));

	SHOW_PT(pthread_getattr_default_np(&def));
	SHOW_PT(pthread_attr_setstacksize(&def, 3 << 20));
	SHOW_PT(pthread_setattr_default_np(&def));
	SHOW_PT(pthread_attr_destroy(&def));
	SHOW_PT(pthread_getattr_np(other, &a));
	SHOW_PT(pthread_attr_getstacksize(&a, &bytes));
	SHOW_PT(pthread_attr_destroy(&a));
	SHOW(pthread_getconcurrency());
	SHOW_PT(pthread_setconcurrency(-1));
	SHOW_PT(pthread_setconcurrency(3));
	SHOW(pthread_getconcurrency());
}

static void mutexes(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t m;
	int v = -1;

	SHOW_PT(pthread_mutexattr_init(&a));
	SHOW_PT(pthread_mutexattr_gettype(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_mutexattr_settype(&a, 77));
	SHOW_PT(pthread_mutexattr_getprotocol(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_mutexattr_setprotocol(&a, 77));
	SHOW_PT(pthread_mutexattr_getpshared(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_mutexattr_setpshared(&a, 77));
	SHOW_PT(pthread_mutexattr_getrobust(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_mutexattr_setrobust(&a, 77));
	SHOW_PT(pthread_mutexattr_getprioceiling(&a, &v));
	SHOW(v);
	SHOW_PT(pthread_mutexattr_setprioceiling(&a, 1000));
	SHOW_PT(pthread_mutexattr_setprioceiling(&a, 7));
	SHOW_PT(pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_PROTECT));
	SHOW_PT(pthread_mutex_init(&m, &a));
	SHOW_PT(pthread_mutex_getprioceiling(&m, &v));
	SHOW(v);
	SHOW_PT(pthread_mutex_setprioceiling(&m, 9, &v));
	SHOW(v);
	SHOW_PT(pthread_mutex_setprioceiling(&m, 1000, &v));
	SHOW_PT(pthread_mutex_lock(&m));
	SHOW_PT(pthread_mutex_unlock(&m));
	SHOW_PT(pthread_mutex_destroy(&m));
	SHOW_PT(pthread_mutexattr_destroy(&a));
	SHOW_PT(pthread_mutex_init(&m, NULL));
	SHOW_PT(pthread_mutex_getprioceiling(&m, &v));
	SHOW_PT(pthread_mutex_consistent(&m));
}

static void others(void)
{
	pthread_spinlock_t spin;
	pthread_barrierattr_t b;
	pthread_rwlockattr_t r;
	pthread_condattr_t c;
	clockid_t clock;
	int v = -1;

	SHOW_PT(pthread_condattr_init(&c));
	SHOW_PT(pthread_condattr_getclock(&c, &clock));
	SHOW(clock);
	SHOW_PT(pthread_condattr_setclock(&c, CLOCK_MONOTONIC));
	SHOW_PT(pthread_condattr_setclock(&c, CLOCK_PROCESS_CPUTIME_ID));
	SHOW_PT(pthread_condattr_getclock(&c, &clock));
	SHOW(clock);
	SHOW_PT(pthread_condattr_getpshared(&c, &v));
	SHOW(v);
	SHOW_PT(pthread_condattr_setpshared(&c, 77));
	SHOW_PT(pthread_condattr_destroy(&c));

	SHOW_PT(pthread_rwlockattr_init(&r));
	SHOW_PT(pthread_rwlockattr_getkind_np(&r, &v));
	SHOW(v);
	SHOW_PT(pthread_rwlockattr_setkind_np(&r, 77));
	SHOW_PT(pthread_rwlockattr_setkind_np(&r, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP));
	SHOW_PT(pthread_rwlockattr_getpshared(&r, &v));
	SHOW(v);
	SHOW_PT(pthread_rwlockattr_setpshared(&r, 77));
	SHOW_PT(pthread_rwlockattr_setpshared(&r, PTHREAD_PROCESS_SHARED));
	SHOW_PT(pthread_rwlockattr_destroy(&r));

	SHOW_PT(pthread_barrierattr_init(&b));
	SHOW_PT(pthread_barrierattr_getpshared(&b, &v));
	SHOW(v);
	SHOW_PT(pthread_barrierattr_setpshared(&b, 77));
	SHOW_PT(pthread_barrierattr_destroy(&b));

	SHOW_PT(pthread_spin_init(&spin, 0));
	SHOW_PT(pthread_spin_trylock(&spin));
	SHOW_PT(pthread_spin_trylock(&spin));
	SHOW_PT(pthread_spin_unlock(&spin));
	SHOW_PT(pthread_spin_destroy(&spin));
}

static void *calls(void *arg)
{
	threads();
	mutexes();
	others();
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
