// SPDX-License-Identifier: Apache-2.0
/*
 * State that Linux keeps per kernel thread stays with the thread that asked for it, goes to the threads that it
 * makes, and to nobody else; and such a thread still waits, wakes, takes signals, forks and ends like any other.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include "check.h"

#define NR 8
#define TURNS 200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn, nr_signals, stop;
static char home[4096];

/* Enters a state of its own: another root of relative names. */
static void become_bound(void)
{
	CHECK_SYS(unshare(CLONE_FS));
}

static void *sees_home(void *arg)
{
	char dir[4096];

	CHECK(getcwd(dir, sizeof(dir)));
	CHECK_STR(dir, arg);
	return arg;
}

static void *moves(void *arg)
{
	become_bound();
	CHECK_SYS(chdir("/"));
	sees_home("/");
	join(start(sees_home, "/")); /* inherited */
	sees_home("/");
	return arg;
}

#define CLOSED 500 /* numbers that nobody uses */
#define OTHERS 600
#define FLAG_UNSHARE 2

static int step;

/* Its own table of descriptors: what others open from then on it does not see. */
static void *has_own_table(void *arg)
{
	CHECK_SYS(syscall(SYS_close_range, CLOSED, CLOSED + 10, FLAG_UNSHARE));
	STORE(&step, 1);
	while (LOAD(&step) < 2)
		sleep_ns(MS);
	CHECK_ERRNO(fcntl(OTHERS, F_GETFD), EBADF);
	return arg;
}

static void *sees_others(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		CHECK_SYS(fcntl(OTHERS, F_GETFD));
		sleep_ns(MS / 10);
	}
	return arg;
}

static void check_own_table(void)
{
	pthread_t t[NR], owner;

	if (syscall(SYS_close_range, CLOSED, CLOSED, 0) == -1 && errno == ENOSYS)
		return;
	owner = start(has_own_table, NULL);
	while (LOAD(&step) < 1)
		sleep_ns(MS);
	CHECK_EQ(dup2(0, OTHERS), OTHERS);
	for (int i = 0; i < NR; i++)
		t[i] = start(sees_others, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	STORE(&step, 2);
	join(owner);
	close(OTHERS);
}

/* For this thread and its children getppid() fails from now on. */
static void filter_getppid(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { 4, code };

	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_SYS(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
}

static void *is_filtered(void *arg)
{
	CHECK_ERRNO(syscall(SYS_getppid), EXDEV);
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	return arg;
}

static void *is_unfiltered(void *arg)
{
	for (int i = 0; i < 50; i++) {
		CHECK(syscall(SYS_getppid) > 0);
		sched_yield();
	}
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
	return arg;
}

static void *filters(void *arg)
{
	filter_getppid();
	join(start(is_filtered, NULL));
	for (int i = 0; i < 50; i++) {
		is_filtered(NULL);
		sched_yield();
		sleep_ns(MS / 10);
	}
	return arg;
}

static void *changes_fsuid(void *arg)
{
	int was = setfsuid(-1);

	setfsuid(12345);
	CHECK_EQ(setfsuid(-1), 12345);
	sched_yield();
	sleep_ns(MS);
	CHECK_EQ(setfsuid(-1), 12345);
	setfsuid((uid_t)was);
	return arg;
}

/* select() and its kin tell how much of the time is left, but with this personality. */
static void keeps_time(int is_sticky)
{
	const long ns = 1000000;
	struct timeval tv = { 0, ns / 1000 };
	struct timespec select_ts = { 0, ns }, poll_ts = { 0, ns };

	CHECK_EQ(select(0, NULL, NULL, NULL, &tv), 0);
	CHECK_EQ(tv.tv_usec, is_sticky ? ns / 1000 : 0);
	CHECK_EQ(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &select_ts, NULL), 0);
	CHECK_EQ(select_ts.tv_nsec, is_sticky ? ns : 0);
	CHECK_EQ(syscall(SYS_ppoll, NULL, 0, &poll_ts, NULL, 8), 0);
	CHECK_EQ(poll_ts.tv_nsec, is_sticky ? ns : 0);
}

static void *has_sticky_timeouts(void *arg)
{
	keeps_time(1);
	return arg;
}

static void *leaves_timeouts(void *arg)
{
	int was = personality(0xffffffff);

	CHECK_EQ(personality((unsigned long)was | STICKY_TIMEOUTS), was);
	keeps_time(1);
	join(start(has_sticky_timeouts, NULL));
	CHECK_EQ(personality((unsigned long)was), was | STICKY_TIMEOUTS);
	keeps_time(0);
	CHECK_EQ(personality((unsigned long)was | STICKY_TIMEOUTS), was);
	return arg;
}

static void forks_with_sticky_timeouts(void)
{
	int was = personality(0xffffffff);
	pid_t pid = fork();

	if (pid == 0) {
		personality((unsigned long)was | STICKY_TIMEOUTS);
		keeps_time(1);
		join(start(has_sticky_timeouts, NULL));
		keeps_time(1);
		_exit(finish());
	}
	reap(pid);
}

static void *changes_personality(void *arg)
{
	int was = personality(0xffffffff);

	CHECK_EQ(personality((unsigned long)was | ADDR_NO_RANDOMIZE), was);
	sleep_ns(MS);
	CHECK_EQ(personality(0xffffffff), was | ADDR_NO_RANDOMIZE);
	return arg;
}

static void *takes_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	if (me % 2)
		become_bound();
	for (int i = 0; i < TURNS; i++) {
		pthread_mutex_lock(&lock);
		while (turn != me)
			pthread_cond_wait(&cond, &lock);
		turn = (turn + 1) % NR;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
	ADD(&nr_signals, 1);
}

static void *waits_for_signals(void *arg)
{
	int *p = arg;
	char c;

	become_bound();
	STORE(&p[2], 1);
	/* spins, then blocks in a pipe, then sleeps: a signal reaches it everywhere */
	while (LOAD(&nr_signals) < 1)
		;
	STORE(&p[2], 2);
	CHECK_ERRNO(read(p[0], &c, 1), EINTR);
	STORE(&p[2], 3);
	while (LOAD(&nr_signals) < 3)
		usleep(1000000);
	/* the writer is a thread of the other kind */
	while (read(p[0], &c, 1) != 1)
		CHECK_EQ(errno, EINTR); /* by a signal that came late */
	STORE(&p[2], 4);
	return NULL;
}

static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int p[3] = { 0 };
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	CHECK_SYS(pipe(p));
	t = start(waits_for_signals, p);
	while (LOAD(&p[2]) != 1)
		sleep_ns(MS);
	pthread_kill(t, SIGUSR1);
	while (LOAD(&p[2]) != 2)
		sleep_ns(MS);
	while (LOAD(&p[2]) == 2) {
		let_others_block();
		if (LOAD(&p[2]) == 2)
			pthread_kill(t, SIGUSR1);
	}
	while (LOAD(&nr_signals) < 3)
		pthread_kill(t, SIGUSR1);
	let_others_block();
	CHECK_EQ(write(p[1], "x", 1), 1);
	join(t);
	CHECK_EQ(p[2], 4);
	close(p[0]);
	close(p[1]);
}

