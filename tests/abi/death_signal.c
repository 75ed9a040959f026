// SPDX-License-Identifier: Apache-2.0
/*
 * PR_SET_PDEATHSIG is a thread's: it keeps it wherever it runs and whatever it waits for, other threads and children have
 * none, it is gone with the thread, by new credentials, and not by exec; and the process is told when its parent ends.
 */
#include "check.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define NR_BESIDE 16
#define NR_ROUNDS 200
#define GRACE_MS 300 /* the parent has ended, and the signal is on its way */
#define NOBODY 65534

static int stop, nr_running;

static int own(void)
{
	int sig = -1;

	CHECK_SYS(prctl(PR_GET_PDEATHSIG, &sig));
	return sig;
}

static void *moves_about(void *arg)
{
	ADD(&nr_running, 1);
	while (!LOAD(&stop)) {
		sched_yield();
		CHECK_EQ(own(), 0);
	}
	return arg;
}

static void start_beside(pthread_t *t)
{
	for (int i = 0; i < NR_BESIDE; i++)
		t[i] = start(moves_about, NULL);
	while (LOAD(&nr_running) < NR_BESIDE)
		sleep_ns(MS);
}

static void end_beside(pthread_t *t)
{
	STORE(&stop, 1);
	for (int i = 0; i < NR_BESIDE; i++)
		join(t[i]);
	STORE(&stop, 0);
	STORE(&nr_running, 0);
}

static void *sets_and_asks(void *arg)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		int sig = i % 2 ? SIGKILL : SIGUSR1;

		CHECK_SYS(prctl(PR_SET_PDEATHSIG, sig));
		for (int j = 0; j < 3; j++) {
			sched_yield();
			CHECK_EQ(own(), sig);
		}
	}
	CHECK_ERRNO(prctl(PR_SET_PDEATHSIG, 65), EINVAL);
	CHECK_EQ(own(), SIGKILL);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, 0));
	sched_yield();
	CHECK_EQ(own(), 0);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, 0));
	CHECK_ERRNO(prctl(PR_GET_PDEATHSIG, NULL), EFAULT);
	return arg;
}

static void *forks(void *arg)
{
	pid_t pid;

	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	pid = fork();
	if (!pid)
		_exit(own());
	reap(pid);
	CHECK_EQ(own(), SIGKILL);
	return arg;
}

/* --- the parent ends --- */

enum setter {
	MAIN,
	THREAD,
	ENDED_THREAD
};

static int lock_fd;

static void *sets_and_waits(void *arg)
{
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	for (int i = 0; i < NR_ROUNDS; i++)
		sched_yield();
	if (arg)
		flock(lock_fd, LOCK_EX);
	return arg;
}

static void *waits_for_lock(void *arg)
{
	ADD(&nr_running, 1);
	flock(lock_fd, LOCK_EX);
	return arg;
}

/* Writes if it is still there when its parent has ended. */
static void orphan(enum setter setter, int to_parent, int to_main)
{
	pid_t parent = getppid();
	pthread_t t;

	for (int i = 0; i < NR_BESIDE; i++)
		start(waits_for_lock, NULL);
	while (LOAD(&nr_running) < NR_BESIDE)
		sleep_ns(MS);
	if (setter == MAIN) {
		sets_and_waits(NULL);
	} else {
		t = start(sets_and_waits, setter == THREAD ? &stop : NULL);
		if (setter == ENDED_THREAD)
			join(t);
		else
			let_others_block();
	}
	if (write(to_parent, "x", 1) != 1)
		_exit(1);
	while (getppid() == parent)
		sleep_ns(MS);
	for (int i = 0; i < GRACE_MS; i++)
		sleep_ns(MS);
	if (write(to_main, "x", 1) != 1)
		_exit(1);
	_exit(0);
}

static int survives(enum setter setter)
{
	int to_parent[2], to_main[2];
	char c;
	pid_t pid;
	ssize_t n;

	CHECK_SYS(pipe(to_main));
	lock_fd = (int)CHECK_SYS(memfd_create("lock", 0));
	CHECK_SYS(flock(lock_fd, LOCK_EX));
	pid = fork();
	if (!pid) {
		CHECK_SYS(pipe(to_parent));
		/* A lock is one of an open file. */
		if (!fork()) {
			char path[32];

			snprintf(path, sizeof(path), "/proc/self/fd/%d", lock_fd);
			lock_fd = open(path, O_RDWR);
			orphan(setter, to_parent[1], to_main[1]);
		}
		_exit(read(to_parent[0], &c, 1) != 1);
	}
	close(to_main[1]);
	reap(pid);
	n = read(to_main[0], &c, 1);
	close(to_main[0]);
	close(lock_fd);
	return n == 1;
}

/* --- credentials, and another program --- */

static void in_child(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(finish());
	}
	reap(pid);
}

static void changes_user(void)
{
	pthread_t t[NR_BESIDE];

	start_beside(t);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	CHECK_SYS(setresuid(-1, -1, -1));
	CHECK_EQ(own(), SIGKILL);
	CHECK_SYS(setresuid(NOBODY, NOBODY, 0));
	CHECK_EQ(own(), 0);
	end_beside(t);
}

static void changes_user_for_files(void)
{
	pthread_t t[NR_BESIDE];

	start_beside(t);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGKILL));
	setfsuid(NOBODY);
	CHECK_EQ(own(), 0);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGUSR1));
	CHECK_EQ(own(), SIGUSR1);
	end_beside(t);
}

static char self_name[] = "death_signal";

static void *executes(void *arg)
{
	if (arg)
		CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGUSR2));
	CHECK_ERRNO(execl("/proc/self/nothing", self_name, NULL), ENOENT);
	CHECK_EQ(own(), arg ? SIGUSR2 : 0);
	execl("/proc/self/exe", self_name, arg ? "12" : "0", NULL);
	return NULL;
}

static void main_executes(void)
{
	pthread_t t[NR_BESIDE];

	start_beside(t);
	executes(&stop);
}

static void thread_executes(void)
{
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGUSR1));
	join(start(executes, NULL));
}

static void thread_executes_with_one(void)
{
	join(start(executes, &stop));
}

int main(int argc, char **argv)
{
	pthread_t t[NR_BESIDE];

	if (argc > 1)
		return own() != atoi(argv[1]);
	/* Before the first thread, and from then on. */
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, SIGUSR2));
	start_beside(t);
	CHECK_EQ(own(), SIGUSR2);
	sets_and_asks(NULL);
	ok("main keeps it");
	join(start(sets_and_asks, NULL));
	ok("so does a thread");
	join(start(forks, NULL));
	forks(NULL);
	CHECK_SYS(prctl(PR_SET_PDEATHSIG, 0));
	ok("children have none");
	end_beside(t);

	CHECK(!survives(MAIN));
	CHECK(!survives(THREAD));
	ok("the parent ends");
	CHECK(survives(ENDED_THREAD));
	ok("the thread was gone");
	if (!geteuid()) {
		in_child(changes_user);
		in_child(changes_user_for_files);
	}
	ok("new credentials end it");
	in_child(main_executes);
	in_child(thread_executes);
	in_child(thread_executes_with_one);
	ok("it goes along to another program");
	return finish();
}
