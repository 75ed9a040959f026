// SPDX-License-Identifier: Apache-2.0
/* The rules of scopes, beside the table of calls in scope_call_table.h. */
#include "native.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/scope.h>
#include <weft/thread.h>
#include <weft/weft.h>

#define IF_REACHED()                                                                               \
	do {                                                                                       \
		if (is_native_run())                                                               \
			SKIP("scopes do not reach into libc in native mode");                      \
		start();                                                                           \
	} while (0)

static int empty[2];

static void *nothing(void *arg)
{
	return arg;
}

static void start(void)
{
	pthread_t t;

	if (empty[1])
		return;
	(void)!pipe(empty);
	pthread_create(&t, NULL, nothing, NULL);
	pthread_join(t, NULL);
}

static int read_errno(void)
{
	char c;

	return read(empty[0], &c, 1) < 0 ? errno : 0;
}

/* First of all: this is about the time before there is a second thread. */
static weft_scope before_threads;

static void *cancel_early(void *scope)
{
	weft_scope_cancel(scope);
	return NULL;
}

/* The cancel comes before the wait, in it, or as it begins. */
TEST(a_scope_from_before_the_first_thread_reaches_what_is_called_later)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	pthread_t t;

	weft_scope_open(&before_threads, WEFT_NEVER, "early");
	CHECK_EQ(weft_scope_check(), 0);
	pthread_create(&t, NULL, cancel_early, &before_threads);
	if (!is_native_run()) {
		pthread_mutex_lock(&lock);
		CHECK_EQ(pthread_cond_wait(&cond, &lock), ETIMEDOUT);
		pthread_mutex_unlock(&lock);
		start();
		CHECK_EQ(read_errno(), ECANCELED);
		CHECK_EQ(weft_scope_close(&before_threads), -ECANCELED);
		pthread_join(t, NULL);
	} else {
		pthread_join(t, NULL);
		CHECK_EQ(weft_scope_check(), -ECANCELED);
		CHECK_EQ(weft_scope_close(&before_threads), -ECANCELED);
	}
}

TEST(the_earliest_deadline_of_the_chain_counts)
{
	weft_scope a, b, c;

	weft_scope_open(&a, WEFT_NOW, "a");
	weft_scope_open(&b, WEFT_NEVER, "b");
	weft_scope_open(&c, weft_now() + WEFT_SEC, "c");
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&c), 0);
	CHECK_EQ(weft_scope_close(&b), 0);
	CHECK_EQ(weft_scope_close(&a), -ETIMEDOUT);
	CHECK_EQ(weft_scope_check(), 0);
}

TEST(a_scope_that_has_ended_nothing_closes_with_0)
{
	weft_scope s;
	char why[40] = "x";

	weft_scope_open(&s, WEFT_NOW, "s");
	CHECK_EQ(weft_scope_why(&s, why, sizeof(why)), -ENOENT);
	CHECK_STR_EQ(why, "");
	CHECK_EQ(weft_scope_close(&s), 0);
	weft_scope_open(&s, WEFT_NEVER, NULL);
	weft_scope_cancel(&s);
	CHECK_EQ(weft_scope_close(&s), 0);
}

TEST(canceled_is_said_if_any_scope_was_and_each_close_tells_of_its_own)
{
	weft_scope a, b;

	weft_scope_open(&a, WEFT_NOW, "a");
	weft_scope_open(&b, WEFT_NEVER, "b");
	weft_scope_cancel(&b);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&b), 0);
	CHECK_EQ(weft_scope_close(&a), -ETIMEDOUT);
	weft_scope_open(&a, WEFT_NEVER, "a");
	weft_scope_open(&b, WEFT_NOW, "b");
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	weft_scope_cancel(&a);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&b), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&a), -ECANCELED);
}

TEST(a_shield_has_a_deadline_and_ends_with_its_own)
{
	weft_scope a, b;

	weft_scope_open(&a, WEFT_NOW, "a");
	weft_scope_cancel(&a);
	weft_scope_shield(&b, WEFT_NEVER, "b");
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(weft_scope_close(&b), 0);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	weft_scope_shield(&b, WEFT_NOW, "b");
	CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&b), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&a), -ECANCELED);
}

