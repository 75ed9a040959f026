// SPDX-License-Identifier: Apache-2.0
/* Tasks: each is called once, before its join returns, on whatever thread; and what programs do with them. */
#include <weft/task.h>
#include <weft/weft.h>

#include "dies.h"
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* A fork child of which makes no threads. */
#ifdef __SANITIZE_THREAD__
#define CHILDREN_WORK false
#else
#define CHILDREN_WORK true
#endif

static void counts(void *arg)
{
	(void)__atomic_fetch_add((int *)arg, 1, __ATOMIC_RELAXED);
}

TEST(a_task_has_been_called_once_when_it_is_joined)
{
	weft_task t;
	int n = 0;

	for (int i = 1; i <= 10000; i++) {
		weft_task_fork(&t, counts, &n);
		weft_task_join(&t);
		if (n != i) {
			CHECK_EQ(n, i);
			return;
		}
	}
}

#define NR 3000

static int done[NR];

static void sets(void *arg)
{
	++*(int *)arg;
}

static void check_all(const char *order)
{
	bool is_right = true;

	for (int i = 0; i < NR; i++)
		is_right = is_right && done[i] == 1;
	if (!CHECK(is_right))
		tap_note("%s", order);
}

/* More than fit at first. */
static weft_task tasks[NR];

static void fork_all(void)
{
	for (int i = 0; i < NR; i++) {
		done[i] = 0;
		weft_task_fork(&tasks[i], sets, &done[i]);
	}
}

static void join_and_check(int i)
{
	weft_task_join(&tasks[i]);
	if (done[i] != 1)
		CHECK_EQ(done[i], 1);
}

TEST(joins_may_come_in_any_order)
{
	fork_all();
	for (int i = NR; i-- > 0;)
		join_and_check(i);
	check_all("newest first");
	fork_all();
	for (int i = 0; i < NR; i++)
		join_and_check(i);
	check_all("oldest first");
	fork_all();
	for (int i = 0; i < NR; i++)
		join_and_check((int)(i * 1009l % NR));
	check_all("mixed");
}

static void forks_and_joins_older(void *arg)
{
	weft_task mine;
	int n = 0;

	weft_task_fork(&mine, counts, &n);
	weft_task_join(&mine);
	*(int *)arg += n;
}

TEST(tasks_fork_tasks_whatever_the_order)
{
	weft_task t[20];
	int n[20] = { 0 };

	for (int i = 0; i < 20; i++)
		weft_task_fork(&t[i], forks_and_joins_older, &n[i]);
	for (int i = 0; i < 20; i++)
		weft_task_join(&t[i ^ 1]);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(n[i], 1);
}

/* --- programs --- */

struct fib {
	int n;
	long result;
};

static void fib(void *arg)
{
	struct fib *f = arg, left = { f->n - 1, 0 }, right = { f->n - 2, 0 };
	weft_task t;

	f->result = f->n;
	if (f->n < 2)
		return;
	weft_task_fork(&t, fib, &left);
	fib(&right);
	weft_task_join(&t);
	f->result = left.result + right.result;
}

TEST(numbers_of_fibonacci)
{
	struct fib f = { 21, 0 };

	fib(&f);
	CHECK_EQ(f.result, 10946);
}

struct skynet {
	long from, size, result;
};

static void skynet(void *arg)
{
	struct skynet *s = arg, part[10];
	weft_task t[10];

	s->result = s->from;
	if (s->size == 1)
		return;
	for (int i = 0; i < 10; i++) {
		part[i] = (struct skynet){ s->from + i * (s->size / 10), s->size / 10, 0 };
		weft_task_fork(&t[i], skynet, &part[i]);
	}
	s->result = 0;
	for (int i = 9; i >= 0; i--) {
		weft_task_join(&t[i]);
		s->result += part[i].result;
	}
}

TEST(a_tree_of_many_tasks)
{
	struct skynet s = { 0, 100000, 0 };

	skynet(&s);
	CHECK_EQ(s.result, 4999950000);
}

struct board {
	int row, nr;
	unsigned columns, down, up;
	long result;
};

static void queens(void *arg)
{
	struct board *b = arg, next[8];
	weft_task t[8];
	int nr = 0;

	b->result = b->row == b->nr;
	if (b->result)
		return;
	for (int i = 0; i < b->nr; i++) {
		unsigned bit = 1u << i;

		if (!((b->columns | b->down | b->up) & bit)) {
			next[nr] = (struct board){ b->row + 1,         b->nr,
						   b->columns | bit,   (b->down | bit) << 1,
						   (b->up | bit) >> 1, 0 };
			weft_task_fork(&t[nr], queens, &next[nr]);
			nr++;
		}
	}
	while (nr-- > 0) {
		weft_task_join(&t[nr]);
		b->result += next[nr].result;
	}
}

TEST(queens_on_a_board)
{
	struct board b = { .nr = 8 };

	queens(&b);
	CHECK_EQ(b.result, 92);
}

struct part {
	unsigned *at, *spare;
	size_t nr;
};

