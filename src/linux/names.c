// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a thread as a file, /proc/self/task/TID/comm, is a memory file that holds the name; one that was
 * opened for writing is read back when it is closed. So a reader and a writer at once do not see one another.
 */
#include "io/fd.h"
#include "linux/calls.h"
#include "linux/comm.h"
#include "linux/nametable.h"
#include "linux/procfile.h"
#include "linux/procpath.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/openat2.h>

static long open_tasks(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_openat;
	long fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/task", is_at ? WF_ARG2(f) : WF_ARG1(f),
		       0);

	if (fd < 0)
		return fd;
	wf_fd_forget((int)fd);
	/* Too many at once: it shows what the kernel has. */
	(void)lx_nametable_add((int)fd, LX_NAMETABLE_TASKS);
	return fd;
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
	if (lx_nametable_add((int)fd, lx_tid(t)))
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

long sysc_close_name(struct wf_frame *f)
{
	uint32_t tid = lx_nametable_take((int)WF_ARG0(f));
	struct lx_thread *t;
	char name[16] = { 0 };
	long n;

	if (WF_LIKELY(!tid) || tid == LX_NAMETABLE_TASKS)
		return sysc_close(f);
	n = sys4(__NR_pread64, WF_ARG0(f), name, sizeof(name) - 1, 0);
	t = lx_by_tid(tid);
	if (n > 0 && t) {
		__builtin_memcpy(t->name, name, sizeof(name));
		lx_comm_tell_kernel(t);
	}
	return sysc_close(f);
}
