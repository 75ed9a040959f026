// SPDX-License-Identifier: Apache-2.0
/*
 * The table of descriptors: an entry for each number, which the files of io/ work on. All others ask what stands at the
 * end, and look at no entry.
 *
 * io/ is a stair: this one, facts (what the file was told), fd (who waits), uses (calls that outlive their number),
 * epoll_driver (the poller); pollset (the epoll set) stands beside facts. Each calls only those before it.
 *
 * It is the process's. A bound thread may have a table of its own, where a number means another file: for it there is no
 * entry, nothing is known or noted of any descriptor, and it waits in the kernel.
 *
 * Invariant: every entry is used under its lock, but for the fields marked (a).
 */
#ifndef WF_IO_FDTAB_H
#define WF_IO_FDTAB_H

#include "base/list.h"
#include "base/spin.h"

#define WF_MAX_FDS (1 << 20)

enum wf_fd_kind {
	WF_FD_UNKNOWN,
	WF_FD_SOCKET,
	WF_FD_PIPE,
	WF_FD_FILE,  /* regular file, directory, block device: never waits in the poller */
	WF_FD_CHAR,  /* character device: a terminal, /dev/null, ... */
	WF_FD_OTHER, /* eventfd, timerfd, ... */
};

enum fd_file_note {
	WF_FD_NOTE_DIRECT = 1,
	WF_FD_NOTE_NO_NOWAIT = 2,
	WF_FD_NOTE_OWN = 4,    /* the runtime's: a file that outlived its number */
	WF_FD_NOTE_SEEN = 8,   /* some call looked at the generation */
	WF_FD_NOTE_FLAGS = 16, /* DIRECT was asked for */
};

/* Locking: an entry's lock is innermost but for the run queue's, which wf_unpark() takes below it. */
struct fd_entry {
	struct wf_spin lock;
	uint32_t seq; /* (a) written under the lock */
	/* (a) tag of events: those of an earlier file with this number differ; written under the lock */
	uint32_t generation;
	uint8_t kind;           /* (a) enum wf_fd_kind */
	bool is_registered;     /* (q) */
	bool is_ended;          /* (q) a hang-up, an error or urgent data was seen */
	bool is_sole;           /* (q) made here, and no other descriptor of the file is known */
	struct wf_list waiters; /* (q) .next NULL: none yet */

	/* The file was told this; see facts.c. */
	uint8_t known;            /* (q) enum fd_known */
	bool is_nonblocking : 1;  /* (q) */
	bool is_tcp : 1;          /* (q) */
	bool hears_out : 1;       /* (q) registered for room to write, too */
	bool is_surely_empty : 1; /* (q) empty_at is from an EAGAIN, not from a short read */
	uint8_t departures : 3; /* (q) how often it left the poller because nobody waited, up to 7 */
	uint8_t file_notes;     /* (a) enum fd_file_note */
	uint8_t unheard;        /* (q) events since somebody has waited */
	uint32_t change;        /* (q) grows whenever the program may have told it something else */
	uint32_t share_epoch;   /* (q) of the time when it was made */
	uint32_t empty_at; /* (q) nothing was left to read after this many events; see facts.c */
	uint32_t timeout_us[2]; /* (q) SO_RCVTIMEO, SO_SNDTIMEO; 0: none */

	/* Calls that have waited and are not over; see uses.c. */
	uint32_t nr_uses;  /* (q) of the file that has the number now */
	uint32_t nr_tries; /* (a) attempts by such calls, under way at this moment */
} WF_ALIGNED(WF_CACHE_LINE);

_Static_assert(sizeof(struct fd_entry) == WF_CACHE_LINE, "a line per descriptor");

/* The table: memory up to nr_entries, which only grows. Read by every call: nothing that changes often lies beside it. */
struct wf_fdtab {
	struct fd_entry *entries; /* (c) */
	uint32_t nr_entries;      /* (a) */
	uint32_t max_entries;     /* (c) */
	uint32_t has_private;     /* (a) some thread has, or had, a table of its own */
} WF_ALIGNED(WF_CACHE_LINE);
extern struct wf_fdtab wf_fdtab;

/*
 * The caller has a table of descriptors of its own, and is bound. The runtime's numbers are kept there, too, but what a
 * number means is not in ours.
 */
bool wf_fd_is_private(void);

struct fd_entry *wf_fdtab_entry_behind_end(int fd);
/* NULL: no descriptor can have that number, there is no memory for it, or the caller has a table of its own. */
WF_INLINE struct fd_entry *wf_fdtab_entry(int fd)
{
	if (WF_UNLIKELY(wf_load_relaxed(&wf_fdtab.has_private)) && wf_fd_is_private())
		return NULL;
	if (WF_LIKELY((uint32_t)fd < wf_load_acquire(&wf_fdtab.nr_entries)))
		return &wf_fdtab.entries[fd];
	return wf_fdtab_entry_behind_end(fd);
}

/* Under no lock: set or clear one of enum fd_file_note. */
void wf_fdtab_note(struct fd_entry *e, uint8_t note, bool is_set);

/* Nothing is known of this number, so nothing has to be forgotten, and its page of the table stays untouched. */
WF_INLINE bool wf_fdtab_is_blank(const struct fd_entry *e)
{
	return !wf_load_relaxed(&e->kind) && !wf_load_relaxed(&e->is_registered) &&
	       !wf_load_relaxed(&e->is_sole) && !wf_load_relaxed(&e->file_notes);
}

/* Under the entry's lock: nothing was left to read after seq events; of a file that is in no poller nobody would tell. */
WF_INLINE void wf_fdtab_note_empty(struct fd_entry *e, uint32_t seq, bool is_sure)
{
	if (!e->is_registered)
		return;
	e->empty_at = seq;
	e->is_surely_empty = is_sure;
}

/* A duplicate of fd at a high number, out of the way of the program's; or -errno. */
int wf_fdtab_dup_high(int fd);
/* fd itself, moved there if that can be; an error is handed on. */
int wf_fdtab_move_high(int fd);
/* 0 or -ENOMEM. */
int wf_fdtab_init(void);
void wf_fdtab_forget(void);

/* Number of events seen on fd so far; 0 for a descriptor out of range. */
uint32_t wf_fd_seq(int fd);
enum wf_fd_kind wf_fd_kind(int fd);
/* The table has room for it: it can be waited for. */
bool wf_fd_has_room(int fd);

#endif
