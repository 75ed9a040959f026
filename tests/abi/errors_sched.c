// SPDX-License-Identifier: Apache-2.0
/* Policies, priorities and affinities of threads by tid: what the calls return for good and bad arguments. */
#include "show.h"

#include <sched.h>
#include <sys/resource.h>

static void *calls(void *arg)
{
	struct sched_param sp = { 0 };
	cpu_set_t cs;
	struct timespec ts;
	unsigned long m[16];

	pid_t who[] = { 0, my_tid(), other_tid, dead_tid, getpid(), -1, 0x3ffffff };
	for (int i = 0; i < 7; i++) {
		printf("who %d\n", i);
		SHOW(CALL(sched_getscheduler, who[i]));
		SHOW(CALL(sched_getparam, who[i], &sp));
		SHOW(CALL(sched_getparam, who[i], NULL));
		SHOW(CALL(sched_getparam, who[i], BAD));
		SHOW(CALL(sched_rr_get_interval, who[i], &ts));
		SHOW(CALL(sched_rr_get_interval, who[i], BAD));
		SHOW(CALL(sched_rr_get_interval, who[i], NULL));
		printf("interval %ld %ld\n", (long)ts.tv_sec, 0L);
		SHOW(CALL(sched_getaffinity, who[i], 128, m));
		SHOW(CALL(sched_getaffinity, who[i], 0, m));
		SHOW(CALL(sched_getaffinity, who[i], 3, m));
		SHOW(CALL(sched_getaffinity, who[i], 8, BAD));
		SHOW(CALL(sched_getaffinity, who[i], 8, m));
		SHOW(CALL(sched_getaffinity, who[i], 4096, m));
		SHOW(CALL(sched_setaffinity, who[i], 8, m));
		SHOW(CALL(sched_setaffinity, who[i], 0, m));
		SHOW(CALL(sched_setaffinity, who[i], 8, BAD));
		SHOW(CALL(sched_setaffinity, who[i], 8, "\0\0\0\0\0\0\0\0"));
		SHOW(CALL(sched_setaffinity, who[i], 8, "\0\0\0\0\0\0\0\1"));
		SHOW(CALL(sched_setaffinity, who[i], 1, m));
		sp.sched_priority = 0;
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, &sp));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_BATCH, &sp));
		SHOW(CALL(sched_getscheduler, who[i]));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_IDLE, &sp));
		SHOW(CALL(sched_getscheduler, who[i]));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, &sp));
		SHOW(CALL(sched_setscheduler, who[i], 4, &sp));
		SHOW(CALL(sched_setscheduler, who[i], 99, &sp));
		SHOW(CALL(sched_setscheduler, who[i], -1, &sp));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, NULL));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, BAD));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_FIFO, &sp));
		sp.sched_priority = 100;
		SHOW(CALL(sched_setscheduler, who[i], SCHED_FIFO, &sp));
		sp.sched_priority = 1;
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, &sp));
		SHOW(CALL(sched_setparam, who[i], &sp));
		sp.sched_priority = 0;
		SHOW(CALL(sched_setparam, who[i], &sp));
		SHOW(CALL(sched_setparam, who[i], NULL));
		SHOW(CALL(sched_setparam, who[i], BAD));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER | SCHED_RESET_ON_FORK, &sp));
		SHOW(CALL(sched_getscheduler, who[i]));
		SHOW(CALL(sched_setscheduler, who[i], SCHED_OTHER, &sp));
		SHOW(CALL(getpriority, 0, who[i]));
		SHOW(CALL(setpriority, 0, who[i], 1));
		SHOW(CALL(getpriority, 0, who[i]));
		SHOW(CALL(setpriority, 0, who[i], 0));
		SHOW(CALL(setpriority, 0, who[i], -100));
		SHOW(CALL(getpriority, 0, who[i]));
		SHOW(CALL(setpriority, 0, who[i], 100));
		SHOW(CALL(getpriority, 0, who[i]));
		SHOW(CALL(setpriority, 0, who[i], 0));
		char attr[64] = { 0 };
		SHOW(CALL(sched_getattr, who[i], attr, 48, 0));
		printf("size %d policy %d nice %d\n", *(int *)attr, ((int *)attr)[1],
		       ((int *)attr)[4]);
		SHOW(CALL(sched_getattr, who[i], attr, 47, 0));
		SHOW(CALL(sched_getattr, who[i], attr, 56, 0));
		SHOW(CALL(sched_getattr, who[i], attr, 48, 1));
		SHOW(CALL(sched_getattr, who[i], NULL, 48, 0));
		SHOW(CALL(sched_getattr, who[i], BAD, 48, 0));
		memset(attr, 0, 64);
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		*(int *)attr = 48;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		SHOW(CALL(sched_setattr, who[i], attr, 8));
		SHOW(CALL(sched_setattr, who[i], NULL, 0));
		SHOW(CALL(sched_setattr, who[i], BAD, 0));
		((int *)attr)[1] = 77;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		((int *)attr)[1] = SCHED_BATCH;
		((int *)attr)[4] = 3;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		SHOW(CALL(sched_getscheduler, who[i]));
		SHOW(CALL(getpriority, 0, who[i]));
		((int *)attr)[1] = 0;
		((int *)attr)[4] = 0;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		*(int *)attr = 4;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
		printf("size %d\n", *(int *)attr);
		*(int *)attr = 400;
		SHOW(CALL(sched_setattr, who[i], attr, 0));
	}
	SHOW(CALL(getpriority, 3, 0));
	SHOW(CALL(getpriority, -1, 0));
	SHOW(CALL(setpriority, 3, 0, 0));
	SHOW(CALL(getpriority, 1, 0));
	SHOW(CALL(getpriority, 2, 0) > 0); /* of whoever else the user runs */
	SHOW(CALL(getpriority, 1, 0x3ffffff));

	SHOW(nice(0));
	SHOW(nice(1));
	SHOW(nice(-1));
	SHOW(sched_get_priority_max(SCHED_FIFO));
	SHOW(sched_get_priority_min(SCHED_RR));
	SHOW(sched_get_priority_max(99));
	SHOW(sched_get_priority_max(-1));
	int pol;
	SHOW_PT(pthread_getschedparam(other, &pol, &sp));
	printf("pol %d prio %d\n", pol, sp.sched_priority);
	sp.sched_priority = 1;
	SHOW_PT(pthread_setschedparam(other, SCHED_OTHER, &sp));
	sp.sched_priority = 0;
	SHOW_PT(pthread_setschedparam(other, SCHED_BATCH, &sp));
	SHOW_PT(pthread_getschedparam(other, &pol, &sp));
	printf("pol %d\n", pol);
	SHOW_PT(pthread_setschedparam(other, 77, &sp));
	SHOW_PT(pthread_setschedparam(other, SCHED_OTHER, &sp));
	SHOW_PT(pthread_setschedprio(other, 0));
	SHOW_PT(pthread_setschedprio(other, 1));
	SHOW_PT(pthread_setschedparam(other, SCHED_FIFO, &sp));
	SHOW_PT(pthread_getaffinity_np(other, sizeof(cs), &cs));
	printf("count same %d\n", CPU_COUNT(&cs) > 0);
	SHOW_PT(pthread_getaffinity_np(other, 0, &cs));
	SHOW_PT(pthread_getaffinity_np(other, 8, &cs));
	SHOW_PT(pthread_setaffinity_np(other, sizeof(cs), &cs));
	CPU_ZERO(&cs);
	SHOW_PT(pthread_setaffinity_np(other, sizeof(cs), &cs));
	CPU_SET(500, &cs);
	SHOW_PT(pthread_setaffinity_np(other, sizeof(cs), &cs));
	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	/* The answer about the group depends on the nice value that the whole process was started with. */
	if (setpriority(PRIO_PROCESS, 0, 0) < 0) {
		dprintf(2, "started with a nice value that it may not lower\n");
		return EXIT_SKIP;
	}
	return show_in_thread(calls);
}
