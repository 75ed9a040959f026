// SPDX-License-Identifier: Apache-2.0
/*
 * Memory for the table of descriptors, and what needs nothing but an entry; see fdtab.h. The lowest step of io/: it calls
 * none of the others.
 */
#include "io/fdtab.h"

#include "base/die.h"
#include "sched/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define OWN_FD_LIMIT 1024
#define ENTRIES_PER_STEP 1024u /* whole pages */
/* The room that a descriptor brings along, where the addresses are limited: a buffer or two. */
#define BYTES_BESIDE (8ul << 10)

struct wf_fdtab wf_fdtab;

/* Several threads may do so at once: what is memory already stays as it is. */
struct fd_entry *wf_fdtab_entry_behind_end(int fd)
{
	uint32_t nr = wf_load_relaxed(&wf_fdtab.nr_entries);
	uint32_t enough = WF_ALIGN_UP((uint32_t)fd + 1, ENTRIES_PER_STEP);

	if (fd < 0 || (uint32_t)fd >= wf_fdtab.max_entries || !wf_fdtab.entries ||
	    sys_commit(wf_fdtab.entries, enough * sizeof(*wf_fdtab.entries)) < 0)
		return NULL;
	while (nr < enough && !wf_cas(&wf_fdtab.nr_entries, &nr, enough))
		;
	return &wf_fdtab.entries[fd];
}

uint32_t wf_fd_seq(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	return e ? wf_load_acquire(&e->seq) : 0;
}

bool wf_fd_has_room(int fd)
{
	return wf_fdtab_entry(fd) != NULL;
}

bool wf_fd_is_private(void)
{
	const struct wf_kthread *k = wf_self_kthread();

	return k && k->bound && k->bound->has_own_files;
}

static enum wf_fd_kind ask_kind(int fd)
{
	struct stat st;

	if (sys2(__NR_fstat, fd, &st) < 0)
		return WF_FD_UNKNOWN;
	if (S_ISSOCK(st.st_mode))
		return WF_FD_SOCKET;
	if (S_ISFIFO(st.st_mode))
		return WF_FD_PIPE;
	if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
		return WF_FD_FILE;
	return S_ISCHR(st.st_mode) ? WF_FD_CHAR : WF_FD_OTHER;
}

enum wf_fd_kind wf_fd_kind(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	enum wf_fd_kind kind;

	if (!e)
		return ask_kind(fd);
	kind = (enum wf_fd_kind)wf_load_relaxed(&e->kind);
	if (kind != WF_FD_UNKNOWN)
		return kind;
	kind = ask_kind(fd);
	if (kind != WF_FD_UNKNOWN)
		wf_store_relaxed(&e->kind, (uint8_t)kind);
	return kind;
}

void wf_fdtab_note(struct fd_entry *e, uint8_t note, bool is_set)
{
	if (!(wf_load_relaxed(&e->file_notes) & note) == !is_set)
		return;
	wf_spin_lock(&e->lock);
	wf_store_relaxed(&e->file_notes,
			 (uint8_t)(is_set ? e->file_notes | note : e->file_notes & ~note));
	wf_spin_unlock(&e->lock);
}

/* Programs count on low numbers being handed out in order, and close all from 3 up: keep out of their way. */
int wf_fdtab_dup_high(int fd)
{
	uint64_t limit[2] = { 0, 0 };

	(void)sys4(__NR_prlimit64, 0, 7 /* RLIMIT_NOFILE */, NULL, limit);
	if (limit[0] <= 64)
		return -EMFILE;
	return (int)sys3(__NR_fcntl, fd, F_DUPFD_CLOEXEC,
			 WF_MIN(limit[0], (uint64_t)OWN_FD_LIMIT) - 16);
}

int wf_fdtab_move_high(int fd)
{
	int high;

	if (fd < 0)
		return fd;
	high = wf_fdtab_dup_high(fd);
	if (high < 0)
		return fd;
	(void)sys_close(fd);
	return high;
}

int wf_fdtab_init(void)
{
	wf_fdtab.max_entries = sys_room_for(BYTES_BESIDE, ENTRIES_PER_STEP, WF_MAX_FDS);
	wf_fdtab.entries = sys_reserve(sizeof(struct fd_entry) * wf_fdtab.max_entries);
	return wf_fdtab.entries ? 0 : -ENOMEM;
}

void wf_fdtab_forget(void)
{
	sys_unmap(wf_fdtab.entries, sizeof(struct fd_entry) * wf_fdtab.max_entries);
	wf_fdtab = (struct wf_fdtab){ 0 };
}
