// SPDX-License-Identifier: Apache-2.0
/*
 * Job control: a process with threads stops and goes on by SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU, its parent sees
 * which; a stop signal and SIGCONT cancel each other while they are pending.
 */
#include "check.h"

static volatile int nr_continued, nr_stopped;

static void handler(int sig)
{
	if (sig == SIGCONT)
		nr_continued++;
	else
		nr_stopped++;
}

static void *spins(void *arg)
{
	for (;;)
		;
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

/* Stops twice: sent to one thread, then to the process. */
static void stops(int sig, int by_other, int go_on)
{
	pthread_t t = start(spins, NULL);
	char c;

	signal(SIGCONT, handler);
	if (by_other)
		pthread_kill(t, sig);
	else
		raise(sig);
	while (!nr_continued)
		usleep(1000);
	while (read(go_on, &c, 1) != 1)
		;
	kill(getpid(), sig);
	while (nr_continued < 2)
		usleep(1000);
	_exit(7);
}

static void check_stops(int sig, int by_other)
{
	int go_on[2], status = 0;
	pid_t pid;

	CHECK_SYS(pipe(go_on));
	pid = fork();
	if (pid == 0) {
		/* Its own group, the parent in another: else the kernel ignores stops. */
		setpgid(0, 0);
		stops(sig, by_other, go_on[0]);
	}
	setpgid(pid, pid);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == sig);
	kill(pid, SIGCONT);
	CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
	CHECK(WIFCONTINUED(status));
	CHECK_EQ(write(go_on[1], "x", 1), 1);
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == sig);
	kill(pid, SIGCONT);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	close(go_on[0]);
	close(go_on[1]);
}

static void show(const char *what)
{
	sigset_t set;

	sigpending(&set);
	printf("%s: TSTP %d, CONT %d\n", what, sigismember(&set, SIGTSTP),
	       sigismember(&set, SIGCONT));
}

static void check_pending(void)
{
	sigset_t set;

	join(start(nothing, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGCONT, handler);
	signal(SIGTSTP, handler);
	raise(SIGTSTP);
	show("raise TSTP");
	raise(SIGCONT);
	show("raise CONT");
	raise(SIGTSTP);
	show("raise TSTP");
	kill(getpid(), SIGCONT);
	show("kill CONT");
	kill(getpid(), SIGTSTP);
	show("kill TSTP");
	raise(SIGCONT);
	show("raise CONT");
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	printf("handled: TSTP %d, CONT %d\n", nr_stopped, nr_continued);
}

int main(void)
{
	const int sigs[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };

	for (int i = 0; i < 4; i++) {
		check_stops(sigs[i], 0);
		check_stops(sigs[i], 1);
	}
	ok("four ways to stop");
	check_pending();
	return finish();
}
