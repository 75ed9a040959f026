// SPDX-License-Identifier: Apache-2.0
/* Counting what a dump costs; see dump_budget.h. */
#include "dump_budget.h"

#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

#define LOOKS_AT_CLOCK 256 /* so many reads take less than a millisecond */

static int64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

void wf_budget_begin(struct wf_budget *b)
{
	*b = (struct wf_budget){ .reads = WF_BUDGET_READS, .bytes = WF_BUDGET_BYTES };
	wf_budget_set_time(b, WF_BUDGET_PHASE_S);
}

void wf_budget_set_time(struct wf_budget *b, int seconds)
{
	b->until_us = now_us() + (int64_t)seconds * 1000000;
	b->spent = NULL;
}

bool wf_budget_take(struct wf_budget *b, size_t bytes)
{
	if (b->spent)
		return false;
	if (!b->reads)
		b->spent = "reads";
	else if (bytes > b->bytes)
		b->spent = "bytes";
	else if (b->reads % LOOKS_AT_CLOCK == 0 && now_us() > b->until_us)
		b->spent = "time";
	if (b->spent) {
		b->was_spent = b->spent;
		return false;
	}
	b->reads--;
	b->bytes -= bytes;
	return true;
}

static void give_up(int sig)
{
	static const char is_late[] =
		"weft: dump: gave up: reading symbols or files took more than two minutes\n";
	static const char is_cut[] =
		"weft: dump: gave up: a file became shorter while it was being read\n";

	if (sig == SIGBUS)
		(void)!write(STDERR_FILENO, is_cut, sizeof(is_cut) - 1);
	else
		(void)!write(STDERR_FILENO, is_late, sizeof(is_late) - 1);
	_exit(WF_EXIT_REFUSED);
}

void wf_budget_arm(void)
{
	const struct sigaction action = { .sa_handler = give_up };

	sigset_t blocked;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGALRM);
	sigaddset(&blocked, SIGPROF);
	(void)sigprocmask(SIG_UNBLOCK, &blocked, NULL);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)sigaction(SIGPROF, &action, NULL);
	(void)sigaction(SIGBUS, &action, NULL);
	(void)alarm(WF_BUDGET_LAST_S);
}

void wf_budget_arm_output(void)
{
	const struct itimerval cpu = { .it_value.tv_sec = WF_BUDGET_LAST_S };

	(void)alarm(0);
	(void)setitimer(ITIMER_PROF, &cpu, NULL);
}
