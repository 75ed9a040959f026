// SPDX-License-Identifier: Apache-2.0
/* When a dump gives up; see alarm.h. */
#include "dump/alarm.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "cmd.h"

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

void wf_alarm_arm(void)
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
	(void)alarm(WF_ALARM_S);
}

void wf_alarm_arm_output(void)
{
	const struct itimerval cpu = { .it_value.tv_sec = WF_ALARM_S };

	(void)alarm(0);
	(void)setitimer(ITIMER_PROF, &cpu, NULL);
}
