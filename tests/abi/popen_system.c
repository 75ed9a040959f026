// SPDX-License-Identifier: Apache-2.0
/*
 * popen and system from 20 threads: output, exit status, SIGCHLD and SIGINT as they were.
 */
#include "check.h"

#define NR 20

static void *uses_both(void *arg)
{
	char command[64], text[64], want[64];

	for (int round = 0; round < 2; round++) {
		int number = (int)(intptr_t)arg;

		snprintf(command, sizeof(command), "echo number %d; exit %d", number, number);
		snprintf(want, sizeof(want), "number %d\n", number);
		FILE *f = popen(command, "r");

		CHECK(f != NULL);
		if (!f)
			return NULL;
		CHECK(fgets(text, sizeof(text), f) != NULL);
		CHECK_STR(text, want);
		CHECK(fgets(text, sizeof(text), f) == NULL);
		int status = pclose(f);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == number);

		snprintf(command, sizeof(command), "exit %d", number);
		status = system(command);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == number);
	}
	return NULL;
}

static void *writes(void *arg)
{
	FILE *f = popen("while read line; do test \"$line\" = ok || exit 1; done", "w");

	for (int i = 0; i < 1000; i++)
		CHECK(fprintf(f, "ok\n") == 3);
	CHECK_EQ(pclose(f), 0);
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	struct sigaction sa;

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(uses_both, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("output and status in 20 threads");
	join(start(writes, NULL));
	ok("popen for writing");
	CHECK_SYS(sigaction(SIGINT, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	CHECK(!sigismember(&mask, SIGCHLD));
	ok("signals are as before");
	return finish();
}
