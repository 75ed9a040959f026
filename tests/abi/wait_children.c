// SPDX-License-Identifier: Apache-2.0
/*
 * waitpid and waitid from threads: one child each, 50 at once, WNOHANG, WNOWAIT, signals, ECHILD.
 */
#include "tasks.h"

#define NR 50

static pid_t make_child(int status)
{
	pid_t pid = fork();

	if (pid == 0) {
		sleep_ns(status * MS / 10);
		_exit(status);
	}
	return (pid_t)CHECK_SYS(pid);
}

static void *waits_for_own(void *arg)
{
	int want = (int)(intptr_t)arg, status = -1;
	pid_t pid = make_child(want);

	if (want % 2) {
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want);
	} else {
		siginfo_t info = { 0 };

		CHECK_SYS(waitid(P_PID, pid, &info, WEXITED | WNOWAIT));
		CHECK_SYS(waitid(P_PID, pid, &info, WEXITED));
		CHECK_EQ(info.si_pid, pid);
		CHECK_EQ(info.si_status, want);
		CHECK_EQ(info.si_code, CLD_EXITED);
	}
	CHECK_ERRNO(waitpid(pid, &status, 0), ECHILD);
	return NULL;
}

static void *waits_for_any(void *arg)
{
	int status;
	intptr_t sum = 0;

	(void)arg;
	while (wait(&status) > 0)
		sum += WEXITSTATUS(status);
	CHECK_EQ(errno, ECHILD);
	return (void *)sum;
}

static int hold[2], nr_waiting;

static void *waits_for_held(void *arg)
{
	int status = -1;
	pid_t pid = fork();
	char c;

	if (pid == 0) {
		close(hold[1]);
		_exit((int)read(hold[0], &c, 1));
	}
	CHECK_SYS(pid);
	ADD(&nr_waiting, 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return arg;
}

/* More than may hold a kernel thread each, where a ring takes them. */
static void wait_together(void)
{
	pthread_t t[NR];

	CHECK_SYS(pipe(hold));
	for (int i = 0; i < NR; i++)
		t[i] = start(waits_for_held, NULL);
	while (LOAD(&nr_waiting) < NR)
		sched_yield();
	let_others_block();
	CHECK(!waits_in_ring() || nr_kernel_threads() < NR / 2);
	close(hold[1]); /* the last of it: none of the children has it any more */
	for (int i = 0; i < NR; i++)
		join(t[i]);
	close(hold[0]);
}

int main(void)
{
	pthread_t t[NR];
	int fds[2], status;
	char c;

	join(start(waits_for_own, (void *)7));
	ok("one child");
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(waits_for_own, (void *)(i + 1));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("50 threads with a child each");

	wait_together();
	ok("50 threads whose children all live");

	for (int i = 1; i <= NR; i++)
		make_child(i);
	intptr_t sum = 0;
	for (int i = 0; i < 4; i++)
		t[i] = start(waits_for_any, NULL);
	for (int i = 0; i < 4; i++)
		sum += (intptr_t)join(t[i]);
	CHECK_EQ(sum, NR * (NR + 1) / 2);
	ok("four threads share 50 children");

	CHECK_SYS(pipe(fds));
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[1]);
		_exit((int)read(fds[0], &c, 1));
	}
	CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
	CHECK_EQ(write(fds[1], "x", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 1);
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	CHECK_SYS(kill(pid, SIGSTOP));
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	CHECK_SYS(kill(pid, SIGCONT));
	CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
	CHECK(WIFCONTINUED(status));
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK_ERRNO(waitpid(-1, &status, WNOHANG), ECHILD);
	ok("WNOHANG, stopped, continued, killed");
	return finish();
}
