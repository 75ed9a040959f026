// SPDX-License-Identifier: Apache-2.0
/*
 * membarrier from threads, and sched_getcpu/getcpu with or without rseq: always a CPU that exists.
 */
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include "check.h"

#define NR 10

static void *asks(void *arg)
{
	cpu_set_t set;

	CHECK_SYS(sched_getaffinity(0, sizeof(set), &set));
	for (int i = 0; i < 500; i++) {
		unsigned cpu = 9999;
		int ret = sched_getcpu();

		CHECK(ret >= 0 && ret < CPU_SETSIZE && CPU_ISSET(ret, &set));
		CHECK_SYS(syscall(SYS_getcpu, &cpu, NULL, NULL));
		CHECK(cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set));
		if (i % 10 == 0)
			sched_yield();
	}
	return arg;
}

static void *fences(void *arg)
{
	for (int i = 0; i < 20; i++)
		CHECK_SYS(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

	for (int i = 0; i < NR; i++)
		t[i] = start(asks, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("the CPU of a thread exists");

	if (commands > 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
		CHECK_SYS(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
		for (int i = 0; i < NR; i++)
			t[i] = start(fences, NULL);
		for (int i = 0; i < NR; i++)
			join(t[i]);
	}
	ok("membarrier");
	return finish();
}
