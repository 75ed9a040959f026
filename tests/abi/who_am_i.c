// SPDX-License-Identifier: Apache-2.0
/* A thread's questions about its process and its machine: IDs, groups, sessions, limits, times, names, random bytes. */
#include "beside.h"

#include <asm/ldt.h>
#include <asm/prctl.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>

#define SIZE_OF_LOG 10 /* SYSLOG_ACTION_SIZE_BUFFER */

static pid_t pid, parent, group; /* as main saw them, before the first thread */
static uid_t uids[3];
static gid_t gids[3];

static void ids(void)
{
	uid_t u[3];
	gid_t g[3], groups[NGROUPS_MAX];
	int nr = (int)CHECK_SYS(getgroups(NGROUPS_MAX, groups));

	CHECK_EQ(CALL(getpid), pid);
	CHECK_EQ(CALL(getppid), parent);
	CHECK_EQ(CALL(getpgrp), group);
	CHECK_EQ(CALL(getuid), uids[0]);
	CHECK_EQ(CALL(geteuid), uids[1]);
	CHECK_EQ(CALL(getgid), gids[0]);
	CHECK_EQ(CALL(getegid), gids[1]);
	CHECK_SYS(CALL(getresuid, &u[0], &u[1], &u[2]));
	CHECK_SYS(CALL(getresgid, &g[0], &g[1], &g[2]));
	CHECK(memcmp(u, uids, sizeof(u)) == 0);
	CHECK(memcmp(g, gids, sizeof(g)) == 0);
	CHECK_EQ(CALL(getgroups, 0, NULL), nr);
	CHECK_EQ(CALL(getgroups, NGROUPS_MAX, groups), nr);
}

static void *leads_a_session(void *arg)
{
	pid_t self = getpid();

	CHECK_EQ(CALL(setsid), self);
	CHECK_EQ(CALL(getsid, 0), self);
	CHECK_EQ(CALL(getpgrp), self);
	CHECK_EQ(CALL(getppid), pid);
	CHECK_ERRNO(CALL(setsid), EPERM);
	return arg;
}

static void session(void)
{
	pid_t child = (pid_t)CHECK_SYS(fork());

	if (child == 0) {
		join(start(leads_a_session, NULL));
		_exit(finish());
	}
	reap(child);
}

static void *has_limits(void *arg)
{
	struct rlimit r, was;
	int fd;

	CHECK_SYS(CALL(getrlimit, RLIMIT_FSIZE, &was));
	r = (struct rlimit){ .rlim_cur = 5, .rlim_max = was.rlim_max };
	CHECK_SYS(CALL(setrlimit, RLIMIT_FSIZE, &r));
	signal(SIGXFSZ, SIG_IGN);
	fd = (int)CHECK_SYS(CALL(memfd_create, "limited", 0));
	CHECK_EQ(write(fd, "0123456789", 10), 5);
	CHECK_ERRNO(write(fd, "5", 1), EFBIG);
	r.rlim_cur = 1;
	CHECK_SYS(CALL(getrlimit, RLIMIT_FSIZE, &r));
	CHECK_EQ(r.rlim_cur, 5);
	close(fd);
	return arg;
}

static void limits(void)
{
	pid_t child = (pid_t)CHECK_SYS(fork());

	if (child == 0) {
		join(start(has_limits, NULL));
		_exit(finish());
	}
	reap(child);
}

static void machine(void)
{
	struct utsname a, b;
	struct sysinfo info;
	unsigned char bytes[64] = { 0 };
	int sum = 0;

	CHECK_SYS(CALL(uname, &a));
	CHECK_SYS(uname(&b));
	CHECK_STR(a.sysname, "Linux");
	CHECK_STR(a.release, b.release);
	memset(&info, 0, sizeof(info));
	CHECK_SYS(CALL(sysinfo, &info));
	CHECK(info.totalram > 0 && info.procs > 0);
	CHECK_EQ(CALL(getrandom, bytes, sizeof(bytes), 0), sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		sum += bytes[i];
	CHECK(sum > 0);
	if (!is_refused(CALL(syslog, SIZE_OF_LOG, NULL, 0)))
		CHECK(CALL(syslog, SIZE_OF_LOG, NULL, 0) > 0);
	CHECK_EQ(CALL(sched_get_priority_max, SCHED_FIFO), 99);
	CHECK_EQ(CALL(sched_get_priority_min, SCHED_FIFO), 1);
	CHECK_EQ(CALL(sched_get_priority_max, SCHED_OTHER), 0);
}

/* The calls that are otherwise made in the vDSO, too; of the clock's state only a look. */
static void clocks(void)
{
	struct timex tx = { .modes = 0 };
	struct timeval tv;
	struct tms before, after;
	time_t t = (time_t)CALL(time, NULL), also = 0;
	clock_t at = (clock_t)CALL(times, &before);

	CHECK_SYS(CALL(gettimeofday, &tv, NULL));
	CHECK(tv.tv_usec >= 0 && tv.tv_usec < 1000000);
	CHECK_EQ(CALL(time, &also), also);
	CHECK(t > 1000000000 && also > 1000000000);
	CHECK((clock_t)CALL(times, &after) - at >= 0);
	CHECK(after.tms_utime >= before.tms_utime && after.tms_stime >= before.tms_stime);
	if (!is_refused(CALL(adjtimex, &tx)))
		CHECK(tx.tick > 0);
	tx = (struct timex){ .modes = 0 };
	if (!is_refused(CALL(clock_adjtime, CLOCK_REALTIME, &tx)))
		CHECK(tx.tick > 0);
}

static void *asks_bases(void *arg)
{
	unsigned long fs = 0;

	CHECK_SYS(CALL(arch_prctl, ARCH_GET_FS, &fs));
	CHECK_EQ(fs, (unsigned long)pthread_self()); /* where libc keeps a thread's own */
	return arg;
}

static void bases(void)
{
	asks_bases(NULL);
	join(start(asks_bases, NULL));
}

/* A segment of the process's own, as emulators of old programs make them. */
static void segments(void)
{
	struct user_desc d = { .entry_number = 0, .limit = 15, .seg_32bit = 1 };
	unsigned char table[16] = { 0 };

	if ((int)CALL(modify_ldt, 1, &d, sizeof(d)) != 0) /* its errors are no longer than an int */
		return;
	CHECK((int)CALL(modify_ldt, 0, table, sizeof(table)) >= 8);
	CHECK_EQ(table[0], 15);
}

int main(void)
{
	pid = getpid();
	parent = getppid();
	group = getpgrp();
	CHECK_SYS(getresuid(&uids[0], &uids[1], &uids[2]));
	CHECK_SYS(getresgid(&gids[0], &gids[1], &gids[2]));

	start_beside();
	calls(ids, "IDs");
	calls(session, "a session of a child's");
	calls(limits, "limits of a child's");
	calls(machine, "the machine");
	calls(clocks, "clocks");
	calls(bases, "the base of thread-local storage");
	calls(segments, "segments of its own");
	stop_beside();
	return finish();
}
