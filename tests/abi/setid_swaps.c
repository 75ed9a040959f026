// SPDX-License-Identifier: Apache-2.0
/*
 * The same call again and again that is another one each time: real and effective user change places. Meanwhile threads come
 * and go, some keep things to themselves, calls need kernel threads: one that made the call twice, or not at all, is
 * as the others were before. Root only.
 */
#include "beside.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>

#define ROUNDS 1500
#define NR 4
#define USER 4321

static int stop;
static char path[] = "/tmp/weft-swaps-XXXXXX";
static pthread_rwlock_t steady =
	PTHREAD_RWLOCK_INITIALIZER; /* held for writing while they change places */
static uid_t real;                  /* under it */

static void check_ids(void)
{
	uid_t r, e, s;

	CHECK_SYS(CALL(getresuid, &r, &e, &s));
	CHECK_EQ(r, real);
	CHECK_EQ(e, USER - real);
}

static void *is_as_the_process(void *arg)
{
	pthread_rwlock_rdlock(&steady);
	check_ids();
	pthread_rwlock_unlock(&steady);
	return arg;
}

static void *keeps_to_itself(void *arg)
{
	is_as_the_process(NULL);
	CHECK_SYS(unshare(CLONE_FILES));
	is_as_the_process(NULL);
	join(start(is_as_the_process, NULL));
	is_as_the_process(NULL);
	return arg;
}

/* Two that wait for each other's lock need kernel threads, and leave them behind. */
static void *locks(void *arg)
{
	int fd = open(path, O_RDWR);

	is_as_the_process(NULL);
	CHECK_SYS(flock(fd, LOCK_EX));
	is_as_the_process(NULL);
	close(fd);
	is_as_the_process(NULL);
	return arg;
}

static void *comes_and_goes(void *arg)
{
	void *(*const kinds[])(void *) = { is_as_the_process, locks, keeps_to_itself, locks };

	for (int i = (int)(intptr_t)arg; !LOAD(&stop); i++)
		join(start(kinds[i % 4], NULL));
	return NULL;
}

static void *changes_places(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		uid_t was;

		pthread_rwlock_wrlock(&steady);
		was = real;
		CHECK_SYS(setreuid(USER - was, was));
		real = USER - was;
		check_ids();
		pthread_rwlock_unlock(&steady);
		if (i % 4 == 0)
			sleep_ns(MS / 4);
	}
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	int fd;

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return EXIT_SKIP;
	}
	fd = mkstemp(path);
	CHECK_SYS(fd);
	CHECK_SYS(fchmod(fd, 0666));
	CHECK_SYS(setreuid(USER, 0));
	real = USER;
	for (int i = 0; i < NR; i++)
		t[i] = start(comes_and_goes, (void *)(intptr_t)i);
	join(start(changes_places, NULL));
	STORE(&stop, 1);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("every thread is as the process");
	close(fd);
	if (real)
		CHECK_SYS(setreuid(0, real));
	unlink(path);
	return finish();
}
