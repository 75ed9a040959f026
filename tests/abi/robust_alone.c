// SPDX-License-Identifier: Apache-2.0
/*
 * A program with robust locks in shared memory has no children that it did not make: not as the first process of a
 * namespace, not as one that takes in orphans, and not when it has executed another program. The process beside it, if
 * anything does, has no rights, and ends with it even when somebody has stopped it.
 */
#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define NOBODY 65534

static int may_end;

static void *waits(void *arg)
{
	while (!LOAD(&may_end))
		sleep_ns(MS);
	return arg;
}

/* Needed, beside a thread, before somebody has to see to the locks of the dead. */
static void share_lock(void)
{
	pthread_mutexattr_t a;
	pthread_mutex_t *m;

	CHECK_PT(pthread_mutexattr_init(&a));
	CHECK_PT(pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED));
	CHECK_PT(pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST));
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(m != MAP_FAILED);
	CHECK_PT(pthread_mutex_init(m, &a));
}

static pthread_t begin(void)
{
	share_lock();
	return start(waits, NULL);
}

static void end(pthread_t t)
{
	STORE(&may_end, 1);
	join(t);
	STORE(&may_end, 0);
}

static void check_no_child(void)
{
	siginfo_t info;

	CHECK_ERRNO(wait(NULL), ECHILD);
	CHECK_ERRNO(waitpid(-1, NULL, WNOHANG), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(-1, NULL, __WALL), ECHILD);
	CHECK_ERRNO(waitpid(-1, NULL, __WALL | WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(-1, NULL, __WCLONE | WNOHANG), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | __WALL), ECHILD);
}

/* It has a child, and then none. */
static void check_children(void)
{
	int status = 0, to_child[2];
	char c;
	pid_t pid;

	check_no_child();
	CHECK_SYS(pipe(to_child));
	pid = fork();
	if (!pid) {
		close(to_child[1]);
		_exit(read(to_child[0], &c, 1) ? 1 : 7);
	}
	CHECK_EQ(waitpid(-1, NULL, __WALL | WNOHANG), 0);
	close(to_child[0]);
	close(to_child[1]);
	CHECK_EQ(waitpid(-1, &status, __WALL), pid);
	CHECK_EQ(WEXITSTATUS(status), 7);
	check_no_child();
}

/* Runs fn in a child that has never had a thread, so that all of it begins there. */
static void in_child(int (*fn)(void), int flags)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		if (flags && unshare(flags))
			_exit(EXIT_SKIP);
		if (flags) {
			pid = fork();
			if (pid) {
				waitpid(pid, &status, 0);
				_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
			}
		}
		_exit(fn());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == EXIT_SKIP));
}

static int as_usual(void)
{
	pthread_t t = begin();

	check_children();
	end(t);
	check_children();
	return finish();
}

static int as_reaper(void)
{
	CHECK_SYS(prctl(PR_SET_CHILD_SUBREAPER, 1));
	return as_usual();
}

static int as_later_reaper(void)
{
	pthread_t t = begin();

	CHECK_SYS(prctl(PR_SET_CHILD_SUBREAPER, 1));
	check_children();
	end(t);
	check_children();
	return finish();
}

/* Its first child is the first process there. */
static int makes_namespace(void)
{
	int status = 0;
	pid_t pid;

	STORE(&may_end, 1);
	join(start(waits, NULL));
	if (unshare(CLONE_NEWPID))
		return EXIT_SKIP;
	share_lock();
	pid = fork();
	if (!pid)
		_exit(getpid() == 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(WEXITSTATUS(status), 1);
	/* it was the first, and with it the namespace has ended */
	CHECK_ERRNO(fork(), ENOMEM);
	return finish();
}

/* --- who runs beside it --- */

static int status_has(int pid, const char *field, const char *value)
{
	char path[64], line[256], want[128];
	int found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	snprintf(want, sizeof(want), "%s:\t%s\n", field, value);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		found |= !strcmp(line, want);
	if (f)
		fclose(f);
	return found;
}

static int parent_of(int pid)
{
	char path[64], line[256];
	int parent = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "PPid: %d", &parent);
	if (f)
		fclose(f);
	return parent;
}

/* The process of that name below pid, or 0. */
static int beside(int pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int found = 0;

	while (dir && (entry = readdir(dir))) {
		int other = atoi(entry->d_name);

		if (other && parent_of(other) == pid && status_has(other, "Name", "weft-heir"))
			found = other;
	}
	if (dir)
		closedir(dir);
	return found;
}

