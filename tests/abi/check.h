// SPDX-License-Identifier: Apache-2.0
/*
 * Checks and small helpers shared by the ABI programs.
 *
 * Included by: every program in this directory, C and C++.
 *
 * Invariant: nothing here prints a line on stdout that could differ between two good runs. A failed
 * check goes to stderr, is counted and never jumps, because it may run on any stack and any thread.
 * There is no alarm: run.py owns the timeouts.
 */
#ifndef WEFT_TESTS_ABI_CHECK_H
#define WEFT_TESTS_ABI_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL     /* nanoseconds */
#define SEC 1000000000LL /* nanoseconds */
#define EXIT_SKIP 77     /* run.py: this program cannot run here */

#define LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define ADD(p, v) __atomic_add_fetch(p, v, __ATOMIC_ACQ_REL)

static int abi_failures; /* atomic */
static int abi_reported; /* failures that an ok() line has already accounted for */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			dprintf(2, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);            \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(got, want)                                                                        \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_) {                                                               \
			dprintf(2, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got,      \
				got_, want_);                                                      \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *got_ = (got), *want_ = (want);                                         \
		if (strcmp(got_, want_) != 0) {                                                    \
			dprintf(2, "%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #got,  \
				got_, want_);                                                      \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
	} while (0)

/* For calls that return 0 or an error number. */
#define CHECK_PT(call)                                                                             \
	do {                                                                                       \
		int ret_ = (call);                                                                 \
		if (ret_ != 0) {                                                                   \
			dprintf(2, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(ret_));  \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
	} while (0)

/* For calls that return -1 and set errno; the value of the expression is the result. */
#define CHECK_SYS(call)                                                                            \
	__extension__({                                                                            \
		long long ret_ = (long long)(call);                                                \
		if (ret_ < 0) {                                                                    \
			dprintf(2, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, strerror(errno)); \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
		ret_;                                                                              \
	})

/* The call must fail with exactly this errno. */
#define CHECK_ERRNO(call, want_errno)                                                              \
	do {                                                                                       \
		errno = 0;                                                                         \
		long long ret_ = (long long)(call);                                                \
		int errno_ = errno;                                                                \
		if (ret_ != -1 || errno_ != (want_errno)) {                                        \
			dprintf(2, "%s:%d: %s gave %lld, errno %d (%s), not errno %d\n", __FILE__, \
				__LINE__, #call, ret_, errno_, strerror(errno_), (want_errno));    \
			ADD(&abi_failures, 1);                                                     \
		}                                                                                  \
	} while (0)

/* Ends one behaviour: an "ok" line unless a check failed since the last one. */
static inline void ok(const char *what)
{
	int failures = LOAD(&abi_failures);

	printf("%s %s\n", failures == abi_reported ? "ok" : "not ok", what);
	fflush(stdout);
	abi_reported = failures;
}

static inline int finish(void)
{
	return LOAD(&abi_failures) != 0;
}

static inline pthread_t start(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	int ret = pthread_create(&t, NULL, fn, arg);

	if (ret != 0) {
		dprintf(2, "pthread_create: %s\n", strerror(ret));
		_exit(1);
	}
	return t;
}

static inline void *join(pthread_t t)
{
	void *value = NULL;
	int ret = pthread_join(t, &value);

	if (ret != 0) {
		dprintf(2, "pthread_join: %s\n", strerror(ret));
		ADD(&abi_failures, 1);
	}
	return value;
}

static inline void *does_nothing_(void *arg)
{
	return arg;
}

/* A program without threads is the kernel's: what is checked before the first says nothing of weft. */
static inline void have_threads(void)
{
	join(start(does_nothing_, NULL));
}

/* libc joins a thread a moment before the kernel has ended it. */
static inline void wait_until_gone(pid_t tid)
{
	while (syscall(SYS_tgkill, getpid(), tid, 0) == 0)
		sched_yield();
}

/* A pending signal of a timer that is stopped, set anew or deleted is taken back, as POSIX allows: since Linux 6.13. */
static inline int kernel_drops_timer_signals(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 13));
}

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline struct timespec timespec_of(int64_t ns)
{
	struct timespec ts;

	ts.tv_sec = ns / SEC;
	ts.tv_nsec = ns % SEC;
	return ts;
}

static inline void sleep_ns(int64_t ns)
{
	struct timespec ts = timespec_of(ns);

	while (nanosleep(&ts, &ts) == -1 && errno == EINTR)
		;
}

/*
 * Gives other threads the time to block, so that the interesting interleaving is the likely one.
 * No result may depend on it: a program must be right when this returns at once.
 */
static inline void let_others_block(void)
{
	sleep_ns(20 * MS);
}

/* Runs this program again with one argument, in a child process; returns its wait status. */
static inline int run_self(const char *arg)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", program_invocation_name, arg, (char *)NULL);
		_exit(126);
	}
	CHECK_SYS(pid);
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	return status;
}

/* Waits for a child and checks that it exited with 0. */
static inline void reap(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	CHECK_EQ(status, 0);
}

static inline int is_under_weft(void)
{
	return getenv("WEFT_WORKERS") != NULL;
}

#endif
