// SPDX-License-Identifier: Apache-2.0
/*
 * Memory stays flat: whatever is made and ended again, the last rounds of it have no more than the early ones.
 *
 * FLAT: so many rounds, up to 100, of the full size: 1,000,000 tasks, 100,000 channels, 1,000 groups in each other, 100,000 threads
 * that are cancelled while they wait. The usual suites take a part.
 */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>
#include <weft/weft.h>

/* Rounds that fill caches: those of malloc() of a thread that rests, to be used again, hold up to seven blocks of a size. */
#define WARM_ROUNDS 10
/* For what happens beside it: a thread of the runtime's is made or ends; and for how pieces of memory happen to lie. */
#define SLACK_KIB 512
#define SLACK_PART 20
#define SLACK_MAPPINGS 16
/* Stacks that rest may come to lie in mappings of their own, of which there are two for each: see src/linux/stacks.c. */
#define MOST_MAPPINGS (2 * 8192 + 500)

static int how_many_rounds(void)
{
	const char *flat = getenv("FLAT");

	return flat ? atoi(flat) : 20;
}

/* How much of what is done in a round of full size. */
static long how_much(long full, int part, int native_part)
{
	return getenv("FLAT") ? full : full / (is_native_run() ? native_part : part);
}

/* The memory of a process, of each kind. */
struct memory {
	long resident_kib, allocated_kib, nr_mappings;
};

/* Reads a file of /proc without memory of its own; returns how many lines there are, and the beginning in buf. */
static long read_lines(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096];
	size_t kept = 0;
	long lines = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			lines += text[i] == '\n';
			if (kept + 1 < len)
				buf[kept++] = text[i];
		}
	buf[kept] = '\0';
	close(fd);
	return lines;
}

static struct memory measure(void)
{
	const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
	struct memory m = { 0 };
	struct mallinfo2 info;
	char text[100];

	(void)read_lines("/proc/self/statm", text, sizeof(text));
	(void)sscanf(text, "%*d %ld", &m.resident_kib);
	m.resident_kib *= page_kib;
	m.nr_mappings = read_lines("/proc/self/maps", text, sizeof(text));
	info = mallinfo2();
	m.allocated_kib = (long)((info.uordblks + info.hblkhd) / 1024);
	return m;
}

#define MOST_ROUNDS 100

static long pick(bool least, long a, long b)
{
	return (a < b) == least ? a : b;
}

/* The least, or the most, that any round had, from the one to before the other. */
static struct memory of_rounds(const struct memory *at, int from, int to, bool least)
{
	struct memory m = at[from];

	for (int i = from + 1; i < to; i++) {
		m.resident_kib = pick(least, m.resident_kib, at[i].resident_kib);
		m.allocated_kib = pick(least, m.allocated_kib, at[i].allocated_kib);
		m.nr_mappings = pick(least, m.nr_mappings, at[i].nr_mappings);
	}
	return m;
}

static void check_flat(void (*round)(long nr), long nr)
{
	static struct memory at[MOST_ROUNDS];
	int rounds = how_many_rounds(), middle = (WARM_ROUNDS + rounds) / 2;
	struct memory early, last;

	if (!CHECK(rounds >= WARM_ROUNDS + 4 && rounds <= MOST_ROUNDS))
		return;
	for (int i = 0; i < rounds; i++) {
		round(nr);
		at[i] = measure();
	}
	early = of_rounds(at, WARM_ROUNDS, middle, false);
	last = of_rounds(at, middle, rounds, true);
	tap_note(
		"%d rounds of %ld: %ld KiB resident, then %ld; %ld allocated, then %ld; %ld mappings, then %ld",
		rounds, nr, early.resident_kib, last.resident_kib, early.allocated_kib,
		last.allocated_kib, early.nr_mappings, last.nr_mappings);
	CHECK(last.resident_kib <=
	      early.resident_kib + early.resident_kib / SLACK_PART + SLACK_KIB);
	/* The caches of malloc() in threads that rest count as allocated. */
	CHECK(last.allocated_kib <=
	      early.allocated_kib + early.allocated_kib / SLACK_PART + SLACK_KIB / 8);
	CHECK(last.nr_mappings <= early.nr_mappings + SLACK_MAPPINGS ||
	      (nr > MOST_MAPPINGS && last.nr_mappings < MOST_MAPPINGS));
}

