// SPDX-License-Identifier: Apache-2.0
/* Which descriptors are names of threads, or the directory of all threads; see nametable.h. */
#include "linux/nametable.h"
#include "base/spin.h"
#include "io/fdtab.h"
#include "sys/syscall.h"

#include <linux/fcntl.h>
#include <linux/stat.h>

#define MAX_OPEN_NAMES 64

static struct {
	struct wf_spin lock;
	uint32_t
		/* (a) entries in use; a look without the lock may only save the trouble of one with it */
		nr;
	struct {
		int fd;
		uint32_t tid;   /* 0: free */
		uint64_t inode; /* of LX_NAMETABLE_TASKS */
	} open[MAX_OPEN_NAMES];
} names;

static uint64_t inode_of(int fd)
{
	struct statx st = { 0 };

	(void)sys5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st);
	return st.stx_ino;
}

void lx_nametable_forget(void)
{
	__builtin_memset(&names, 0, sizeof(names));
}

bool lx_nametable_add(int fd, uint32_t tid)
{
	uint64_t inode = tid == LX_NAMETABLE_TASKS ? inode_of(fd) : 0;
	bool found = false;

	if (wf_fd_is_private()) /* the number is another file's to all others */
		return false;
	wf_spin_lock(&names.lock);
	for (int i = 0; i < MAX_OPEN_NAMES && !found; i++) {
		if (names.open[i].tid)
			continue;
		names.open[i].fd = fd;
		names.open[i].tid = tid;
		names.open[i].inode = inode;
		wf_store_relaxed(&names.nr, names.nr + 1);
		found = true;
	}
	wf_spin_unlock(&names.lock);
	return found;
}

uint32_t lx_nametable_take(int fd)
{
	uint32_t tid = 0;

	if (WF_LIKELY(!wf_load_relaxed(&names.nr)) || wf_fd_is_private())
		return 0;
	wf_spin_lock(&names.lock);
	for (int i = 0; i < MAX_OPEN_NAMES && !tid; i++) {
		if (!names.open[i].tid || names.open[i].fd != fd)
			continue;
		tid = names.open[i].tid;
		names.open[i].tid = 0;
		wf_store_relaxed(&names.nr, names.nr - 1);
	}
	wf_spin_unlock(&names.lock);
	return tid;
}

bool lx_nametable_is_tasks(int fd)
{
	uint64_t inode = 0;

	if (WF_LIKELY(!wf_load_relaxed(&names.nr)) || wf_fd_is_private())
		return false;
	wf_spin_lock(&names.lock);
	for (int i = 0; i < MAX_OPEN_NAMES; i++)
		if (names.open[i].tid == LX_NAMETABLE_TASKS && names.open[i].fd == fd)
			inode = names.open[i].inode;
	wf_spin_unlock(&names.lock);
	/* The number may be another file's by now: not every way to close it is seen. */
	return inode && inode_of(fd) == inode;
}
