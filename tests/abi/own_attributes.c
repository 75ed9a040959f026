// SPDX-License-Identifier: Apache-2.0
/*
 * Files in /proc that only the thread whose they are may write: what a security module keeps of it (attr/...), and the user
 * who logged in. A thread writes its own by any of its names, main that of the process; nobody writes another's.
 */
#include "check.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>

#define NR_BESIDE 8

static int stop, nr_running;
static pid_t others_tid;

static void *moves_about(void *arg)
{
	others_tid = gettid();
	ADD(&nr_running, 1);
	while (!LOAD(&stop))
		sched_yield();
	return arg;
}

enum how {
	BY_OPEN,
	BY_CREAT,
	BY_OPENAT2
};

/* The kernel's answer to it, without a security module: EINVAL; to another's: EACCES. */
static int error_of_write(const char *path, const char *text, enum how how)
{
	struct open_how flags = { .flags = O_WRONLY };
	int fd, error = 0;

	if (how == BY_CREAT)
		fd = creat(path, 0600);
	else if (how == BY_OPENAT2)
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &flags, sizeof(flags));
	else
		fd = open(path, O_WRONLY);
	if (fd < 0)
		return errno;
	sched_yield();
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

static void show_writes(const char *who)
{
	char own[64], by_tid[64], other[64];

	snprintf(own, sizeof(own), "/proc/self/task/%d/attr/current", gettid());
	snprintf(by_tid, sizeof(by_tid), "/proc/%d/attr/exec", gettid());
	snprintf(other, sizeof(other), "/proc/self/task/%d/attr/current", others_tid);
	printf("%s: thread-self %d, own %d, by tid %d, creat %d, openat2 %d, the process's %d, another's %d\n",
	       who, error_of_write("/proc/thread-self/attr/current", "x", BY_OPEN),
	       error_of_write(own, "x", BY_OPEN), error_of_write(by_tid, "x", BY_OPEN),
	       error_of_write("/proc/thread-self/attr/current", "x", BY_CREAT),
	       error_of_write(own, "x", BY_OPENAT2),
	       error_of_write("/proc/self/attr/current", "x", BY_OPEN),
	       error_of_write(other, "x", BY_OPEN));
	fflush(stdout);
}

static void *writes_attributes(void *arg)
{
	show_writes("a thread");
	return arg;
}

/* --- the user who logged in --- */

static void read_login(const char *path, char *out, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, out, room - 1);

	out[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static void show_login(const char *who)
{
	char own[32], group[32];

	read_login("/proc/thread-self/loginuid", own, sizeof(own));
	read_login("/proc/self/loginuid", group, sizeof(group));
	printf("%s: logged in as %s, the process as %s\n", who, own, group);
	fflush(stdout);
}

static void *logs_in(void *arg)
{
	printf("a thread logs the process in: %d\n",
	       error_of_write("/proc/self/loginuid", "4712", BY_OPEN));
	printf("and itself: %d\n", error_of_write("/proc/thread-self/loginuid", "4713", BY_OPEN));
	show_login("a thread");
	return arg;
}

static void *shows_login(void *arg)
{
	show_login(arg);
	return NULL;
}

static void log_in(void)
{
	show_login("main");
	join(start(logs_in, NULL));
	show_login("main");
	printf("main logs the process in: %d\n",
	       error_of_write("/proc/self/loginuid", "4711", BY_OPEN));
	show_login("main");
	join(start(shows_login, "a new thread"));
}

int main(void)
{
	pthread_t t[NR_BESIDE];

	for (int i = 0; i < NR_BESIDE; i++)
		t[i] = start(moves_about, NULL);
	while (LOAD(&nr_running) < NR_BESIDE)
		sleep_ns(MS);
	join(start(writes_attributes, NULL));
	show_writes("main");
	log_in();
	STORE(&stop, 1);
	for (int i = 0; i < NR_BESIDE; i++)
		join(t[i]);
	ok("only one's own");
	return finish();
}