static void check_core_limit(int pid)
{
	char path[64], line[256];
	unsigned long soft = 0, hard = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "Max core file size %lu %lu", &soft, &hard);
	if (f)
		fclose(f);
	CHECK(soft <= 1 && hard <= 1);
}

/* In a namespace with few groups no other one can be had, and what is permitted stays as a bar. */
static int has_other_group(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(!geteuid() && setresgid(-1, -1, NOBODY));
	waitpid(pid, &status, 0);
	return !status;
}

/* The same user without any capability may look into neither. */
static void check_closed(int pid)
{
	pid_t child = fork();

	if (!child) {
		struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
		struct __user_cap_data_struct none[2] = { 0 };
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/mem", pid);
		CHECK_SYS(syscall(SYS_capset, &header, none));
		CHECK_ERRNO(open(path, O_RDONLY), EACCES);
		_exit(finish());
	}
	reap(child);
}

enum stand_by {
	AS_IT_IS,
	AS_ANOTHER_USER,
	IN_ANOTHER_SESSION,
	NR_STAND_BYS
};

static int stands_by(enum stand_by how)
{
	char c = 'x';

	(void)begin();
	if (how == AS_ANOTHER_USER && !geteuid() && has_other_group())
		CHECK_SYS(setresuid(NOBODY, NOBODY, NOBODY));
	if (how == IN_ANOTHER_SESSION)
		CHECK_SYS(setsid());
	CHECK_EQ(write(3, &c, 1), 1);
	for (;;)
		pause();
	return 1;
}

static int is_stopped(int pid)
{
	return status_has(pid, "State", "T (stopped)");
}

static void look_beside(enum stand_by how)
{
	static const char none[] = "0000000000000000";
	int to_us[2], pid, other, fd;
	char c;

	CHECK_SYS(pipe(to_us));
	pid = fork();
	if (!pid) {
		if (to_us[1] != 3)
			dup2(to_us[1], 3);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(stands_by(how));
	}
	CHECK_EQ(read(to_us[0], &c, 1), 1);
	close(to_us[0]);
	close(to_us[1]);
	other = beside(pid);
	fd = other ? (int)syscall(SYS_pidfd_open, other, 0) : -1;
	if (fd >= 0) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		CHECK(status_has(other, "CapEff", none));
		CHECK(!has_other_group() || status_has(other, "CapPrm", none));
		CHECK(status_has(other, "CapInh", none));
		CHECK(status_has(other, "CapAmb", none));
		CHECK(geteuid() || status_has(other, "CapBnd", none));
		CHECK(status_has(other, "NoNewPrivs", "1"));
		CHECK(status_has(other, "Seccomp", "2"));
		check_core_limit(other);
		if (!geteuid()) {
			check_closed(pid);
			check_closed(other);
		}
		CHECK_SYS(kill(other, SIGSTOP));
		while (!is_stopped(other))
			sleep_ns(MS);
		CHECK_SYS(kill(pid, SIGKILL));
		CHECK_EQ(poll(&p, 1, -1), 1);
		close(fd);
	} else {
		CHECK_SYS(kill(pid, SIGKILL));
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

/* --- another program --- */

static char self_name[] = "robust_alone";

static int after_exec(void)
{
	sigset_t pending;

	CHECK_SYS(sigpending(&pending));
	CHECK(!sigismember(&pending, SIGCHLD));
	check_no_child();
	return finish();
}

static int executes(void)
{
	sigset_t set;

	(void)begin();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_ERRNO(execl("/proc/self/nothing", self_name, NULL), ENOENT);
	check_children();
	/* that had children, whose signal is pending */
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) > 0)
		;
	execl("/proc/self/exe", self_name, "after", NULL);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "after"))
		return after_exec();
	in_child(as_usual, 0);
	ok("no children that it did not make");
	in_child(as_reaper, 0);
	ok("nor where it takes in orphans");
	in_child(as_later_reaper, 0);
	ok("nor where it begins to");
	in_child(as_usual, CLONE_NEWPID);
	ok("nor as the first process");
	in_child(makes_namespace, 0);
	ok("nor in the place of a namespace's first");
	in_child(executes, 0);
	ok("nor when it has executed another program");
	for (int i = 0; i < NR_STAND_BYS; i++)
		look_beside((enum stand_by)i);
	ok("what runs beside it has no rights, and ends with it");
	return finish();
}
