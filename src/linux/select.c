// SPDX-License-Identifier: Apache-2.0
/*
 * select and pselect6.
 *
 * Called by: table.c. How a round of look and sleep misses nothing is told in poll.c.
 *
 * Invariant: the program's sets are read once, at the beginning, and written once, at the end, and
 * only when the call succeeds. In between the kernel works on copies: it overwrites what it is
 * asked.
 */
#include "linux/calls.h"
#include "linux/pollwait.h"
#include "linux/room.h"
#include "linux/sigwant.h"
#include "linux/scope.h"

#include <linux/eventpoll.h>

#define NR_SETS 3
#define WORD_BITS 64
#define USUAL_FDS 1024   /* FD_SETSIZE of libc */
#define STATUS_BYTES 512 /* of /proc/self/status; FDSize is within the first 300 */

static const uint32_t events_of[NR_SETS] = { EPOLLIN, EPOLLOUT, EPOLLPRI };

struct fd_sets {
	void *user[NR_SETS]; /* readfds, writefds, exceptfds; NULL: not asked for */
	int n;               /* descriptors below it count */
	uint32_t words;      /* of one set */
	uint64_t *asked;     /* three sets */
	uint64_t *found;     /* three sets, for the kernel to overwrite */
};

/* The number behind label in text, or fallback. */
static int number_after(const char *text, const char *label, int fallback)
{
	for (; *text; text++) {
		const char *t = text, *l = label;
		int value = 0;

		while (*l && *t == *l)
			t++, l++;
		if (*l)
			continue;
		while (*t == ' ' || *t == '\t')
			t++;
		while (*t >= '0' && *t <= '9' && value < WF_MAX_FDS)
			value = value * 10 + (*t++ - '0');
		return value ? value : fallback;
	}
	return fallback;
}

/*
 * The kernel looks at no bit beyond its current table of descriptors, so programs get away with a
 * huge n and small sets. We must not touch more than it would.
 */
static int clamp_to_table(int n)
{
	char *text = lx_room_get(STATUS_BYTES);
	long fd, len;

	if (!text)
		return n;
	fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC, 0);
	len = fd < 0 ? 0 : sys3(__NR_read, fd, text, STATUS_BYTES - 1);
	if (fd >= 0)
		(void)sys_close((int)fd);
	text[WF_MAX(len, 0)] = '\0';
	n = WF_MIN(n, number_after(text, "FDSize:", n));
	lx_room_put(text, STATUS_BYTES);
	return n;
}

/* Like wf_arch_copy() between ours and the program's, for the sets that it passed. */
static long read_sets(struct fd_sets *s)
{
	size_t bytes = s->words * sizeof(uint64_t);

	for (uint32_t i = 0; i < NR_SETS; i++) {
		uint64_t *set = s->asked + i * s->words;

		if (!s->user[i])
			__builtin_memset(set, 0, bytes);
		else if (wf_arch_copy(set, s->user[i], bytes) < 0)
			return -EFAULT;
	}
	return 0;
}

static long write_sets(const struct fd_sets *s)
{
	for (uint32_t i = 0; i < NR_SETS; i++)
		if (s->user[i] && wf_arch_copy(s->user[i], s->found + i * s->words,
					       s->words * sizeof(uint64_t)) < 0)
			return -EFAULT;
	return 0;
}

/* Descriptors of one word that any set asks for. */
static uint64_t asked_bits(const struct fd_sets *s, uint32_t word)
{
	uint64_t bits = s->asked[word] | s->asked[s->words + word] | s->asked[2 * s->words + word];
	uint32_t valid = (uint32_t)s->n - word * WORD_BITS;

	return valid < WORD_BITS ? bits & ((1ull << valid) - 1) : bits;
}

static uint32_t count_asked(const struct fd_sets *s)
{
	uint32_t nr = 0;

	for (uint32_t word = 0; word < s->words; word++)
		for (uint64_t bits = asked_bits(s, word); bits; bits &= bits - 1)
			nr++;
	return nr;
}

static void fill_slots(const struct fd_sets *s, struct lx_poll_slot *slot)
{
	for (uint32_t word = 0; word < s->words; word++) {
		for (uint64_t bits = asked_bits(s, word); bits; bits &= bits - 1) {
			uint64_t bit = bits & -bits;
			int fd = (int)(word * WORD_BITS) + __builtin_ctzll(bits);
			uint32_t events = 0;

			for (uint32_t i = 0; i < NR_SETS; i++)
				if (s->asked[i * s->words + word] & bit)
					events |= events_of[i];
			lx_poll_slot_init(slot++, fd, events, false);
		}
	}
}

static void begin_look(const struct fd_sets *s, uint64_t *found[NR_SETS])
{
	for (uint32_t i = 0; i < NR_SETS; i++)
		found[i] = s->user[i] ? s->found + i * s->words : NULL;
	__builtin_memcpy(s->found, s->asked, NR_SETS * s->words * sizeof(uint64_t));
}

