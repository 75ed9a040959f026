// SPDX-License-Identifier: Apache-2.0
/*
 * A process is killed, or executes another program, while its threads hold robust locks that it shares: who waits
 * for them, or comes later, in whatever process, is told and goes on.
 */
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "check.h"

#define NR_HOLDERS 4

enum end {
	BY_KILL,
	BY_EXEC,
	NR_ENDS
};

struct shared {
	pthread_mutex_t lock[NR_HOLDERS];
	pthread_mutex_t last;
	int nr_held, nr_waiting, may_exec;
};

static struct shared *s;
static int memory, system_v;
static char self_name[] = "pshared_killed";

static void map(int fd)
{
	memory = fd;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED) {
		perror("mmap");
		_exit(1);
	}
}

static void *does_nothing(void *arg)
{
	return arg;
}

/* Memory that a process gets when it has threads already, of one kind or the other. */
static void map_late(void)
{
	join(start(does_nothing, NULL));
	if (!system_v) {
		map(memory);
		return;
	}
	s = shmat(system_v, NULL, 0);
	if (s == (void *)-1) {
		perror("shmat");
		_exit(1);
	}
}

static void unmap(void)
{
	CHECK_SYS(system_v ? shmdt(s) : munmap(s, sizeof(*s)));
	s = NULL;
}

static void init(int protocol)
{
	pthread_mutexattr_t a;

	memset(s, 0, sizeof(*s));
	CHECK_PT(pthread_mutexattr_init(&a));
	CHECK_PT(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	CHECK_PT(pthread_mutexattr_setprotocol(&a, protocol));
	for (int i = 0; i < NR_HOLDERS; i++)
		CHECK_PT(pthread_mutex_init(&s->lock[i], &a));
	CHECK_PT(pthread_mutex_init(&s->last, &a));
}

/* One spins, the others wait; the second holds two. */
static void *holds(void *arg)
{
	intptr_t i = (intptr_t)arg;

	CHECK_PT(pthread_mutex_lock(&s->lock[i]));
	if (i == 1)
		CHECK_PT(pthread_mutex_lock(&s->last));
	ADD(&s->nr_held, 1);
	if (i == 0)
		for (;;)
			;
	for (;;)
		pause();
	return NULL;
}

static pid_t start_holder(enum end end)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!s)
		map_late();
	for (intptr_t i = 0; i < NR_HOLDERS; i++)
		start(holds, (void *)i);
	while (!LOAD(&s->may_exec))
		sleep_ns(MS);
	if (end == BY_EXEC)
		execl("/proc/self/exe", self_name, "sleep", NULL);
	_exit(1);
}

static void take_over(int i)
{
	CHECK_EQ(pthread_mutex_lock(&s->lock[i]), EOWNERDEAD);
	if (i % 2)
		CHECK_PT(pthread_mutex_consistent(&s->lock[i]));
	CHECK_PT(pthread_mutex_unlock(&s->lock[i]));
	/* who unlocks it as it is makes it useless for all */
	CHECK_EQ(pthread_mutex_lock(&s->lock[i]), i % 2 ? 0 : ENOTRECOVERABLE);
	if (i % 2)
		CHECK_PT(pthread_mutex_unlock(&s->lock[i]));
}

static void *waits(void *arg)
{
	ADD(&s->nr_waiting, 1);
	take_over((int)(intptr_t)arg);
	return NULL;
}

/* Waits for locks 1 and 2 while their owners live, and for the others when they are dead. */
static void wait_and_come_late(int to_main)
{
	pthread_t t[2];
	char c = 0;

	t[0] = start(waits, (void *)1);
	t[1] = start(waits, (void *)2);
	while (read(to_main, &c, 1) == 1)
		; /* the end of the pipe: the owner is dead */
	take_over(0);
	take_over(3);
	join(t[0]);
	join(t[1]);
	CHECK_EQ(pthread_mutex_lock(&s->last), EOWNERDEAD);
	CHECK_PT(pthread_mutex_consistent(&s->last));
	CHECK_PT(pthread_mutex_unlock(&s->last));
}

static pid_t start_waiter(int is_native, int from, int other)
{
	char fd[16], mem[16];
	pid_t pid = fork();

	if (pid)
		return pid;
	close(other);
	if (!is_native) {
		wait_and_come_late(from);
		_exit(finish());
	}
	snprintf(fd, sizeof(fd), "%d", from);
	snprintf(mem, sizeof(mem), "%d", memory);
	setenv("WEFT", "0", 1);
	execl("/proc/self/exe", self_name, fd, mem, NULL);
	_exit(126);
}

static void scene(enum end end, int is_native)
{
	pid_t holder, waiter;
	int pipes[2];

	holder = start_holder(end);
	CHECK_SYS(holder);
	if (!s)
		map_late();
	while (LOAD(&s->nr_held) < NR_HOLDERS)
		sleep_ns(MS);
	CHECK_SYS(pipe(pipes));
	waiter = start_waiter(is_native, pipes[0], pipes[1]);
	CHECK_SYS(waiter);
	while (LOAD(&s->nr_waiting) < 2)
		sleep_ns(MS);
	let_others_block();
	if (end == BY_EXEC)
		STORE(&s->may_exec, 1);
	else
		CHECK_SYS(kill(holder, SIGKILL));
	if (end == BY_KILL)
		CHECK_EQ(waitpid(holder, NULL, 0), holder);
	close(pipes[1]);
	close(pipes[0]);
	reap(waiter);
	if (end == BY_EXEC) {
		CHECK_SYS(kill(holder, SIGKILL));
		CHECK_EQ(waitpid(holder, NULL, 0), holder);
	}
	/* nothing else of the holder is a child of ours */
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "sleep"))
		for (;;)
			pause();
	if (argc > 2) {
		map(atoi(argv[2]));
		wait_and_come_late(atoi(argv[1]));
		return finish();
	}
	map((int)CHECK_SYS(memfd_create("locks", 0)));
	CHECK_SYS(ftruncate(memory, sizeof(*s)));
	join(start(does_nothing, NULL));

	init(PTHREAD_PRIO_NONE);
	scene(BY_KILL, 0);
	ok("killed, and its kind waits");
	init(PTHREAD_PRIO_NONE);
	scene(BY_KILL, 1);
	ok("killed, and a plain process waits");
	init(PTHREAD_PRIO_INHERIT);
	scene(BY_KILL, 0);
	ok("locks that lend priority");
	init(PTHREAD_PRIO_NONE);
	scene(BY_EXEC, 0);
	ok("it executes another program");
	init(PTHREAD_PRIO_NONE);
	unmap();
	scene(BY_KILL, 0);
	ok("memory that comes after the first thread");
	unmap();
	system_v = (int)CHECK_SYS(shmget(IPC_PRIVATE, sizeof(*s), 0600));
	map_late();
	init(PTHREAD_PRIO_NONE);
	unmap();
	scene(BY_KILL, 0);
	CHECK_SYS(shmctl(system_v, IPC_RMID, NULL));
	ok("System V memory");
	return finish();
}