TEST(why_names_the_scope_the_call_and_the_descriptor)
{
	char why[100], wanted[100];
	struct pollfd p;
	weft_scope s;

	IF_REACHED();
	weft_scope_open(&s, weft_now() + WEFT_MS, "lookup");
	CHECK_EQ(read_errno(), ETIMEDOUT);
	snprintf(wanted, sizeof(wanted), "lookup: its time was over in read(), of fd %d", empty[0]);
	CHECK_EQ(weft_scope_why(&s, why, sizeof(why)), 0);
	CHECK_STR_EQ(why, wanted);
	weft_scope_close(&s);
	CHECK_EQ(weft_scope_why(&s, why, 8), 0);
	CHECK_STR_EQ(why, "lookup:");
	weft_scope_open(&s, WEFT_NEVER, NULL);
	weft_scope_cancel(&s);
	p = (struct pollfd){ empty[0], POLLIN, 0 };
	CHECK_EQ(poll(&p, 1, -1), -1);
	CHECK_EQ(weft_scope_why(&s, why, sizeof(why)), 0);
	CHECK_STR_EQ(why, "scope: was cancelled in poll()");
	weft_scope_close(&s);
}

TEST(what_needs_no_wait_is_done)
{
	const struct timespec none = { 0, 0 };
	struct pollfd p;
	char path[64], c;
	weft_scope s;
	sigset_t set;
	int fd, ends[2];

	IF_REACHED();
	snprintf(path, sizeof(path), "/tmp/weft-scope-rules-%d", getpid());
	weft_scope_open(&s, WEFT_NOW, "over");
	weft_scope_cancel(&s);
	for (int i = 0; i < 50; i++) {
		CHECK_EQ(mkdir(path, 0700), 0);
		CHECK_EQ(rmdir(path), 0);
		fd = open(path, O_CREAT | O_RDWR, 0600);
		CHECK(fd >= 0);
		CHECK_EQ(write(fd, "x", 1), 1);
		CHECK_EQ(fsync(fd), 0);
		CHECK_EQ(pread(fd, &c, 1, 0), 1);
		CHECK_EQ(close(fd), 0);
		CHECK_EQ(unlink(path), 0);
		CHECK_EQ(pipe(ends), 0);
		CHECK_EQ(write(ends[1], "x", 1), 1);
		p = (struct pollfd){ ends[0], POLLIN, 0 };
		CHECK_EQ(poll(&p, 1, -1), 1);
		CHECK_EQ(poll(&p, 1, 0), 1);
		CHECK_EQ(read(ends[0], &c, 1), 1);
		CHECK_EQ(poll(&p, 1, 0), 0);
		close(ends[0]);
		close(ends[1]);
		sigemptyset(&set);
		sigaddset(&set, SIGUSR2);
		CHECK(sigtimedwait(&set, NULL, &none) == -1 && errno == EAGAIN);
	}
	CHECK_EQ(weft_scope_close(&s), 0);
}

struct locked {
	pthread_mutex_t lock;
	sem_t holds, may_leave;
};

static void *hold(void *arg)
{
	struct locked *l = arg;

	pthread_mutex_lock(&l->lock);
	sem_post(&l->holds);
	sem_wait(&l->may_leave);
	weft_sleep_until(weft_now() + 5 * WEFT_MS);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

TEST(no_scope_ends_the_wait_for_a_mutex)
{
	struct locked l = { .lock = PTHREAD_MUTEX_INITIALIZER };
	weft_scope s;
	pthread_t t;

	IF_REACHED();
	sem_init(&l.holds, 0, 0);
	sem_init(&l.may_leave, 0, 0);
	pthread_create(&t, NULL, hold, &l);
	sem_wait(&l.holds);
	weft_scope_open(&s, WEFT_NOW, "s");
	weft_scope_cancel(&s);
	sem_post(&l.may_leave);
	CHECK_EQ(pthread_mutex_lock(&l.lock), 0);
	CHECK_EQ(pthread_mutex_unlock(&l.lock), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	pthread_join(t, NULL);
}

static jmp_buf jump;

static __attribute__((noinline)) void leave_two(void)
{
	weft_scope a, b;
	char room[512];

	__asm__ volatile("" : : "r"(room) : "memory");
	weft_scope_open(&a, WEFT_NOW, "left");
	weft_scope_open(&b, WEFT_NOW, "left");
	longjmp(jump, 1);
}

TEST(a_scope_that_was_left_by_longjmp_is_over_with_the_next)
{
	weft_scope outer, s;

	start();
	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (!setjmp(jump))
		leave_two();
	weft_scope_open(&s, WEFT_NEVER, "s");
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
	weft_scope_cancel(&outer);
	CHECK_EQ(weft_scope_check(), -ECANCELED);
	CHECK_EQ(weft_scope_close(&outer), -ECANCELED);
	CHECK_EQ(weft_scope_check(), 0);
}

TEST(a_sleep_to_a_moment_that_is_past_needs_no_wait)
{
	const struct timespec past = { 1, 0 };
	weft_scope s;

	IF_REACHED();
	weft_scope_open(&s, WEFT_NOW, "s");
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL), 0);
	CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, NULL), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
}

