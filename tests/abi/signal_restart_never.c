// SPDX-License-Identifier: Apache-2.0
/*
 * Waits with a time end with EINTR when a handler has run, SA_RESTART or not: also those that the kernel does
 * itself, on a semaphore that processes share and on the CPU clock of the process.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/mman.h>

enum wait {
	SEM_PRIVATE,
	SEM_SHARED,
	SLEEP_CPU,
	SLEEP,
	NR_WAITS
};

static sem_t *shared, private;
static int is_waiting, is_over, nr_handled;

static void handler(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

static void *spins(void *arg)
{
	while (!LOAD(&is_over))
		;
	return arg;
}

static void *waits(void *arg)
{
	struct timespec until = timespec_of(clock_ns(CLOCK_REALTIME) + 1000 * SEC);
	struct timespec long_time = { 1000, 0 };

	STORE(&is_waiting, 1);
	switch ((enum wait)(long)arg) {
	case SEM_PRIVATE:
		CHECK_ERRNO(sem_timedwait(&private, &until), EINTR);
		break;
	case SEM_SHARED:
		CHECK_ERRNO(sem_timedwait(shared, &until), EINTR);
		break;
	case SLEEP_CPU:
		CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &long_time, NULL), EINTR);
		break;
	default:
		CHECK_ERRNO(nanosleep(&long_time, NULL), EINTR);
	}
	STORE(&is_waiting, 0);
	return NULL;
}

int main(void)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t spinner, t;

	sigaction(SIGUSR1, &act, NULL);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(shared, 1, 0);
	sem_init(&private, 0, 0);
	spinner = start(spins, NULL);
	for (long how = 0; how < NR_WAITS; how++) {
		t = start(waits, (void *)how);
		while (!LOAD(&is_waiting))
			sched_yield();
		/* one that comes before the wait does not end it */
		while (LOAD(&is_waiting)) {
			let_others_block();
			pthread_kill(t, SIGUSR1);
		}
		join(t);
	}
	CHECK(nr_handled >= NR_WAITS);
	ok("four waits");
	STORE(&is_over, 1);
	join(spinner);
	return finish();
}
