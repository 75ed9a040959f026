// SPDX-License-Identifier: Apache-2.0
/*
 * Where the user may have only a few kernel threads (RLIMIT_NPROC): a first thread that cannot be made is refused, and the
 * next one may be; as many threads as the kernel allows can all be in calls that block, and whoever can go on does.
 *
 * Each part is a child of its own with a user of its own, which takes root to make.
 */
#include "check.h"

#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define NR_WAITERS 8
#define USERS_FROM 1900000000u /* of nobody; each child adds its ID */

static sem_t are_there;
static char dir[] = "/tmp/weft-few-XXXXXX";
static char path[64];

static void limit_tasks(rlim_t soft)
{
	struct rlimit limit;

	CHECK_SYS(getrlimit(RLIMIT_NPROC, &limit));
	limit.rlim_cur = soft;
	CHECK_SYS(setrlimit(RLIMIT_NPROC, &limit));
}

static void become_somebody(rlim_t tasks)
{
	uid_t user = USERS_FROM + (uid_t)getpid();

	limit_tasks(tasks);
	CHECK_SYS(setresgid(user, user, user));
	CHECK_SYS(setresuid(user, user, user));
}

static void *counts(void *arg)
{
	ADD((int *)arg, 1);
	return arg;
}

/* A thread that has just been joined may count for a moment more. */
static pthread_t start_when_possible(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int ret;

	while ((ret = pthread_create(&t, NULL, fn, arg)) == EAGAIN)
		sched_yield();
	CHECK_PT(ret);
	return t;
}

static void refused_at_first(void)
{
	pthread_t t;
	int nr = 0;

	become_somebody(1);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(pthread_create(&t, NULL, counts, &nr), EAGAIN);
	CHECK_EQ(syscall(SYS_gettid), getpid());
	CHECK(fork() == -1 && errno == EAGAIN);
	limit_tasks(2);
	for (int i = 0; i < 3; i++)
		join(start_when_possible(counts, &nr));
	CHECK_EQ(nr, 3);
}

/* Calls before the first thread still hold: this process has its descriptors in common with a child. */
static void refused_beside_a_child(void)
{
	int fd = open(path, O_RDWR), go[2], nr = 0;
	long pid;
	char c;

	CHECK_SYS(pipe(go));
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(read(go[0], &c, 1) != 1 || fcntl(fd, F_GETFD) < 0);
	CHECK_SYS(pid);
	become_somebody(1);
	CHECK_EQ(pthread_create(&(pthread_t){ 0 }, NULL, counts, &nr), EAGAIN);
	limit_tasks(8);
	join(start_when_possible(counts, &nr));
	CHECK_SYS(unshare(CLONE_FILES));
	CHECK_SYS(close(fd));
	CHECK_EQ(write(go[1], "x", 1), 1);
	reap((pid_t)pid);
}

static void *takes_file_lock(void *arg)
{
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0);
	sem_post(&are_there);
	CHECK_SYS(flock(fd, LOCK_EX));
	CHECK_SYS(close(fd));
	return arg;
}

static void *takes_record_lock(void *arg)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd = open(path, O_RDWR);

	CHECK(fd >= 0);
	sem_post(&are_there);
	CHECK_SYS(fcntl(fd, F_OFD_SETLKW, &lock));
	CHECK_SYS(close(fd));
	return arg;
}

static void *takes_semaphore(void *arg)
{
	struct sembuf down = { .sem_op = -1 };

	sem_post(&are_there);
	CHECK_SYS(semop(*(int *)arg, &down, 1));
	return arg;
}

static void wait_until_there(void)
{
	for (int i = 0; i < NR_WAITERS; i++)
		while (sem_wait(&are_there))
			CHECK_EQ(errno, EINTR);
}

static void join_all(pthread_t *t)
{
	for (int i = 0; i < NR_WAITERS; i++)
		join(t[i]);
}

static void *(*const lockers[])(void *) = { takes_file_lock, takes_record_lock };

/* As many as there may be, each in a call that blocks: who lets them go on is the one that is left. */
static void all_in_locks(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pthread_t t[NR_WAITERS];
	int fd = open(path, O_RDWR);

	become_somebody(1 + NR_WAITERS);
	CHECK_SYS(flock(fd, LOCK_EX));
	CHECK_SYS(fcntl(fd, F_OFD_SETLK, &lock));
	for (int i = 0; i < NR_WAITERS; i++)
		t[i] = start(lockers[i % 2], NULL);
	wait_until_there();
	CHECK_SYS(close(fd));
	join_all(t);
}

