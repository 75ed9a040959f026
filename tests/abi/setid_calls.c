// SPDX-License-Identifier: Apache-2.0
/*
 * Each of libc's functions that change users and groups, called by one thread: when it has returned, every kernel
 * thread of the process has the change. Root only. See setuid_all for what happens at the same time.
 */
#include "tasks.h"

#include <grp.h>
#include <sys/prctl.h>

#define NR 4
#define USER 4321
#define GROUP 8765

static pthread_barrier_t barrier;

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return arg;
}

struct change {
	const char *name;
	const char *field;
	int want[NR_IDS];
	int (*fn)(void);
};

static int set_uid(void)
{
	return setuid(USER);
}

static int set_euid(void)
{
	return seteuid(USER);
}

static int set_reuid(void)
{
	return setreuid(USER, 0);
}

static int set_resuid(void)
{
	return setresuid(USER, 0, 1);
}

static int set_gid(void)
{
	return setgid(GROUP);
}

static int set_egid(void)
{
	return setegid(GROUP);
}

static int set_regid(void)
{
	return setregid(GROUP, 0);
}

static int set_resgid(void)
{
	return setresgid(GROUP, 0, 1);
}

static int set_groups(void)
{
	const gid_t groups[] = { 11, 22, 33, 44 };

	return setgroups(4, groups);
}

static int init_groups(void)
{
	return initgroups("no such user of this machine", GROUP);
}

static int drop_groups(void)
{
	return setgroups(0, NULL);
}

static const struct change changes[] = {
	{ "setuid", "Uid:", { USER, USER, USER, USER }, set_uid },
	{ "seteuid", "Uid:", { 0, USER, 0, USER }, set_euid },
	{ "setreuid", "Uid:", { USER, 0, 0, 0 }, set_reuid },
	{ "setresuid", "Uid:", { USER, 0, 1, 0 }, set_resuid },
	{ "setgid", "Gid:", { GROUP, GROUP, GROUP, GROUP }, set_gid },
	{ "setegid", "Gid:", { 0, GROUP, 0, GROUP }, set_egid },
	{ "setregid", "Gid:", { GROUP, 0, 0, 0 }, set_regid },
	{ "setresgid", "Gid:", { GROUP, 0, 1, 0 }, set_resgid },
	{ "setgroups", "Groups:", { 11, 22, 33, 44 }, set_groups },
	{ "setgroups to none", "Groups:", { -1, -1, -1, -1 }, drop_groups },
	{ "initgroups", "Groups:", { GROUP, -1, -1, -1 }, init_groups },
};

static void *does(void *arg)
{
	const struct change *c = arg;

	CHECK_SYS(c->fn());
	return NULL;
}

/* In a process of its own: what was given up does not come back. */
static void change(const struct change *c)
{
	pid_t process = fork(), looks;
	pthread_t t[NR];

	CHECK_SYS(process);
	if (process) {
		reap(process);
		ok(c->name);
		return;
	}
	pthread_barrier_init(&barrier, NULL, NR + 1);
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	pthread_barrier_wait(&barrier);
	join(start(does, (void *)c));
	prctl(PR_SET_DUMPABLE, 1); /* else /proc files of who changed its ids belong to root */
	check_tasks_of(getpid(), c->field, c->want);
	looks = fork();
	if (looks == 0) { /* sees the kernel threads, under weft */
		check_tasks_of(getppid(), c->field, c->want);
		_exit(finish());
	}
	reap(looks);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	_exit(finish());
}

int main(void)
{
	if (geteuid() != 0)
		return EXIT_SKIP;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		change(&changes[i]);
	return finish();
}
