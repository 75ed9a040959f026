// SPDX-License-Identifier: Apache-2.0
/*
 * setuid and its family in one thread change every kernel thread of the process. Root only.
 */
#include <grp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include "tasks.h"

#define NR 8

static int stop;
static pthread_barrier_t barrier;

/* As the process sees itself, and as a child does: that one sees kernel threads under weft, too. */
static void check_all_tasks(const char *field, const int ids[NR_IDS])
{
	pid_t pid;

	check_tasks_of(getpid(), field, ids);
	pid = fork();
	if (pid == 0) {
		check_tasks_of(getppid(), field, ids);
		_exit(finish());
	}
	reap(pid);
}

static void check_all_have(const char *field, int id)
{
	check_all_tasks(field, (const int[NR_IDS]){ id, id, id, id });
}

/* Keeps something to itself that Linux keeps per kernel thread. */
static void *waits_bound(void *arg)
{
	CHECK_SYS(unshare(CLONE_FS));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK_EQ(getuid(), 4321);
	return arg;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	if (arg)
		while (!LOAD(&stop))
			;
	pthread_barrier_wait(&barrier);
	CHECK_EQ(getuid(), 4321);
	CHECK_EQ(geteuid(), 4321);
	CHECK_EQ(getgid(), 8765);
	return NULL;
}

static void *changes(void *arg)
{
	CHECK_SYS(setresgid(8765, 8765, 8765));
	CHECK_SYS(setresuid(4321, 4321, 4321));
	CHECK_ERRNO(setuid(0), EPERM);
	return arg;
}

static void child_side(void)
{
	pthread_t t[NR];

	pthread_barrier_init(&barrier, NULL, NR + 1);
	for (int i = 0; i < NR; i++)
		t[i] = start(i == 1 ? waits_bound : waits, i == 0 ? t : NULL);
	pthread_barrier_wait(&barrier);
	join(start(changes, NULL));
	/* Else the /proc files of a process that changed its ids belong to root. */
	prctl(PR_SET_DUMPABLE, 1);
	check_all_have("Uid:", 4321);
	check_all_have("Gid:", 8765);
	STORE(&stop, 1);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	_exit(finish());
}

static void *is_root(void *arg)
{
	CHECK_EQ(syscall(SYS_getuid), 0);
	return arg;
}

static void *inherited(void *arg)
{
	CHECK_EQ(syscall(SYS_getuid), 4321);
	CHECK_EQ(syscall(SYS_getgid), 8765);
	return arg;
}

static void *is_anybody(void *arg)
{
	(void)syscall(SYS_getuid);
	return arg;
}

/* Servers that act for many users call the kernel directly, and mean one thread. */
static void *alone(void *arg)
{
	CHECK_SYS(syscall(SYS_setresgid, 8765, 8765, 8765));
	CHECK_SYS(syscall(SYS_setresuid, 4321, 4321, -1));
	inherited(NULL);
	sleep_ns(MS);
	inherited(NULL);
	join(start(inherited, NULL));
	CHECK_SYS(syscall(SYS_setresuid, 0, 0, -1));
	return arg;
}

/* The same change again and again, and others in between, while threads come and go: none is left behind. */
static void *comes_and_goes(void *arg)
{
	while (!LOAD((int *)arg))
		join(start(is_anybody, NULL));
	return arg;
}

static void *is_same_group(void *arg)
{
	CHECK_EQ(syscall(SYS_getegid), (intptr_t)arg);
	return arg;
}

static void *changes_group(void *arg)
{
	intptr_t group = (intptr_t)arg;

	CHECK_SYS(setresgid((gid_t)-1, (gid_t)group, (gid_t)-1));
	return arg;
}

/* The address is the same each time; what lies there is not. */
static gid_t group_list[2];

static void *has_groups(void *arg)
{
	gid_t got[2] = { 0 };

	CHECK_EQ(syscall(SYS_getgroups, 2, got), 2);
	CHECK_EQ(got[0], group_list[0]);
	CHECK_EQ(got[1], group_list[1]);
	pthread_barrier_wait(&barrier);
	return arg;
}

static void same_list_other_groups(void)
{
	gid_t was[64];
	int nr = (int)CHECK_SYS(getgroups(64, was));

	pthread_barrier_init(&barrier, NULL, NR);
	for (gid_t i = 0; i < 4; i++) {
		pthread_t t[NR];

		group_list[0] = 100 + i % 3;
		group_list[1] = 200 + i % 2;
		CHECK_SYS(setgroups(2, group_list));
		for (int k = 0; k < NR; k++)
			t[k] = start(has_groups, NULL);
		for (int k = 0; k < NR; k++)
			join(t[k]);
		check_all_tasks("Groups:", (const int[NR_IDS]){ (int)group_list[0],
								(int)group_list[1], -1, -1 });
	}
	CHECK_SYS(setgroups((size_t)nr, was));
	pthread_barrier_destroy(&barrier);
}

/* One thread changes one of three: all have that, and the others as they were. */
static void one_of_three(void)
{
	static const int groups[] = { 8765, 4321, 4321, 0 };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		join(start(changes_group, (void *)(intptr_t)groups[i]));
		check_all_tasks("Gid:", (const int[NR_IDS]){ 0, groups[i], 0, groups[i] });
	}
}

/* Has gone its own way; then all are told what they were told last. */
static void *goes_alone(void *arg)
{
	CHECK_SYS(syscall(SYS_setresgid, -1, 4321, -1));
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK_EQ(syscall(SYS_getegid), 0);
	return arg;
}

static void brought_back(void)
{
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	join(start(changes_group, (void *)0));
	t = start(goes_alone, NULL);
	pthread_barrier_wait(&barrier);
	CHECK_EQ(syscall(SYS_getegid), 0);
	join(start(changes_group, (void *)0));
	pthread_barrier_wait(&barrier);
	join(t);
	pthread_barrier_destroy(&barrier);
}

static void again_and_again(void)
{
	static const int groups[] = { 8765, 8765, 0, 8765, 0, 0 };
	int ends = 0;
	pthread_t other = start(comes_and_goes, &ends), t[NR];

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
			void *group = (void *)(intptr_t)groups[i];

			for (int k = 0; k < NR; k++)
				t[k] = start(changes_group, group);
			for (int k = 0; k < NR; k++)
				join(t[k]);
			for (int k = 0; k < NR; k++)
				t[k] = start(is_same_group, group);
			for (int k = 0; k < NR; k++)
				join(t[k]);
			is_same_group(group);
		}
		/* one thread alone, in between */
		join(start(alone, NULL));
	}
	STORE(&ends, 1);
	join(other);
}

int main(void)
{
	pthread_t t;

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return EXIT_SKIP;
	}
	t = start(alone, NULL);
	join(t);
	CHECK_EQ(getuid(), 0);
	CHECK_EQ(getgid(), 0);
	join(start(is_root, NULL));
	ok("the bare call changes one thread");
	again_and_again();
	ok("the same change again, and others in between");
	one_of_three();
	ok("the effective group alone");
	brought_back();
	ok("a thread that went its own way is brought back");
	same_list_other_groups();
	ok("another list of groups at the same address");

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			child_side();
		CHECK_SYS(pid);
		reap(pid);
	}
	ok("ids of all kernel threads change together");
	return finish();
}