static void all_in_semaphores(void)
{
	struct sembuf up = { .sem_op = 1 };
	pthread_t t[NR_WAITERS];
	int id;

	become_somebody(1 + NR_WAITERS);
	id = (int)CHECK_SYS(semget(IPC_PRIVATE, 1, 0600));
	for (int i = 0; i < NR_WAITERS; i++)
		t[i] = start(takes_semaphore, &id);
	wait_until_there();
	for (int i = 0; i < NR_WAITERS; i++)
		CHECK_SYS(semop(id, &up, 1));
	join_all(t);
	CHECK_SYS(semctl(id, 0, IPC_RMID));
}

static void *opens_fifo(void *arg)
{
	int fd;

	sem_post(&are_there);
	fd = open(arg, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_SYS(close(fd));
	return NULL;
}

static void all_in_opens(void)
{
	pthread_t t[NR_WAITERS];
	char fifo[80];
	int fd;

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	CHECK_SYS(mkfifo(fifo, 0666));
	CHECK_SYS(chmod(fifo, 0666));
	become_somebody(1 + NR_WAITERS);
	for (int i = 0; i < NR_WAITERS; i++)
		t[i] = start(opens_fifo, fifo);
	wait_until_there();
	fd = open(fifo, O_RDWR);
	CHECK(fd >= 0);
	join_all(t);
	CHECK_SYS(close(fd));
}

/* Somebody else, a child, has what they wait for: the only thread that goes on is told by a descriptor, and by a timer. */
static void all_but_one_in_locks(void)
{
	int fd = open(path, O_RDWR), pair[2];
	pthread_t t[NR_WAITERS];
	pid_t pid;
	char c;

	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_SYS(flock(fd, LOCK_EX));
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		for (int i = 0; i < 20; i++) {
			if (read(pair[1], &c, 1) != 1 || write(pair[1], &c, 1) != 1)
				_exit(1);
		}
		_exit(read(pair[1], &c, 1)); /* until its end; and it has the lock */
	}
	CHECK_SYS(pid);
	close(pair[1]);
	close(fd);
	become_somebody(1 + NR_WAITERS);
	for (int i = 0; i < NR_WAITERS; i++)
		t[i] = start(takes_file_lock, NULL);
	wait_until_there();
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(write(pair[0], "x", 1), 1);
		CHECK_EQ(read(pair[0], &c, 1), 1);
		sleep_ns(MS);
	}
	close(pair[0]);
	join_all(t);
	reap(pid);
}

static int is_over; /* atomic */

static void *computes(void *arg)
{
	while (!LOAD(&is_over))
		;
	return arg;
}

static void *locks_and_sleeps(void *arg)
{
	for (int i = 0; i < 20; i++)
		sleep_ns(MS);
	return takes_file_lock(arg);
}

/* All others have to share a kernel thread with one that never waits. */
static void all_but_one_wait_or_compute(void)
{
	int fd = open(path, O_RDWR);
	pthread_t t[3];

	become_somebody(4);
	CHECK_SYS(flock(fd, LOCK_EX));
	t[0] = start(locks_and_sleeps, NULL);
	t[1] = start(locks_and_sleeps, NULL);
	t[2] = start(computes, NULL);
	for (int i = 0; i < 60; i++)
		sleep_ns(MS);
	while (sem_wait(&are_there))
		;
	while (sem_wait(&are_there))
		;
	for (int i = 0; i < 20; i++)
		sleep_ns(MS);
	STORE(&is_over, 1);
	CHECK_SYS(close(fd));
	for (int i = 0; i < 3; i++)
		join(t[i]);
}

static sem_t is_asked, is_answered;

/* A thread of which the kernel keeps something takes a kernel thread for itself: natively it has one anyhow. */
static void *has_something_of_its_own(void *arg)
{
	cpu_set_t all, one;
	int ret;

	CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	ret = sched_setaffinity(0, sizeof(one), &one);
	CHECK(ret == 0 || errno == EAGAIN);
	if (ret == 0) {
		CHECK_SYS(sched_getaffinity(0, sizeof(all), &all));
		CHECK_EQ(CPU_COUNT(&all), 1);
	}
	CHECK(syscall(SYS_setfsuid, getuid()) == (long)getuid());
	for (int i = 0; i < 10; i++) {
		sem_post(&is_answered);
		while (sem_wait(&is_asked))
			;
	}
	return arg;
}