static long wait_in_kernel(const struct fd_sets *s, int64_t deadline)
{
	uint64_t *found[NR_SETS];
	long args[6] = { s->n };

	begin_look(s, found);
	for (uint32_t i = 0; i < NR_SETS; i++)
		args[1 + i] = (long)found[i];
	return lx_poll_in_kernel(__NR_pselect6, args, 4, deadline);
}

/* A kick of the runtime's own makes an empty select() say EINTR. */
static long look(const struct fd_sets *s)
{
	uint64_t *found[NR_SETS];
	long ret;

	do {
		int64_t zero[2] = { 0, 0 };

		begin_look(s, found);
		ret = sys5(__NR_select, s->n, found[0], found[1], found[2], zero);
	} while (ret == -EINTR);
	return ret;
}

static long look_and_sleep(const struct fd_sets *s, struct lx_poll_slot *slots, uint32_t nr,
			   int64_t deadline)
{
	struct lx_thread *self = lx_self();
	bool is_late = deadline == LX_POLL_NOW;

	for (;;) {
		long ret;

		lx_poll_arm(slots, nr);
		ret = look(s);
		if (ret)
			return ret;
		/* Without a mask of its own, a mere look leaves signals for its end. */
		if (deadline == LX_POLL_NOW ? self->has_saved_mask && lx_signal_is_waiting(self)
					    : lx_scope_stops(self))
			return -ERESTARTNOHAND;
		if (is_late)
			return 0;
		if (WF_UNLIKELY(wf_fd_is_private()))
			return wait_in_kernel(s, deadline);
		is_late = lx_poll_sleep(slots, nr, deadline) == WF_WAKE_TIMEOUT;
	}
}

/* The sets are in; make a slot for every descriptor in them and wait. */
static long select_sets(const struct fd_sets *s, int64_t deadline)
{
	uint32_t nr = deadline == LX_POLL_NOW ? 0 : count_asked(s);
	struct lx_poll_slot *slots = lx_room_get(nr * sizeof(*slots));
	long ret;

	if (!slots)
		return -ENOMEM;
	if (nr)
		fill_slots(s, slots);
	ret = look_and_sleep(s, slots, nr, deadline);
	lx_room_put(slots, nr * sizeof(*slots));
	return ret;
}

static long select_until(const struct wf_frame *f, int64_t deadline)
{
	struct fd_sets s = {
		.user = { (void *)WF_ARG1(f), (void *)WF_ARG2(f), (void *)WF_ARG3(f) },
		.n = (int)WF_ARG0(f),
	};
	size_t bytes;
	long ret;

	if (s.n < 0)
		return -EINVAL;
	if (s.n > USUAL_FDS)
		s.n = clamp_to_table(s.n);
	s.words = ((uint32_t)s.n + WORD_BITS - 1) / WORD_BITS;
	bytes = 2 * NR_SETS * s.words * sizeof(uint64_t);
	s.asked = lx_room_get(bytes);
	if (!s.asked)
		return -ENOMEM;
	s.found = s.asked + NR_SETS * s.words;
	ret = read_sets(&s);
	if (ret == 0)
		ret = select_sets(&s, deadline);
	if (ret >= 0 && write_sets(&s) < 0)
		ret = -EFAULT;
	lx_room_put(s.asked, bytes);
	return ret;
}

/* Whole seconds in the microseconds: newer kernels refuse them. This wait is none where they do not. */
static bool may_hide_seconds(void)
{
	int64_t none[2] = { -1, 1000000 };

	return sys5(__NR_select, 0, NULL, NULL, NULL, none) == 0;
}

long sysc_select(struct wf_frame *f)
{
	void *user_time = (void *)WF_ARG4(f);
	int64_t deadline = WF_NEVER, tv[2];
	long ret = 0;

	if (user_time) {
		if (wf_arch_copy(tv, user_time, sizeof(tv)) < 0)
			return -EFAULT;
		if (tv[1] >= 1000000 && !may_hide_seconds())
			return -EINVAL;
		/* A sum that overflows is invalid. */
		if (__builtin_add_overflow(tv[0], tv[1] / 1000000, &tv[0]))
			return -EINVAL;
		ret = lx_poll_deadline(tv[0], tv[1] % 1000000 * WF_US, &deadline);
		if (ret < 0)
			return ret;
	}
	ret = select_until(f, deadline);
	return lx_poll_time_left(user_time, WF_US, deadline, ret);
}

long sysc_pselect6(struct wf_frame *f)
{
	void *user_time = (void *)WF_ARG4(f);
	const void *user_mask = (const void *)WF_ARG5(f);
	struct {
		const void *mask;
		size_t bytes;
	} arg = { NULL, 0 };
	int64_t deadline;
	long ret;

	if (user_mask && wf_arch_copy(&arg, user_mask, sizeof(arg)) < 0)
		return -EFAULT;
	ret = lx_poll_deadline_timespec(user_time, &deadline);
	if (ret == 0)
		ret = lx_poll_mask_enter(arg.mask, arg.bytes);
	if (ret < 0)
		return ret;
	ret = select_until(f, deadline);
	lx_poll_mask_leave(ret);
	return lx_poll_time_left(user_time, 1, deadline, ret);
}