static void sort(void *arg)
{
	struct part *p = arg;
	size_t half = p->nr / 2, a = 0, b = half, n = 0;
	struct part left = { p->at, p->spare, half },
		    right = { p->at + half, p->spare + half, p->nr - half };
	weft_task t;

	if (p->nr < 2)
		return;
	weft_task_fork(&t, sort, &left);
	sort(&right);
	weft_task_join(&t);
	while (a < half || b < p->nr)
		if (b == p->nr || (a < half && p->at[a] <= p->at[b]))
			p->spare[n++] = p->at[a++];
		else
			p->spare[n++] = p->at[b++];
	memcpy(p->at, p->spare, p->nr * sizeof(*p->at));
}

#define NR_SORTED 20000

TEST(a_sort_by_halves)
{
	static unsigned numbers[NR_SORTED], spare[NR_SORTED];
	struct part all = { numbers, spare, NR_SORTED };
	unsigned x = 1;
	bool is_sorted = true;

	for (size_t i = 0; i < NR_SORTED; i++)
		numbers[i] = x = x * 1664525 + 1013904223;
	sort(&all);
	for (size_t i = 1; i < NR_SORTED; i++)
		is_sorted = is_sorted && numbers[i - 1] <= numbers[i];
	CHECK(is_sorted);
}

#define NR_COVERED 10000

static unsigned char covered[NR_COVERED + 2];
static size_t largest;

static void covers(size_t from, size_t to, void *arg)
{
	size_t n = to - from, seen = __atomic_load_n(&largest, __ATOMIC_RELAXED);

	while (n > seen && !__atomic_compare_exchange_n(&largest, &seen, n, false, __ATOMIC_RELAXED,
							__ATOMIC_RELAXED))
		;
	for (size_t i = from; i < to; i++)
		covered[i]++;
}

static void check_covered(size_t begin, size_t end, size_t grain, size_t most)
{
	bool is_right = true;

	memset(covered, 0, sizeof(covered));
	largest = 0;
	weft_task_for(begin, end, grain, covers, NULL);
	for (size_t i = 0; i < sizeof(covered); i++)
		is_right = is_right && covered[i] == (i >= begin && i < end);
	CHECK(is_right);
	CHECK(largest <= most);
}

TEST(task_for_covers_the_range_once)
{
	check_covered(1, NR_COVERED + 1, 7, 7);
	check_covered(1, NR_COVERED + 1, 1, 1);
	check_covered(1, NR_COVERED + 1, NR_COVERED, NR_COVERED);
	check_covered(0, NR_COVERED, 0, NR_COVERED / 2);
	check_covered(5, 6, 0, 1);
	check_covered(5, 5, 3, 0);
	check_covered(6, 5, 3, 0);
}

/* --- what a task may do --- */

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t change;
	int nr;
};

/* Not what tasks are for, but with so few of them each has a thread. */
static void meets(void *arg)
{
	struct meeting *m = arg;

	pthread_mutex_lock(&m->lock);
	m->nr++;
	pthread_cond_broadcast(&m->change);
	while (m->nr < 2)
		pthread_cond_wait(&m->change, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

TEST(a_task_is_stolen_while_its_owner_waits)
{
	struct meeting m = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };
	weft_task t;

	if (!has_others())
		SKIP("one worker");
	weft_task_fork(&t, meets, &m);
	meets(&m);
	weft_task_join(&t);
	CHECK_EQ(m.nr, 2);
}

static volatile bool stops;

static void spins(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stops, __ATOMIC_ACQUIRE))
		;
}

TEST(a_task_that_never_waits_stops_nobody)
{
	struct fib f = { 15, 0 };
	weft_task t;

	if (!has_others())
		SKIP("one worker");
	stops = false;
	weft_task_fork(&t, spins, NULL);
	/* Its owner and whoever has stolen it go on. */
	fib(&f);
	CHECK_EQ(f.result, 610);
	__atomic_store_n(&stops, true, __ATOMIC_RELEASE);
	weft_task_join(&t);
}

static void blocks(void *arg)
{
	char c = 0;

	(void)!read(*(int *)arg, &c, 1);
}

#define NR_BLOCKED 6

TEST(tasks_that_block_do_not_keep_others_from_running)
{
	weft_task t[NR_BLOCKED];
	struct fib f = { 15, 0 };
	int ends[2];

	CHECK_EQ(pipe(ends), 0);
	for (int i = 0; i < NR_BLOCKED; i++)
		weft_task_fork(&t[i], blocks, &ends[0]);
	fib(&f);
	CHECK_EQ(f.result, 610);
	CHECK_EQ(write(ends[1], "123456", NR_BLOCKED), NR_BLOCKED);
	for (int i = 0; i < NR_BLOCKED; i++)
		weft_task_join(&t[i]);
	close(ends[0]);
	close(ends[1]);
}

static __thread int local;

struct identity {
	pthread_t thread;
	bool is_right;
};

static void uses_locals(void *arg)
{
	struct identity *id = arg;
	int *where = &local, kept = *where;
	weft_task t;
	int n = 0;

	errno = 61;
	id->thread = pthread_self();
	++*where;
	weft_task_fork(&t, counts, &n);
	free(malloc(100));
	weft_task_join(&t);
	id->is_right = where == &local && *where == kept + 1 && errno == 61 &&
		       pthread_equal(id->thread, pthread_self());
}

