// SPDX-License-Identifier: Apache-2.0
/*
 * Threads as /proc/self shows them: the list, names, states, numbers; by every way to write the path.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "check.h"

#define NR 6

static int tids[NR], stop;
static pthread_barrier_t barrier;

static void *waits(void *arg)
{
	int i = (int)(intptr_t)arg;
	char name[16];

	snprintf(name, sizeof(name), "waits ) %d",
		 i); /* a name that misleads who reads stat naively */
	prctl(PR_SET_NAME, name);
	tids[i] = gettid();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void *spins(void *arg)
{
	tids[(intptr_t)arg] = gettid();
	pthread_barrier_wait(&barrier);
	while (!LOAD(&stop))
		;
	pthread_barrier_wait(&barrier);
	return NULL;
}

/* The list, read twice over: 1 where each of ours is in it exactly once, and nobody else but main. */
static int lists_all(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int seen, is_right = dir != NULL;

	for (int round = 0; dir && round < 2; round++) {
		seen = 0;
		while ((e = readdir(dir))) {
			int tid = atoi(e->d_name), is_known = tid == getpid();

			if (e->d_name[0] == '.')
				continue;
			for (int i = 0; i < NR; i++)
				is_known |= tid == tids[i];
			is_right &= is_known;
			seen++;
		}
		is_right &= seen == NR + 1;
		rewinddir(dir);
	}
	if (dir)
		closedir(dir);
	return is_right;
}

static char *read_file(const char *format, int tid)
{
	static char text[8192];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), format, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
	return text;
}

static long field_of_status(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static void looks_at(int tid, const char *name, char state)
{
	char want[64], got = 0, *text;
	struct stat st;
	int pid = 0;

	snprintf(want, sizeof(want), "%s\n", name);
	CHECK_STR(read_file("/proc/self/task/%d/comm", tid), want);
	text = read_file("/proc/self/task/%d/stat", tid);
	CHECK_EQ(strtol(text, NULL, 10), tid);
	snprintf(want, sizeof(want), " (%s) ", name);
	CHECK(strstr(text, want));
	/* a spinning one may wait for a processor, one that waits is still on its way there for a moment */
	for (;;) {
		text = read_file("/proc/self/task/%d/stat", tid);
		CHECK_EQ(sscanf(strrchr(text, ')') + 1, " %c %d", &got, &pid), 2);
		if (got == state)
			break;
		sleep_ns(5 * MS);
	}
	CHECK_EQ(pid, getppid());
	text = read_file("/proc/self/task/%d/status", tid);
	CHECK_EQ(field_of_status(text, "\nPid:"), tid);
	CHECK_EQ(field_of_status(text, "\nTgid:"), getpid());
	CHECK_EQ(field_of_status(text, "\nThreads:"), NR + 1);
	snprintf(want, sizeof(want), "/proc/self/task/%d", tid);
	CHECK_SYS(stat(want, &st));
	CHECK(S_ISDIR(st.st_mode));
	snprintf(want, sizeof(want), "/proc/self/task/%d/maps", tid);
	CHECK_SYS(access(want, R_OK));
	CHECK(strstr(read_file("/proc/self/task/%d/maps", tid), "r-xp"));
	CHECK(strstr(read_file("/proc/%d/comm", tid), name));
}

static void *looks_at_itself(void *arg)
{
	char link[64] = { 0 }, want[64], text[256];
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	CHECK_SYS(readlink("/proc/thread-self", link, sizeof(link) - 1));
	snprintf(want, sizeof(want), "%d/task/%d", getpid(), gettid());
	CHECK_STR(link, want);
	CHECK(strstr(read_file("/proc/thread-self/status", 0), "\nSigBlk:\t0000000000000800\n"));
	/* names of oneself and of others, the way that libc does it */
	fd = CHECK_SYS(open("/proc/thread-self/comm", O_RDWR));
	CHECK_EQ(write(fd, "by-file", 7), 7);
	close(fd);
	CHECK_PT(pthread_getname_np(pthread_self(), text, sizeof(text)));
	CHECK_STR(text, "by-file");
	fd = CHECK_SYS(open("/proc/self/comm", O_WRONLY | O_TRUNC));
	CHECK_EQ(write(fd, "main-by-file\n", 13), 13);
	close(fd);
	return arg;
}

/* Main waits for us, in a moment at the latest. */
static void *sees_main_asleep(void *arg)
{
	const char *state;

	do {
		sched_yield();
		state = strstr(read_file("/proc/self/status", 0), "\nState:");
		CHECK(state != NULL);
	} while (state && state[8] != 'S');
	do {
		sched_yield();
		state = strrchr(read_file("/proc/self/stat", 0), ')');
		CHECK(state != NULL);
	} while (state && state[2] != 'S');
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	char name[16], path[64], text[64] = { 0 };
	int dir, fd;

	prctl(PR_SET_NAME, "the) main");
	pthread_barrier_init(&barrier, NULL, NR + 1);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(i == 0 ? spins : waits, (void *)i);
	pthread_barrier_wait(&barrier);

	snprintf(path, sizeof(path), "/proc/%d/task", getpid());
	CHECK(lists_all("/proc/self/task"));
	CHECK(lists_all("/proc/self/task/"));
	CHECK(lists_all(path));
	ok("the list");

	looks_at(tids[0], "the) main", 'R');
	looks_at(tids[1], "waits ) 1", 'S');
	looks_at(getpid(), "the) main", 'R');
	CHECK_EQ(field_of_status(read_file("/proc/self/status", 0), "\nThreads:"), NR + 1);
	ok("one by one");

	/* the process is as main is, whoever asks */
	join(start(sees_main_asleep, NULL));
	ok("main asleep");

	/* relative to the directory */
	dir = CHECK_SYS(open("/proc/self/task", O_RDONLY | O_DIRECTORY));
	snprintf(path, sizeof(path), "%d/comm", tids[2]);
	fd = CHECK_SYS(openat(dir, path, O_RDONLY));
	CHECK(read(fd, text, sizeof(text) - 1) > 0);
	CHECK_STR(text, "waits ) 2\n");
	close(fd);
	close(dir);
	CHECK_ERRNO(open("/proc/self/task/1/comm", O_RDONLY), ENOENT);
	CHECK_ERRNO(open("/proc/self/task/x", O_RDONLY), ENOENT);
	CHECK_ERRNO(access("/proc/self/task/2147483647", F_OK), ENOENT);
	ok("relative, and what is not there");

	STORE(&stop, 1);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	snprintf(path, sizeof(path), "/proc/self/task/%d", tids[1]);
	wait_until_gone(tids[1]);
	CHECK_ERRNO(access(path, F_OK), ENOENT);
	join(start(looks_at_itself, NULL));
	CHECK_PT(pthread_getname_np(pthread_self(), name, sizeof(name)));
	CHECK_STR(name, "main-by-file\n"); /* as it was written */
	ok("by a thread itself");

	/* what the kernel keeps for a thread: the process shows main's */
	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK_EQ(field_of_status(read_file("/proc/self/status", 0), "\nNoNewPrivs:"), 1);
	CHECK_EQ(field_of_status(read_file("/proc/self/status", 0), "\nPid:"), getpid());
	CHECK_EQ(field_of_status(read_file("/proc/self/status", 0), "\nTgid:"), getpid());
	ok("what main set for itself");
	return finish();
}