static void bound(void)
{
	pthread_t t;

	become_somebody(2);
	t = start(has_something_of_its_own, NULL);
	for (int i = 0; i < 10; i++) {
		while (sem_wait(&is_answered))
			;
		sem_post(&is_asked);
	}
	join(t);
	join(start_when_possible(counts, &(int){ 0 }));
}

static void *ends_the_process(void *arg)
{
	(void)arg;
	CHECK_SYS(kill(getpid(), SIGTERM));
	return takes_file_lock(NULL);
}

static void all_wait_for_ever(void)
{
	int fd = open(path, O_RDWR);

	CHECK_SYS(flock(fd, LOCK_EX));
	become_somebody(1 + NR_WAITERS);
	for (int i = 1; i < NR_WAITERS; i++)
		(void)start(takes_file_lock, NULL);
	(void)start(ends_the_process, NULL);
	for (;;)
		pause();
}

static int may_end[2];

/* Nobody may take it out of a call whose time would begin anew. */
static void *waits_for_an_hour(void *arg)
{
	int id = (int)CHECK_SYS(semget(IPC_PRIVATE, 1, 0600));
	const struct timespec hour = { 3600, 0 };
	struct sembuf down = { .sem_op = -1 };

	CHECK_EQ(write(may_end[1], &id, sizeof(id)), sizeof(id));
	(void)semtimedop(id, &down, 1, &hour);
	return arg;
}

static void ends_it(int signal)
{
	_exit(signal);
}

static void one_waits_for_an_hour(void)
{
	(void)signal(SIGTERM, ends_it);
	become_somebody(2);
	(void)start(waits_for_an_hour, NULL);
	for (;;)
		pause();
}

static void ended_from_outside(void)
{
	int status, id;
	pid_t pid;

	CHECK_SYS(pipe(may_end));
	pid = fork();
	if (pid == 0)
		one_waits_for_an_hour();
	CHECK_SYS(pid);
	CHECK_EQ(read(may_end[0], &id, sizeof(id)), sizeof(id));
	/* Before it waits, another one could take the signal and give its place away in the handler. */
	while (CHECK_SYS(semctl(id, 0, GETNCNT)) == 0)
		sched_yield();
	CHECK_SYS(kill(pid, SIGTERM));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == SIGTERM);
	CHECK_SYS(semctl(id, 0, IPC_RMID));
}

static void in_child(void (*run)(void), int signal, const char *what)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		run();
		exit(finish());
	}
	CHECK_SYS(pid);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (signal)
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	else
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ok(what);
}

int main(void)
{
	char name[80];
	int fd;

	if (geteuid() != 0) {
		dprintf(2, "only root may become somebody else\n");
		return EXIT_SKIP;
	}
	sem_init(&are_there, 0, 0);
	CHECK(mkdtemp(dir) != NULL);
	CHECK_SYS(chmod(dir, 0777));
	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = (int)CHECK_SYS(open(path, O_RDWR | O_CREAT, 0666));
	CHECK_SYS(fchmod(fd, 0666));
	close(fd);
	in_child(refused_at_first, 0, "a first thread is refused, and a later one is not");
	in_child(refused_beside_a_child, 0,
		 "and the later one is beside a child that shares files");
	in_child(all_in_locks, 0, "all but one wait for locks");
	in_child(all_in_semaphores, 0, "all but one wait for semaphores");
	in_child(all_in_opens, 0, "all but one wait in open");
	in_child(all_but_one_in_locks, 0, "data and time go on beside them");
	in_child(all_but_one_wait_or_compute, 0, "and beside one that computes");
	in_child(bound, 0,
		 "a thread that needs a kernel thread for itself does not take the last one");
	in_child(all_wait_for_ever, SIGTERM, "a signal ends a process that waits for ever");
	in_child(ended_from_outside, 0,
		 "and its handler runs where the only thread with a kernel thread waits for long");
	snprintf(name, sizeof(name), "%s/fifo", dir);
	(void)unlink(name);
	CHECK_SYS(unlink(path));
	CHECK_SYS(rmdir(dir));
	return finish();
}
