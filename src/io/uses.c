// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that outlive the number of their descriptor.
 *
 * Inside the kernel a call that waits holds its file; a thread that is parked holds nothing but a number, and
 * that may be closed and mean another file when it wakes up. So calls that have waited are counted per number
 * (nr_uses). A closer of a number in use makes a private duplicate first, tells the uses by
 * another generation, and the last of them closes the duplicate: until then the other side sees no end.
 *
 * No attempt meets the wrong file: a use counts itself in nr_tries, then looks at the generation; a closer
 * changes the generation, then waits until nr_tries is 0. One of the two sees the other. An attempt does not
 * block and is not preempted, so that wait is short.
 */
#include "io/uses.h"

#include "base/die.h"
#include "sys/syscall.h"

#include <errno.h>

#define MAX_KEPT 256 /* files without a number; beyond, their calls end with EBADF */

/* A file whose number is gone, for the uses of that number in that generation. */
struct kept {
	int number;
	uint32_t generation;
	int fd;
	uint32_t nr_uses; /* 0: this slot is free */
};

static struct kept kept[MAX_KEPT]; /* (q) */
static struct wf_spin lock;        /* of kept; inside an entry's lock */

uint32_t wf_fd_use_init(struct wf_fd_use *u, int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	*u = (struct wf_fd_use){ .fd = fd, .number = fd };
	if (!e)
		return 0;
	if (!wf_load_relaxed(&e->is_sole) && !wf_load_relaxed(&e->file_notes))
		wf_fdtab_note(e, WF_FD_NOTE_SEEN, true); /* else wf_fdtab_is_blank() */
	u->generation = wf_load_seq_cst(&e->generation);
	return wf_load_acquire(&e->seq);
}

/* Under lock. */
static struct kept *find(int number, uint32_t generation)
{
	for (int i = 0; i < MAX_KEPT; i++)
		if (kept[i].nr_uses && kept[i].number == number && kept[i].generation == generation)
			return &kept[i];
	return NULL;
}

static void keep(int number, uint32_t generation, int fd, uint32_t nr_uses)
{
	wf_spin_lock(&lock);
	for (int i = 0; i < MAX_KEPT; i++) {
		if (kept[i].nr_uses)
			continue;
		kept[i] = (struct kept){ number, generation, fd, nr_uses };
		wf_spin_unlock(&lock);
		return;
	}
	wf_spin_unlock(&lock);
	(void)sys_close(fd);
}

static void wait_for_tries(struct fd_entry *e)
{
	for (int i = 0; wf_load_seq_cst(&e->nr_tries); i++) {
		if (i < 100)
			wf_cpu_pause();
		else
			(void)sys0(__NR_sched_yield);
	}
}

void wf_fd_set_own(int fd, bool is_own)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	wf_fd_detach(e, fd);
	wf_store_relaxed(&e->file_notes, (uint8_t)(is_own ? WF_FD_NOTE_OWN : 0));
	wf_spin_unlock(&e->lock);
}

void wf_fd_closing(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	int copy = -1;

	if (!e || wf_fdtab_is_blank(e))
		return;
	wf_spin_lock(&e->lock);
	while (e->nr_uses && copy == -1) {
		wf_spin_unlock(&e->lock);
		copy = wf_fdtab_dup_high(
			fd); /* an error is not tried again: the uses end with EBADF */
		if (copy >= 0)
			wf_fd_set_own(copy, true);
		wf_spin_lock(&e->lock);
	}
	if (copy >= 0 && e->nr_uses) {
		keep(fd, e->generation, copy, e->nr_uses);
		copy = -1;
	}
	wf_fd_detach(e, fd);
	wf_spin_unlock(&e->lock);
	wait_for_tries(e);
	if (copy >= 0) {
		wf_fd_set_own(copy, false);
		(void)sys_close(copy);
	}
}

static bool has_moved(const struct wf_fd_use *u)
{
	return u->fd != u->number;
}

void wf_fd_use_try(struct wf_fd_use *u)
{
	struct fd_entry *e = wf_fdtab_entry(u->number);
	struct kept *k;

	if (!u->is_held || has_moved(u) || !e)
		return;
	(void)wf_fetch_add(&e->nr_tries, 1u);
	if (wf_load_seq_cst(&e->generation) == u->generation) {
		u->tries = &e->nr_tries;
		return;
	}
	(void)wf_fetch_sub(&e->nr_tries, 1u);
	wf_spin_lock(&lock);
	k = find(u->number, u->generation);
	u->fd = k ? k->fd : -1;
	wf_spin_unlock(&lock);
}

static void leave_last(const struct wf_fd_use *u)
{
	struct kept *k;
	int last = -1;

	wf_spin_lock(&lock);
	k = find(u->number, u->generation);
	if (k && !--k->nr_uses)
		last = k->fd;
	wf_spin_unlock(&lock);
	if (last >= 0) {
		wf_fd_set_own(last, false);
		(void)sys_close(last);
	}
}

WF_INLINE void done(struct wf_fd_use *u, bool is_drained, uint32_t seq)
{
	struct fd_entry *e = wf_fdtab_entry(u->number);
	bool is_kept;

	if (!u->is_held)
		return;
	u->is_held = false;
	wf_spin_lock(&e->lock);
	is_kept = e->generation != u->generation;
	if (!is_kept) {
		e->nr_uses--;
		if (is_drained)
			wf_fdtab_note_empty(e, seq, false);
	}
	wf_spin_unlock(&e->lock);
	if (WF_UNLIKELY(is_kept))
		leave_last(u);
}

void wf_fd_use_done(struct wf_fd_use *u)
{
	done(u, false, 0);
}

void wf_fd_use_done_drained(struct wf_fd_use *u, uint32_t seq)
{
	done(u, true, seq);
}

void wf_uses_forget(bool are_others)
{
	for (int i = 0; i < MAX_KEPT && !are_others; i++)
		if (kept[i].nr_uses)
			(void)sys_close(kept[i].fd);
	__builtin_memset(kept, 0, sizeof(kept));
	lock = (struct wf_spin){ 0 };
}
