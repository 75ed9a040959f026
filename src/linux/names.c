// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a thread as a file, /proc/self/task/TID/comm, is a memory file that holds the name; one that was
 * opened for writing is read back when it is closed. So a reader and a writer at once do not see one another.
 */
#include "linux/names.h"
#include "base/fmt.h"
#include "io/fd.h"
#include "linux/bind.h"
#include "linux/calls.h"
#include "linux/procpath.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/stat.h>

#define MAX_OPEN_NAMES 64
#define ALL_TASKS (~0u) /* in place of a tid: the directory of all threads */

static struct {
	struct wf_spin lock;
	uint32_t
		/* (a) entries in use; a look without the lock may only save the trouble of one with it */
		nr;
	struct {
		int fd;
		uint32_t tid;   /* 0: free */
		uint64_t inode; /* of ALL_TASKS */
	} open[MAX_OPEN_NAMES];
} names;

void lx_names_forget(void)
{
	__builtin_memset(&names, 0, sizeof(names));
}

/* Remember that closing fd names tid. False: too many at once. */
static bool add_open_name(int fd, uint32_t tid, uint64_t inode)
{
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

static uint32_t take_open_name(int fd)
{
	uint32_t tid = 0;

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

static uint64_t inode_of(int fd)
{
	struct statx st = { 0 };

	(void)sys5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st);
	return st.stx_ino;
}

static long open_tasks(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_openat;
	long fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/task", is_at ? WF_ARG2(f) : WF_ARG1(f),
		       0);

	if (fd < 0)
		return fd;
	wf_fd_forget((int)fd);
	/* Too many at once: it shows what the kernel has. */
	(void)add_open_name((int)fd, ALL_TASKS, inode_of((int)fd));
	return fd;
}

bool lx_proc_is_tasks_fd(int fd)
{
	uint64_t inode = 0;

	if (WF_LIKELY(!wf_load_relaxed(&names.nr)) || wf_fd_is_private())
		return false;
	wf_spin_lock(&names.lock);
	for (int i = 0; i < MAX_OPEN_NAMES; i++)
		if (names.open[i].tid == ALL_TASKS && names.open[i].fd == fd)
			inode = names.open[i].inode;
	wf_spin_unlock(&names.lock);
	/* The number may be another file's by now: not every way to close it is seen. */
	return inode && inode_of(fd) == inode;
}

static long open_other(struct wf_frame *f, const struct lx_proc_path *p, uint64_t flags)
{
	long fd;

	if (p->kind == LX_PROC_THREAD) {
		fd = lx_proc_open(f, f->nr == __NR_openat, p, (flags & O_ACCMODE) != O_RDONLY);
		if (fd >= 0)
			wf_fd_forget((int)fd);
		return fd;
	}
	return sysc_new_fd(f);
}

static long open_to_name(const struct lx_thread *t, uint64_t flags)
{
	long fd = sys2(__NR_memfd_create, "comm", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);

	if (fd < 0)
		return fd;
	wf_fd_forget((int)fd);
	if (add_open_name((int)fd, lx_tid(t), 0))
		return fd;
	(void)sys_close((int)fd);
	return -EMFILE;
}

long sysc_open(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_openat;
	uint64_t flags = is_at ? WF_ARG2(f) : WF_ARG1(f);
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	struct lx_proc_path p;
	long fd;

	lx_proc_parse(&p, is_at ? (int)WF_ARG0(f) : AT_FDCWD,
		      (const char *)(is_at ? WF_ARG1(f) : WF_ARG0(f)));
	if (WF_LIKELY(p.kind == LX_PROC_OTHER))
		return open_other(f, &p, flags);
	if (p.kind == LX_PROC_TASKS)
		return open_tasks(f);
	if (!lx_proc_is_made(&p) || flags & (O_DIRECTORY | O_PATH))
		return open_other(f, &p, flags);
	if (!writes) {
		fd = lx_proc_make(&p, flags);
		if (fd >= 0)
			wf_fd_forget((int)fd);
		return fd;
	}
	if (p.rest[0] != 'c')
		return -EACCES;
	if (wf_fd_is_private())
		return open_other(f, &p, flags);
	return open_to_name(p.kind == LX_PROC_GROUP ? lx.main : p.t, flags);
}

/* creat, openat2: few programs open files of threads by these. */
long sysc_open_rare(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_openat2;
	struct open_how how = { .flags = O_WRONLY };
	struct lx_proc_path p;
	long fd;

	/* A structure that is bad, or an absolute path below some other root, is the kernel's. */
	if (is_at && (wf_arch_copy(&how, (const void *)WF_ARG2(f), sizeof(how)) < 0 ||
		      how.resolve & RESOLVE_IN_ROOT))
		return sysc_new_fd(f);
	lx_proc_parse(&p, is_at ? (int)WF_ARG0(f) : AT_FDCWD,
		      (const char *)(is_at ? WF_ARG1(f) : WF_ARG0(f)));
	if (p.kind != LX_PROC_THREAD)
		return sysc_new_fd(f);
	fd = lx_proc_open(f, is_at, &p, (how.flags & O_ACCMODE) != O_RDONLY);
	if (fd >= 0)
		wf_fd_forget((int)fd);
	return fd;
}

void lx_names_tell_kernel(const struct lx_thread *t)
{
	char path[48];
	struct wf_fmt f;
	long fd;
	int tid = t == lx.main && !lx_bind_tid(t) ? wf_rt.door->tid : lx_bind_tid(t);

	if (!tid)
		return;
	wf_fmt_init(&f, path, sizeof(path) - 1);
	wf_fmt_str(&f, "/proc/self/task/");
	wf_fmt_u64(&f, (uint64_t)tid);
	wf_fmt_str(&f, "/comm");
	path[f.len] = 0;
	fd = sys4(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)sys3(__NR_write, fd, t->name, sizeof(t->name));
	(void)sys_close((int)fd);
}

void lx_names_lend(const struct lx_thread *t)
{
	char name[sizeof(t->name)] = { 0 };

	if (wf_load_acquire(&wf_rt.is_filtered))
		return;
	__builtin_memcpy(name, t->name, sizeof(name) - 1);
	(void)sys2(__NR_prctl, PR_SET_NAME, name);
}

long sysc_close_name(struct wf_frame *f)
{
	uint32_t tid = 0;
	struct lx_thread *t;
	char name[16] = { 0 };
	long n;

	if (WF_UNLIKELY(wf_load_relaxed(&names.nr)) && !wf_fd_is_private())
		tid = take_open_name((int)WF_ARG0(f));
	if (!tid || tid == ALL_TASKS)
		return sysc_close(f);
	n = sys4(__NR_pread64, WF_ARG0(f), name, sizeof(name) - 1, 0);
	t = lx_by_tid(tid);
	if (n > 0 && t) {
		__builtin_memcpy(t->name, name, sizeof(name));
		lx_names_tell_kernel(t);
	}
	return sysc_close(f);
}
