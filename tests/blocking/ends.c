// SPDX-License-Identifier: Apache-2.0
/*
 * Every call that can wait for ever is ended: by cancellation, and by a signal with a handler.
 *
 * Run by: tests/abi/run.py, natively and under weft.
 */
#include "waits.h"

#define SOON_US 2000 /* likely to be in its wait by then; no result depends on it */
#define RETURNED 0

static int is_done[NR_CALLS];

/* The thread ends with the error of its call. */
static void fails(const char *what)
{
	(void)what;
	pthread_exit((void *)(intptr_t)errno);
}

static void is_over(void *done)
{
	__atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
}

static void *waits(void *arg)
{
	size_t i = (size_t)arg;

	pthread_cleanup_push(is_over, &is_done[i]);
	calls[i].fn();
	pthread_cleanup_pop(1);
	return (void *)RETURNED;
}

static void on_signal(int sig)
{
	(void)sig;
}

static bool is_one_of(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void *end(size_t i, bool cancels)
{
	void *result = NULL;
	pthread_t t;

	__atomic_store_n(&is_done[i], 0, __ATOMIC_RELEASE);
	if (pthread_create(&t, NULL, waits, (void *)i))
		abort();
	usleep(SOON_US);
	if (cancels)
		pthread_cancel(t);
	while (!cancels && !__atomic_load_n(&is_done[i], __ATOMIC_ACQUIRE)) {
		pthread_kill(t, SIGURG);
		usleep(SOON_US);
	}
	pthread_join(t, &result);
	return result;
}

int main(void)
{
	static const char *const no_points[] = { "sendfile",      "sendfile_part",
						 "flock",         "semop",
						 "mutex",         "shared_futex",
						 "shared_vector", NULL };
	static const char *const never_interrupted[] = { "sigwait", "mutex", NULL };
	/* with a part, or 0: sleep() and the bare futex tell nothing of the signal here */
	static const char *const returns[] = { "sendfile_part", "recv_low_mark", "sleep", "pause",
					       "shared_futex",  "shared_vector", NULL };
	struct sigaction sa = { .sa_handler = on_signal };
	int nr_failed = 0;

	sigaction(SIGURG, &sa, NULL);
	for (int cancels = 0; cancels < 2; cancels++) {
		prepare();
		for (size_t i = 0; i < NR_CALLS; i++) {
			const char *name = calls[i].name;
			void *want = cancels                    ? PTHREAD_CANCELED
				     : is_one_of(returns, name) ? (void *)RETURNED
								: (void *)EINTR;
			void *got;

			if (is_one_of(cancels ? no_points : never_interrupted, name))
				continue;
			got = end(i, cancels);
			nr_failed += got != want;
			printf("%s %s by %s: %ld\n", got == want ? "ok" : "not ok", name,
			       cancels ? "cancellation" : "a signal", (long)(intptr_t)got);
			fflush(stdout);
		}
		clean_up();
	}
	return nr_failed != 0;
}
