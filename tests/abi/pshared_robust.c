// SPDX-License-Identifier: Apache-2.0
/*
 * A process-shared robust mutex: a child ends while one of its threads holds it.
 */
#include <sys/mman.h>
#include "check.h"

static pthread_mutex_t *lock;

static void *locks_and_leaves(void *arg)
{
	CHECK_PT(pthread_mutex_lock(lock));
	if (arg)
		_exit(0);
	return NULL;
}

int main(void)
{
	pthread_mutexattr_t attr;

	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_init(&attr);
	CHECK_PT(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_PT(pthread_mutex_init(lock, &attr));

	for (intptr_t whole_process = 0; whole_process < 2; whole_process++) {
		pid_t child = fork();

		if (child == 0) {
			join(start(locks_and_leaves, (void *)whole_process));
			_exit(finish());
		}
		CHECK_SYS(child);
		reap(child);
		CHECK_EQ(pthread_mutex_lock(lock), EOWNERDEAD);
		CHECK_PT(pthread_mutex_consistent(lock));
		CHECK_PT(pthread_mutex_unlock(lock));
		ok(whole_process ? "the process ends with the lock"
				 : "a thread ends with the lock");
	}
	CHECK_PT(pthread_mutex_destroy(lock));
	return finish();
}