/* Further down than a call of libc's reaches. */
static __attribute__((noinline)) void leave_two_far_down(void)
{
	char room[1 << 16];

	__asm__ volatile("" : : "r"(room) : "memory");
	leave_two();
}

TEST(a_scope_that_was_left_by_longjmp_ends_no_wait)
{
	const struct timespec ms = { 0, 1000000 };
	weft_scope outer;

	IF_REACHED();
	weft_scope_open(&outer, WEFT_NEVER, "outer");
	if (!setjmp(jump))
		leave_two_far_down();
	CHECK_EQ(nanosleep(&ms, NULL), 0);
	CHECK_EQ(weft_scope_close(&outer), 0);
}

static __attribute__((noinline)) void overwrite(void)
{
	volatile uint64_t room[128];

	for (int i = 0; i < 128; i++)
		room[i] = 0x0101010101010101ull * (unsigned)i;
	(void)room[127];
}

TEST(what_lies_where_a_scope_was_is_none)
{
	weft_scope s;

	start();
	if (!setjmp(jump))
		leave_two();
	overwrite();
	weft_scope_open(&s, WEFT_NEVER, "s");
	CHECK_EQ(weft_scope_check(), 0);
	CHECK_EQ(weft_scope_close(&s), 0);
}

/* In one frame the compiler puts them where it likes. */
TEST(scopes_of_one_function_nest_in_any_order)
{
	weft_scope s[3];
	const int order[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 2, 0 }, { 1, 0, 2 } };

	for (int i = 0; i < 4; i++) {
		weft_scope_open(&s[order[i][0]], WEFT_NOW, "outermost");
		weft_scope_open(&s[order[i][1]], WEFT_NEVER, "middle");
		weft_scope_open(&s[order[i][2]], WEFT_NEVER, "innermost");
		CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
		CHECK_EQ(weft_scope_close(&s[order[i][2]]), 0);
		CHECK_EQ(weft_scope_close(&s[order[i][1]]), 0);
		CHECK_EQ(weft_scope_close(&s[order[i][0]]), -ETIMEDOUT);
	}
}

TEST(the_macro_closes_where_the_block_ends)
{
	{
		WEFT_SCOPE(s, WEFT_NOW);
		CHECK_EQ(weft_scope_check(), -ETIMEDOUT);
	}
	CHECK_EQ(weft_scope_check(), 0);
}

static weft_scope *to_cancel;

static void cancel_it(int sig)
{
	weft_scope_cancel(to_cancel);
}

