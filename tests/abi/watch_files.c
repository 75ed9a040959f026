// SPDX-License-Identifier: Apache-2.0
/* Threads that wait until somebody touches a file: inotify, by one or by many, beside those who touch them. */
#include "beside.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define NR 4
#define ROUNDS 50

static char dir[] = "/tmp/weft-watch-XXXXXX";

static void take(int fd, uint32_t mask, int wd, const char *name)
{
	union {
		struct inotify_event e;
		char space[sizeof(struct inotify_event) + 256];
	} buf;

	memset(&buf, 0, sizeof(buf));
	CHECK(CHECK_SYS(read(fd, &buf, sizeof(buf.e) + 16)) >
	      0); /* room for one: names here are short */
	CHECK_EQ(buf.e.mask, mask);
	CHECK_EQ(buf.e.wd, wd);
	CHECK_STR(buf.e.len ? buf.e.name : "", name);
}

static void old_and_new(void)
{
	static const int numbers[] = { SYS_inotify_init, SYS_inotify_init1 };

	for (int k = 0; k < 2; k++) {
		int fd = (int)CHECK_SYS(syscall(numbers[k], k ? IN_CLOEXEC : 0)), wd, other;

		CHECK_EQ(fcntl(fd, F_GETFD), k ? FD_CLOEXEC : 0);
		wd = (int)CHECK_SYS(
			CALL(inotify_add_watch, fd, dir, IN_CREATE | IN_CLOSE_WRITE | IN_DELETE));
		other = (int)CHECK_SYS(open("a", O_WRONLY | O_CREAT | O_EXCL, 0600));
		take(fd, IN_CREATE, wd, "a");
		close(other);
		take(fd, IN_CLOSE_WRITE, wd, "a");
		CHECK_SYS(unlink("a"));
		take(fd, IN_DELETE, wd, "a");
		CHECK_SYS(CALL(inotify_rm_watch, fd, wd));
		take(fd, IN_IGNORED, wd, "");
		CHECK_ERRNO(CALL(inotify_rm_watch, fd, wd), EINVAL);
		close(fd);
	}
	int fd = (int)CHECK_SYS(CALL(inotify_init1, IN_NONBLOCK));
	char c[64];

	CHECK_ERRNO(read(fd, c, sizeof(c)), EAGAIN);
	CHECK_ERRNO(CALL(inotify_add_watch, fd, "none", IN_CREATE), ENOENT);
	close(fd);
}

/* Each waits for its own file, and touches that of the next one. */
static int watches[NR], wds[NR];

static void *touches_next(void *arg)
{
	int me = (int)(intptr_t)arg;
	char name[8];

	snprintf(name, sizeof(name), "%d", (me + 1) % NR);
	for (int i = 0; i < ROUNDS; i++) {
		if (me || i)
			take(watches[me], IN_ATTRIB, wds[me], "");
		CHECK_SYS(chmod(name, i % 2 ? 0600 : 0400));
	}
	if (me == 0)
		take(watches[0], IN_ATTRIB, wds[0], "");
	return NULL;
}

static void in_a_ring(void)
{
	pthread_t t[NR];
	char name[8];

	for (int i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "%d", i);
		close((int)CHECK_SYS(open(name, O_WRONLY | O_CREAT, 0600)));
		watches[i] = (int)CHECK_SYS(CALL(inotify_init));
		wds[i] = (int)CHECK_SYS(CALL(inotify_add_watch, watches[i], name, IN_ATTRIB));
	}
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(touches_next, (void *)i);
	for (int i = 0; i < NR; i++) {
		join(t[i]);
		close(watches[i]);
	}
	for (int i = 0; i < NR; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK_SYS(unlink(name));
	}
}

int main(void)
{
	CHECK(mkdtemp(dir) != NULL);
	CHECK_SYS(chdir(dir));
	start_beside();
	calls(old_and_new, "both kinds of inotify");
	calls(in_a_ring, "many that wait for each other");
	stop_beside();
	CHECK_SYS(rmdir(dir));
	return finish();
}