/* --- tasks --- */

struct part {
	long from, size, sum;
};

static void add_up(void *arg)
{
	struct part *p = arg, part[10];
	weft_task t[10];

	p->sum = p->from;
	if (p->size < 10)
		return;
	for (int i = 0; i < 10; i++) {
		part[i] = (struct part){ p->from + i * (p->size / 10), p->size / 10, 0 };
		weft_task_fork(&t[i], add_up, &part[i]);
	}
	p->sum = 0;
	for (int i = 9; i >= 0; i--) {
		weft_task_join(&t[i]);
		p->sum += part[i].sum;
	}
}

static void run_tasks(long nr)
{
	struct part all = { 0, nr, 0 };

	add_up(&all);
	if (all.sum != nr * (nr - 1) / 2)
		CHECK_EQ(all.sum, nr * (nr - 1) / 2);
}

TEST(tasks_leave_nothing_behind)
{
	check_flat(run_tasks, how_much(1000000, 10, 10));
}

/* --- channels --- */

static void use_channels(long nr)
{
	static weft_chan *ch[500];
	int failed = 0;
	long item = 0;

	for (long n = 0; n < nr; n += 500) {
		for (int i = 0; i < 500; i++) {
			ch[i] = weft_chan_new(sizeof(item), (size_t)i % 40, "flat");
			failed += ch[i] == NULL;
			if (i % 40)
				failed += weft_chan_send(ch[i], &item, WEFT_NOW) != 0;
		}
		for (int i = 0; i < 500; i++) {
			if (i % 3 == 0)
				weft_chan_close(ch[i]);
			weft_chan_free(ch[i]);
		}
	}
	if (failed)
		CHECK_EQ(failed, 0);
}

TEST(channels_leave_nothing_behind)
{
	check_flat(use_channels, how_much(100000, 10, 40));
}

/* --- groups --- */

static const struct weft_thread_opts small = { .size = sizeof(small), .stack_bytes = 32 << 10 };

static int go_down(void *arg)
{
	long below = *(long *)arg - 1;
	weft_group g = { .name = "level", .opts = &small };

	if (below == 0)
		return 0;
	if (weft_group_go(&g, go_down, &below) < 0)
		return -EAGAIN;
	return weft_group_wait(&g);
}

static void nest_groups(long nr)
{
	int error = go_down(&nr);

	if (error)
		CHECK_EQ(error, 0);
}

TEST(groups_that_are_nested_leave_nothing_behind)
{
	check_flat(nest_groups, how_much(1000, 5, 20));
}

/* --- threads --- */

static weft_chan *here, *nothing;

static int waits(void *arg)
{
	char c;

	(void)arg;
	return weft_chan_give(here, WEFT_NEVER) < 0 ? -EIO
						    : weft_chan_recv(nothing, &c, WEFT_NEVER);
}

static void cancel_threads(long nr)
{
	weft_group g = { .name = "flat", .policy = WEFT_EACH, .opts = &small };
	long started = 0;
	int error;

	while (started < nr && weft_group_go(&g, waits, NULL) == 0)
		started++;
	for (long i = 0; i < started; i++)
		(void)weft_chan_take(here, WEFT_NEVER);
	weft_group_cancel(&g);
	error = weft_group_wait(&g);
	if (error != -ECANCELED)
		CHECK_EQ(error, -ECANCELED);
	CHECK(started == nr);
}

TEST(threads_that_are_cancelled_leave_nothing_behind)
{
	here = weft_chan_new(0, 1000, "here");
	nothing = weft_chan_new(1, 0, "nothing");
	check_flat(cancel_threads, how_much(100000, 50, 200));
	weft_chan_free(here);
	weft_chan_free(nothing);
}
