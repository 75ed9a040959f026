// SPDX-License-Identifier: Apache-2.0
/*
 * The name of a thread as a file, /proc/self/task/TID/comm, is a memory file that holds the name; one that was
 * opened for writing is read back when it is closed. So a reader and a writer at once do not see one another.
 */
#include "linux/names.h"
#include "io/fd.h"
#include "linux/calls.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>

#define MAX_OPEN_NAMES 16

static struct {
	struct wf_spin lock;
	uint32_t
		/* (a) entries in use; a look without the lock may only save the trouble of one with it */
		nr;
	struct {
		int fd;
		uint32_t tid; /* 0: free */
	} open[MAX_OPEN_NAMES];
} names;

void lx_names_forget(void)
{
	__builtin_memset(&names, 0, sizeof(names));
}

/* The thread whose comm this path is, or NULL. */
static struct lx_thread *thread_of_path(const char *user_path)
{
	static const char head[] = "/proc/self/task/", tail[] = "/comm";
	uint64_t tid = 0;
	char c;

	for (const char *p = head; *p; p++)
		if (wf_arch_copy(&c, user_path++, 1) < 0 || c != *p)
			return NULL;
	for (;;) {
		if (wf_arch_copy(&c, user_path++, 1) < 0)
			return NULL;
		if (c < '0' || c > '9')
			break;
		tid = tid * 10 + (uint64_t)(c - '0');
		if (tid > INT32_MAX)
			return NULL;
	}
	for (const char *p = tail; c == *p; p++) {
		if (!c)
			return tid ? lx_by_tid((uint32_t)tid) : NULL;
		if (wf_arch_copy(&c, user_path++, 1) < 0)
			return NULL;
	}
	return NULL;
}

/* Remember that closing fd names tid. False: too many at once. */
static bool add_open_name(int fd, uint32_t tid)
{
	bool found = false;

	wf_spin_lock(&names.lock);
	for (int i = 0; i < MAX_OPEN_NAMES && !found; i++) {
		if (names.open[i].tid)
			continue;
		names.open[i].fd = fd;
		names.open[i].tid = tid;
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

long sysc_open(struct wf_frame *f)
{
	bool is_at = f->nr == __NR_openat;
	uint64_t flags = is_at ? WF_ARG2(f) : WF_ARG1(f);
	struct lx_thread *t = thread_of_path((const char *)(is_at ? WF_ARG1(f) : WF_ARG0(f)));
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	size_t len = 0;
	long fd;

	if (!t) {
		fd = sysc_new_fd(f);
		if (fd >= 0 && flags & O_DIRECT)
			wf_fd_note_direct((int)fd, true);
		return fd;
	}
	fd = sys2(__NR_memfd_create, "comm", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0)
		return fd;
	wf_fd_forget((int)fd);
	if (writes) {
		if (add_open_name((int)fd, lx_tid(t)))
			return fd;
		(void)sys_close((int)fd);
		return -EMFILE;
	}
	while (len < sizeof(t->name) && t->name[len])
		len++;
	(void)sys4(__NR_pwrite64, fd, t->name, len, 0);
	(void)sys4(__NR_pwrite64, fd, "\n", 1, len);
	return fd;
}

long sysc_close_name(struct wf_frame *f)
{
	uint32_t tid = 0;
	struct lx_thread *t;
	char name[16] = { 0 };
	long n;

	if (WF_UNLIKELY(wf_load_relaxed(&names.nr)))
		tid = take_open_name((int)WF_ARG0(f));
	if (!tid)
		return sysc_close(f);
	n = sys4(__NR_pread64, WF_ARG0(f), name, sizeof(name) - 1, 0);
	t = lx_by_tid(tid);
	if (n > 0 && t) {
		if (name[n - 1] == '\n')
			name[n - 1] = 0;
		__builtin_memcpy(t->name, name, sizeof(name));
	}
	return sysc_close(f);
}