static void *forks(void *arg)
{
	pid_t pid;

	become_bound();
	CHECK_SYS(chdir("/"));
	pid = fork();
	if (pid == 0) {
		sees_home("/");
		join(start(sees_home, "/"));
		_exit(finish());
	}
	reap(pid);
	return arg;
}

static void *is_cancelled(void *arg)
{
	become_bound();
	STORE((int *)arg, 1);
	while (pause() == -1)
		;
	return arg;
}

static void *ends_bound(void *arg)
{
	become_bound();
	CHECK_SYS(chdir("/"));
	return arg;
}

static void *spins(void *arg)
{
	while (!LOAD(&stop))
		ADD((int *)arg, 1);
	return NULL;
}

int main(void)
{
	int ready = 0, rounds[2] = { 0 };
	pthread_t t[NR];

	CHECK(getcwd(home, sizeof(home)));
	t[0] = start(moves, NULL);
	t[1] = start(sees_home, home);
	join(t[0]);
	join(t[1]);
	sees_home(home);
	ok("a directory of its own");

	t[0] = start(filters, NULL);
	t[1] = start(is_unfiltered, NULL);
	is_unfiltered(NULL);
	join(t[0]);
	join(t[1]);
	join(start(is_unfiltered, NULL));
	ok("a filter of its own");

	join(start(changes_personality, NULL));
	CHECK(!(personality(0xffffffff) & ADDR_NO_RANDOMIZE));
	keeps_time(0);
	join(start(leaves_timeouts, NULL));
	keeps_time(0);
	forks_with_sticky_timeouts();
	if (geteuid() == 0) {
		join(start(changes_fsuid, NULL));
		CHECK_EQ(setfsuid(-1), 0);
	}
	ok("other things of its own");

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(takes_turns, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("turns with others");

	signals();
	ok("signals");

	check_own_table();
	ok("close_range() with a table of its own");

	join(start(forks, NULL));
	t[0] = start(is_cancelled, &ready);
	while (!LOAD(&ready))
		sched_yield();
	pthread_cancel(t[0]);
	CHECK(join(t[0]) == PTHREAD_CANCELED);
	for (int i = 0; i < 300; i++) {
		join(start(ends_bound, NULL));
		join(start(sees_home, home)); /* no kernel thread is left with the other one */
	}
	ok("fork, cancel, end");

	/* main becomes one while others run: they go on without it */
	t[0] = start(spins, &rounds[0]);
	t[1] = start(spins, &rounds[1]);
	become_bound();
	for (int i = 0; i < 2; i++) {
		int before = LOAD(&rounds[i]);

		while (LOAD(&rounds[i]) == before)
			sleep_ns(MS);
	}
	sleep_ns(50 * MS);
	STORE(&stop, 1);
	join(t[0]);
	join(t[1]);
	ok("main, beside threads that spin");
	return finish();
}
