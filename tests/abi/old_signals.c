// SPDX-License-Identifier: Apache-2.0
/* The older ways to handle, block and wait for signals, and the functions on sets of signals. */
#include "show.h"

#include <string.h>

static int nr_handled; /* atomic */

sighandler_t bsd_signal(int sig, sighandler_t handler); /* no header has it any more */

static void handler(int sig)
{
	CHECK_EQ(sig, SIGUSR2);
	ADD(&nr_handled, 1);
}

static void sets(void)
{
	sigset_t a, b, c;

	SHOW(sigemptyset(&a));
	SHOW(sigisemptyset(&a));
	SHOW(sigaddset(&a, SIGUSR1));
	SHOW(sigaddset(&a, 0));
	SHOW(sigaddset(&a, 65));
	SHOW(sigaddset(&a, 32));
	SHOW(sigaddset(&a, 33));
	SHOW(sigfillset(&b));
	SHOW(sigdelset(&b, SIGUSR1));
	SHOW(sigdelset(&b, 65));
	SHOW(sigismember(&b, 32));
	SHOW(sigismember(&b, -1));
	SHOW(sigandset(&c, &a, &b));
	SHOW(sigisemptyset(&c));
	SHOW(sigorset(&c, &a, &b));
	SHOW(sigismember(&c, SIGUSR1));
	printf("%s %s %d\n", sigabbrev_np(SIGUSR1), sigdescr_np(SIGUSR1), sigabbrev_np(99) == NULL);
}

static void masks(void)
{
	int usr2 = 1 << (SIGUSR2 - 1);

	SHOW(sigsetmask(0));
	SHOW(sigblock(usr2));
	SHOW(siggetmask() == usr2);
	raise(SIGUSR2);
	SHOW(LOAD(&nr_handled));
	SHOW(sigpause(SIGUSR2)); /* of X/Open: unblocks the signal that it names */
	SHOW(LOAD(&nr_handled));
	SHOW(sigsetmask(0) == usr2);
	gsignal(SIGUSR2);
	SHOW(LOAD(&nr_handled));
	SHOW(sighold(SIGUSR2));
	raise(SIGUSR2);
	SHOW(LOAD(&nr_handled));
	SHOW(sigrelse(SIGUSR2));
	SHOW(LOAD(&nr_handled));
	SHOW(sighold(0));
	SHOW(sigrelse(65));
}

static void actions(void)
{
	SHOW(sigset(SIGUSR2, SIG_HOLD) == handler);
	SHOW(sigset(SIGUSR2, handler) == SIG_HOLD);
	SHOW(sigset(SIGKILL, handler) == SIG_ERR);
	SHOW(sigignore(SIGUSR2));
	raise(SIGUSR2);
	SHOW(LOAD(&nr_handled));
	SHOW(sigignore(SIGKILL));
	SHOW(ssignal(SIGUSR2, handler) == SIG_IGN);
	raise(SIGUSR2);
	SHOW(LOAD(&nr_handled));
	SHOW(bsd_signal(SIGUSR2, SIG_DFL) == handler);
	SHOW(sigstack(NULL, NULL));
	SHOW(sigreturn(NULL));
	SHOW(killpg(-1, 0));
	SHOW(killpg(getpgrp(), 0));
	SHOW(killpg(0x3ffffff, 0));
}

static void *calls(void *arg)
{
	siginfo_t info = { .si_signo = SIGUSR1 };

	signal(SIGUSR2, handler);
	sets();
	masks();
	actions();
	/* on stderr, which nobody compares */
	psignal(SIGUSR1, "psignal");
	psiginfo(&info, "psiginfo");
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
