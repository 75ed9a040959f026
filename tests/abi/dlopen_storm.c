// SPDX-License-Identifier: Apache-2.0
/*
 * Threads open and close libraries that make system calls of their own, while others make calls, take signals
 * and look up symbols: nobody notices.
 */
#include "library.h"

#define NR_OPENERS 3
#define NR_CALLERS 3
#define ROUNDS 120

static const char *const names[NR_OPENERS] = { "lib_syscalls.so", "lib_syscalls_big.so",
					       "lib_syscalls_other.so" };
static int is_over;
static int nr_signals;

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_signals, 1);
}

static void *opens(void *arg)
{
	char path[PATH_MAX + 64];
	struct lib_syscalls lib;

	library_path(path, arg);
	for (int i = 0; i < ROUNDS; i++) {
		library_open(&lib, path);
		CHECK_EQ(lib.gettid_at_load(), gettid());
		library_check_identity(&lib);
		CHECK_EQ(lib.call(SYS_getppid, 0, 0, 0, 0), getppid());
		if (i % 4 == 0)
			lib.call(SYS_sched_yield, 0, 0, 0, 0);
		dlclose(lib.handle);
	}
	return NULL;
}

static void *calls(void *arg)
{
	int fds[2];
	char c;

	CHECK_SYS(pipe(fds));
	while (!LOAD(&is_over)) {
		CHECK_EQ(write(fds[1], "x", 1), 1);
		CHECK_EQ(read(fds[0], &c, 1), 1);
		CHECK_PT(pthread_kill(pthread_self(), SIGUSR1));
		CHECK(dlsym(RTLD_DEFAULT, "malloc") != NULL);
		sched_yield();
	}
	close(fds[0]);
	close(fds[1]);
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t opener[NR_OPENERS], caller[NR_CALLERS];

	CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
	for (int i = 0; i < NR_CALLERS; i++)
		caller[i] = start(calls, NULL);
	for (int i = 0; i < NR_OPENERS; i++)
		opener[i] = start(opens, (void *)names[i]);
	for (int i = 0; i < NR_OPENERS; i++) {
		for (int k = 0; k < ROUNDS; k++)
			pthread_kill(opener[i], SIGUSR1);
		join(opener[i]);
	}
	STORE(&is_over, 1);
	for (int i = 0; i < NR_CALLERS; i++)
		join(caller[i]);
	CHECK(LOAD(&nr_signals) > 0);
	ok("opened and closed by many");
	return finish();
}
