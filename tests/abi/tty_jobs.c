// SPDX-License-Identifier: Apache-2.0
/*
 * Job control: a thread that reads from the terminal in the background stops its process, and goes on in the
 * foreground; so does one that writes or changes the terminal, where that is not allowed. Nobody is stopped whom
 * nobody would continue, or who does not want it.
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>

#include "check.h"

#define JOB_STATUS 7

static int master, tty;
static int from_job[2];

static void say(char c)
{
	CHECK_EQ(write(from_job[1], &c, 1), 1);
}

/* --- the job: threads of one process, in a group of its own --- */

static void *waits(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void *reads_two_lines(void *arg)
{
	char line[16] = "";

	CHECK_EQ(read(tty, line, sizeof(line)), 4);
	CHECK(!memcmp(line, "one\n", 4));
	say('1');
	CHECK_EQ(read(tty, line, sizeof(line)), 4);
	CHECK(!memcmp(line, "two\n", 4));
	return arg;
}

static void *writes(void *arg)
{
	CHECK_EQ(write(tty, "hello", 5), 5);
	return arg;
}

static void *changes_mode(void *arg)
{
	struct termios mode;

	CHECK_SYS(tcgetattr(tty, &mode));
	CHECK_SYS(tcsetattr(tty, TCSANOW, &mode));
	return arg;
}

static void *takes_foreground(void *arg)
{
	CHECK_SYS(tcsetpgrp(tty, getpgrp()));
	return arg;
}

static void *blocks_it(void *arg)
{
	sigset_t set;
	char c;

	sigemptyset(&set);
	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK_ERRNO(read(tty, &c, 1), EIO);
	writes(NULL);
	changes_mode(NULL);
	return arg;
}

static void *ignores_it(void *arg)
{
	char c;

	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	CHECK_ERRNO(read(tty, &c, 1), EIO);
	writes(NULL);
	changes_mode(NULL);
	return arg;
}

static int nr_caught;

static void caught(int sig)
{
	(void)sig;
	ADD(&nr_caught, 1);
}

static void *catches_it(void *arg)
{
	struct sigaction sa = { .sa_handler = caught };
	sigset_t set;
	char c;

	sigaction(SIGTTIN, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTTIN);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK_ERRNO(read(tty, &c, 1), EINTR);
	CHECK_EQ(LOAD(&nr_caught), 1);
	return arg;
}

static void *is_orphan(void *arg)
{
	char c;

	CHECK_ERRNO(read(tty, &c, 1), EIO);
	return arg;
}

static void run_job(void *(*what)(void *))
{
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	signal(SIGTTOU, SIG_DFL);
	if (what == catches_it) { /* by that thread */
		sigemptyset(&set);
		sigaddset(&set, SIGTTIN);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
	}
	start(waits, NULL);
	join(start(what, NULL));
	_exit(finish() ? 1 : JOB_STATUS);
}

/* --- the shell --- */

static pid_t start_job(void *(*what)(void *))
{
	pid_t pid = fork();

	CHECK_SYS(pid);
	if (pid == 0)
		run_job(what);
	setpgid(pid, pid);
	return pid;
}

static void check_stopped(pid_t pid, int sig)
{
	int status = 0;

	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(WSTOPSIG(status), sig);
}

static void check_ended(pid_t pid)
{
	int status = 0;

	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK_EQ(status, W_EXITCODE(JOB_STATUS, 0));
	CHECK_SYS(tcsetpgrp(tty, getpgrp()));
}

static void go_on(pid_t pid, int in_foreground)
{
	CHECK_SYS(tcsetpgrp(tty, in_foreground ? pid : getpgrp()));
	CHECK_SYS(kill(-pid, SIGCONT));
}

static void type(const char *text)
{
	CHECK_EQ(write(master, text, strlen(text)), strlen(text));
}

static void job_reads(void)
{
	pid_t pid = start_job(reads_two_lines);
	char c = 0;

	check_stopped(pid, SIGTTIN);
	go_on(pid, 1);
	type("one\n");
	CHECK_EQ(read(from_job[0], &c, 1), 1);
	let_others_block();
	/* It waits for a line, or is about to: stopped there, it must ask again in the background. */
	type("\x1a");
	check_stopped(pid, SIGTSTP);
	go_on(pid, 0);
	check_stopped(pid, SIGTTIN);
	go_on(pid, 1);
	type("two\n");
	check_ended(pid);
}

static void job_is_stopped(void *(*what)(void *))
{
	pid_t pid = start_job(what);

	check_stopped(pid, SIGTTOU);
	go_on(pid, 1);
	check_ended(pid);
}

static void set_tostop(int on)
{
	struct termios mode;

	CHECK_SYS(tcgetattr(tty, &mode));
	mode.c_lflag = on ? mode.c_lflag | TOSTOP : mode.c_lflag & ~(tcflag_t)TOSTOP;
	CHECK_SYS(tcsetattr(tty, TCSANOW, &mode));
}

/* Of the group's parents none is in another group of the session. */
static void orphan(void)
{
	pid_t middle = fork();
	char c;

	CHECK_SYS(middle);
	if (middle == 0) {
		setpgid(0, 0);
		middle = getpid();
		if (fork() == 0) {
			/* in the group of its parent, which ends */
			while (getppid() == middle)
				sleep_ns(MS);
			signal(SIGTTOU, SIG_DFL);
			join(start(is_orphan, NULL));
			say(finish() ? 'n' : 'y');
			_exit(0);
		}
		_exit(0);
	}
	CHECK_EQ(waitpid(middle, NULL, 0), middle);
	CHECK_EQ(read(from_job[0], &c, 1), 1);
	CHECK_EQ(c, 'y');
}

static void shell(void)
{
	signal(SIGTTOU, SIG_IGN);
	job_reads();
	ok("read");
	job_is_stopped(changes_mode);
	job_is_stopped(takes_foreground);
	ok("change the terminal");
	check_ended(start_job(writes));
	set_tostop(1);
	job_is_stopped(writes);
	ok("write");
	check_ended(start_job(blocks_it));
	check_ended(start_job(ignores_it));
	check_ended(start_job(catches_it));
	ok("blocked, ignored, caught");
	orphan();
	ok("nobody would continue it");
}

int main(void)
{
	pid_t pid;

	master = (int)CHECK_SYS(posix_openpt(O_RDWR | O_NOCTTY));
	CHECK_SYS(grantpt(master));
	CHECK_SYS(unlockpt(master));
	CHECK_SYS(pipe(from_job));
	pid = fork();
	if (pid == 0) {
		/* A session of its own, with this terminal */
		CHECK_SYS(setsid());
		tty = (int)CHECK_SYS(open(ptsname(master), O_RDWR));
		shell();
		_exit(finish());
	}
	reap(pid);
	return finish();
}