TEST(errno_and_thread_locals_are_those_of_one_thread_from_start_to_end)
{
	weft_task t[200];
	struct identity id[200];
	bool is_right = true;

	errno = 62;
	for (int i = 0; i < 200; i++)
		weft_task_fork(&t[i], uses_locals, &id[i]);
	CHECK_EQ(errno, 62);
	for (int i = 199; i >= 0; i--) {
		weft_task_join(&t[i]);
		is_right = is_right && id[i].is_right;
	}
	CHECK(is_right);
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static int nr_locked;

static void locks(void *arg)
{
	pthread_mutex_lock(&held);
	nr_locked++;
	pthread_mutex_unlock(&held);
}

/* A join that waits for a stolen task must not call another one meanwhile, which would take this lock again. */
TEST(a_join_runs_no_other_task)
{
	weft_task lock_it, slow;
	struct meeting m = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 };

	if (!has_others())
		SKIP("one worker");
	nr_locked = 0;
	for (int i = 0; i < 200; i++) {
		m.nr = 0;
		weft_task_fork(&slow, meets, &m);
		meets(&m); /* it was stolen */
		weft_task_fork(&lock_it, locks, NULL);
		pthread_mutex_lock(&held);
		weft_task_join(&slow);
		pthread_mutex_unlock(&held);
		weft_task_join(&lock_it);
	}
	CHECK_EQ(nr_locked, 200);
}

/* --- threads --- */

static void *runs_fib(void *arg)
{
	struct fib f = { 16, 0 };

	for (int i = 0; i < 10; i++) {
		fib(&f);
		if (f.result != 987)
			return arg;
	}
	return NULL;
}

TEST(all_threads_may_fork_and_end)
{
	pthread_t t[16];
	void *result;

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 16; i++)
			CHECK_EQ(pthread_create(&t[i], NULL, runs_fib, &t), 0);
		for (int i = 0; i < 16; i++) {
			CHECK_EQ(pthread_join(t[i], &result), 0);
			CHECK(!result);
		}
	}
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

TEST(an_idle_crew_uses_no_processor)
{
	const struct timespec while_idle = { 0, 200000000 };
	struct fib f = { 12, 0 };
	int64_t before;

	fib(&f);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL); /* it goes to sleep */
	before = cpu_ns();
	nanosleep(&while_idle, NULL);
	CHECK(cpu_ns() - before < 20000000);
}

static void in_child(void)
{
	struct fib f = { 14, 0 };

	fib(&f);
	_exit(f.result == 377 ? 7 : 8);
}

TEST(a_fork_child_forks_tasks)
{
	struct fib f = { 14, 0 };
	int status = 0;
	pid_t pid;

	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	fib(&f);
	pid = fork();
	if (pid == 0)
		in_child();
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
}

static void *ends_main_by_exit(void *arg)
{
	return arg;
}

/* A crew must not keep a process alive whose threads have ended. */
TEST(a_process_whose_main_thread_exits_ends)
{
	int status = -1;
	pid_t pid;

	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	pid = fork();
	if (pid == 0) {
		struct fib f = { 14, 0 };

		fib(&f);
		pthread_exit(ends_main_by_exit(NULL));
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* --- mistakes --- */

static weft_task shared;

static void join_twice(void)
{
	weft_task t;
	int n = 0;

	weft_task_fork(&t, counts, &n);
	weft_task_join(&t);
	weft_task_join(&t);
}

static void join_what_was_not_forked(void)
{
	memset(&shared, 0, sizeof(shared));
	weft_task_join(&shared);
}

static void *joins(void *t)
{
	weft_task_join(t);
	return NULL;
}

/* So that it is not over, whoever has it. */
static void never_ends(void *arg)
{
	(void)arg;
	for (;;)
		(void)pause();
}

static void join_on_another_thread(void)
{
	pthread_t t;

	weft_task_fork(&shared, never_ends, NULL);
	(void)pthread_create(&t, NULL, joins, &shared);
	(void)pthread_join(t, NULL);
}

static void *forks_and_ends(void *arg)
{
	for (int i = 0; i < NR; i++)
		weft_task_fork(&tasks[i], never_ends, NULL);
	return arg;
}

static void end_with_tasks(void)
{
	pthread_t t;

	(void)pthread_create(&t, NULL, forks_and_ends, NULL);
	(void)pthread_join(t, NULL);
}

TEST(mistakes_end_the_process)
{
	if (!CHILDREN_WORK)
		SKIP("a child of ThreadSanitizer's makes no threads");
	SKIP_IF_EMULATED("a child of qemu's makes no threads");
	CHECK_DIES(join_twice, "a task is joined that was joined before");
	CHECK_DIES(join_what_was_not_forked, "a task is joined that was not forked");
	CHECK_DIES(join_on_another_thread, "a task is joined by a thread that has not forked it");
	CHECK_DIES(end_with_tasks, "a thread ends that has not joined a task");
}