static void *send_usr1(void *arg)
{
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

TEST(a_signal_handler_cancels)
{
	struct sigaction act = { .sa_handler = cancel_it, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), t;
	weft_scope s;

	IF_REACHED();
	sigaction(SIGUSR1, &act, NULL);
	for (int i = 0; i < 20; i++) {
		to_cancel = &s;
		weft_scope_open(&s, WEFT_NEVER, "s");
		pthread_create(&t, NULL, send_usr1, &self);
		CHECK_EQ(read_errno(), ECANCELED);
		CHECK_EQ(weft_scope_close(&s), -ECANCELED);
		pthread_join(t, NULL);
	}
}

static volatile sig_atomic_t ended_in_handler;

static void wait_in_handler(int sig)
{
	weft_scope s;

	weft_scope_open(&s, WEFT_NOW, "of the handler");
	ended_in_handler = read_errno();
	weft_scope_close(&s);
}

TEST(a_handler_has_scopes_of_its_own)
{
	struct sigaction act = { .sa_handler = wait_in_handler, .sa_flags = SA_RESTART };
	pthread_t self = pthread_self(), t;
	weft_scope s;

	IF_REACHED();
	sigaction(SIGUSR1, &act, NULL);
	weft_scope_open(&s, weft_now() + 20 * WEFT_MS, "s");
	pthread_create(&t, NULL, send_usr1, &self);
	CHECK_EQ(read_errno(), ETIMEDOUT);
	CHECK_EQ(ended_in_handler, ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	pthread_join(t, NULL);
}

TEST(a_child_of_fork_keeps_its_scopes)
{
	weft_scope s;
	int status = 0;
	pid_t pid;

	start();
	weft_scope_open(&s, WEFT_NOW, "s");
	pid = fork();
	if (pid == 0) {
		int ok = weft_scope_check() == -ETIMEDOUT;

		ok &= weft_scope_close(&s) == -ETIMEDOUT;
		ok &= weft_scope_check() == 0;
		weft_scope_open(&s, WEFT_NEVER, "s");
		weft_scope_cancel(&s);
		ok &= weft_scope_check() == -ECANCELED;
		_exit(ok ? 7 : 1);
	}
	weft_scope_close(&s);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* A socket that takes questions and answers none, as the only name server. */
TEST(a_look_up_ends_in_time)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	unsigned char answer[512];
	struct __res_state state = { 0 };
	weft_time began;
	weft_scope s;

	IF_REACHED();
	bind(fd, (void *)&at, sizeof(at));
	getsockname(fd, (void *)&at, &len);
	CHECK_EQ(res_ninit(&state), 0);
	state.nscount = 1;
	state.nsaddr_list[0] = at;
	began = weft_now();
	weft_scope_open(&s, began + 50 * WEFT_MS, "lookup");
	CHECK_EQ(res_nquery(&state, "weft.invalid", 1, 1, answer, sizeof(answer)), -1);
	CHECK(weft_now() - began >= 50 * WEFT_MS);
	CHECK(weft_now() - began < 2 * WEFT_SEC);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	res_nclose(&state);
	close(fd);
}

static void *ignore_one(void *scope)
{
	int nr = 0;

	weft_scope_open(scope, weft_now() + WEFT_MS, "loop");
	for (;;)
		if (read_errno() == ETIMEDOUT && ++nr == 3)
			break;
	weft_scope_close(scope);
	return NULL;
}

TEST(a_loop_that_ignores_an_error_meets_the_next)
{
	weft_scope s;
	pthread_t t;

	IF_REACHED();
	pthread_create(&t, NULL, ignore_one, &s);
	pthread_join(t, NULL);
}

static int until_told(void *may_end)
{
	while (!__atomic_load_n((int *)may_end, __ATOMIC_SEQ_CST))
		weft_sleep_until(weft_now() + WEFT_MS / 2);
	return 7;
}

TEST(a_join_ends_each_time_and_the_thread_can_be_joined_later)
{
	int may_end = 0, result = 0;
	weft_thread *t;
	weft_scope s;

	CHECK_EQ(weft_thread_spawn(until_told, &may_end, NULL, &t), 0);
	weft_scope_open(&s, weft_now() + WEFT_MS, "join");
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), -ETIMEDOUT);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	__atomic_store_n(&may_end, 1, __ATOMIC_SEQ_CST);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	CHECK_EQ(result, 7);
}

static weft_event in_destructor, destructor_may_end;

static void waits_for_the_end(void *value)
{
	weft_event_set(value);
	while (weft_event_wait(&destructor_may_end, WEFT_NEVER) != 0)
		;
}

static int leaves_a_value(void *key)
{
	CHECK_EQ(pthread_setspecific(*(pthread_key_t *)key, &in_destructor), 0);
	return 8;
}

/* Its function has returned, and what is left is libc's join, which a scope ends once. */
TEST(a_join_ends_each_time_too_while_destructors_run)
{
	pthread_key_t key;
	int result = 0;
	weft_thread *t;
	weft_scope s;

	CHECK_EQ(pthread_key_create(&key, waits_for_the_end), 0);
	CHECK_EQ(weft_thread_spawn(leaves_a_value, &key, NULL, &t), 0);
	CHECK_EQ(weft_event_wait(&in_destructor, WEFT_NEVER), 0);
	weft_scope_open(&s, weft_now() + WEFT_MS, "deadline");
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
	weft_scope_open(&s, WEFT_NEVER, "cancelled");
	weft_scope_cancel(&s);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), -ECANCELED);
	CHECK_EQ(weft_thread_join(t, &result, weft_now() + WEFT_MS), -ECANCELED);
	CHECK_EQ(weft_scope_close(&s), -ECANCELED);
	CHECK_EQ(weft_thread_join(t, &result, weft_now() + WEFT_MS), -ETIMEDOUT);
	weft_event_set(&destructor_may_end);
	weft_scope_open(&s, WEFT_NEVER, "cancelled");
	weft_scope_cancel(&s);
	/* A join that need not wait is done; until then each call ends. */
	while (weft_thread_join(t, &result, WEFT_NEVER) != 0)
		CHECK_EQ(sched_yield(), 0);
	CHECK_EQ(weft_scope_close(&s), -ECANCELED);
	CHECK_EQ(result, 8);
	CHECK_EQ(pthread_key_delete(key), 0);
}
