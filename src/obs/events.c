// SPDX-License-Identifier: Apache-2.0
/* The event rings as text; see events.h. */
#include "obs/events.h"
#include "base/fmt.h"
#include "sched/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/stat.h>
#include <sys/file.h>

#define LINE_BYTES 160

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		long n = sys_write(fd, text, len);

		if (n < 0)
			return (int)n;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_event(int fd, const struct wf_kthread *k, const struct wf_trace_event *e)
{
	char text[LINE_BYTES];
	struct wf_fmt f;

	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_u64(&f, e->cycles);
	wf_fmt_str(&f, " ");
	wf_fmt_i64(&f, k->tid);
	wf_fmt_str(&f, " ");
	wf_fmt_u64(&f, e->tid);
	wf_fmt_str(&f, " ");
	wf_fmt_str(&f, wf_trace_name(wf_trace_kind(e)));
	wf_fmt_str(&f, " ");
	wf_fmt_hex(&f, e->a);
	wf_fmt_str(&f, " ");
	wf_fmt_hex(&f, e->b);
	wf_fmt_str(&f, "\n");
	return write_all(fd, text, f.len);
}

/* The part of a ring that is still to be written. */
struct rest {
	const struct wf_trace_ring *ring;
	uint64_t at, end;
};

static struct rest rest_of(const struct wf_trace_ring *ring)
{
	uint64_t end = ring && ring->places ? wf_load_acquire(&ring->next) : 0;
	uint64_t nr_places = ring ? ring->mask + 1 : 0;

	return (struct rest){ ring, end > nr_places ? end - nr_places : 0, end };
}

/* Nobody writes any more, but one that is cut off in the middle of an event may have said nothing in its place. */
static const struct wf_trace_event *first_of(struct rest *r)
{
	for (; r->at < r->end; r->at++) {
		const struct wf_trace_event *e = &r->ring->places[r->at & r->ring->mask];

		if (wf_trace_kind(e) != WF_EV_NONE)
			return e;
	}
	return NULL;
}

/* The events of a kernel thread in the order in which they were. */
static int write_kthread(int fd, const struct wf_kthread *k)
{
	struct rest rests[WF_TRACE_RINGS];
	int ret = 0;

	for (uint32_t i = 0; i < WF_TRACE_RINGS; i++)
		rests[i] = rest_of(k->ring ? &k->ring[i] : NULL);
	while (ret == 0) {
		const struct wf_trace_event *first = NULL;
		struct rest *from = NULL;

		for (uint32_t i = 0; i < WF_TRACE_RINGS; i++) {
			const struct wf_trace_event *e = first_of(&rests[i]);

			if (!e || (first && first->cycles <= e->cycles))
				continue;
			first = e;
			from = &rests[i];
		}
		if (!from)
			break;
		from->at++;
		ret = write_event(fd, k, first);
	}
	return ret;
}

static int write_rings(int fd)
{
	static const char head[] = "# cycles kernel-thread thread event a b\n";
	uint32_t n = wf_load_acquire(&wf_rt.nr_kthreads);
	int ret = write_all(fd, head, sizeof(head) - 1);

	for (uint32_t i = 0; i < n && ret == 0; i++)
		ret = write_kthread(fd, wf_load_acquire(&wf_rt.kthreads[i]));
	return ret;
}

/* --- the file --- */

static struct {
	char path[PATH_MAX + 16]; /* the program may rewrite its environment; room for ".PID" */
	bool is_own;              /* by its name no other process's: %p */
	bool was_there;
	struct statx seen;
} file;

static long look(int dir, const char *path, struct statx *out)
{
	int flags = AT_SYMLINK_NOFOLLOW | (*path ? 0 : AT_EMPTY_PATH);

	return sys5(__NR_statx, dir, path, flags, STATX_BASIC_STATS, out);
}

static bool is_kind(const struct statx *st, uint16_t kind)
{
	return (st->stx_mode & S_IFMT) == kind;
}

void wf_events_to(const char *path)
{
	struct wf_fmt f;

	wf_fmt_init(&f, file.path, PATH_MAX);
	for (; *path; path++) {
		const char c[] = { *path, 0 };

		if (path[0] == '%' && path[1] == 'p') {
			wf_fmt_i64(&f, sys0(__NR_getpid));
			file.is_own = true;
			path++;
		} else {
			wf_fmt_str(&f, c);
		}
	}
	if (f.len + 1 >= f.cap) /* cut: it is another file's name */
		file.path[0] = 0;
	file.was_there = look(AT_FDCWD, file.path, &file.seen) == 0;
}

const char *wf_events_file(void)
{
	return file.path;
}

static const char *reason(long error)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		return ": its folder is gone";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return ": no permission";
	case -ELOOP:
		return ": it is a symbolic link";
	case -ENXIO:
		return ": nobody reads the FIFO";
	case -ENOSPC:
	case -EDQUOT:
		return ": no space";
	case -ESTALE:
		return ": it is another file than when the program began";
	default:
		return ": the system refuses it";
	}
}

#define OPEN_FLAGS (O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static long make_file(void)
{
	return sys4(__NR_openat, AT_FDCWD, file.path, OPEN_FLAGS | O_CREAT | O_EXCL, 0600);
}

/* No file that has taken the name, or has another name as well. */
static bool is_ours(const struct statx *st)
{
	return st->stx_nlink == 1 && st->stx_uid == (uint32_t)sys0(__NR_geteuid);
}

/* One that only this process writes to: what an earlier process with our pid has left there is ours to overwrite. */
static long open_own(void)
{
	long fd = make_file();
	struct statx st;

	if (fd != -EEXIST)
		return fd;
	fd = sys4(__NR_openat, AT_FDCWD, file.path, OPEN_FLAGS, 0);
	if (fd < 0)
		return fd;
	if (look((int)fd, "", &st) == 0 && is_kind(&st, S_IFREG) && is_ours(&st) &&
	    sys2(__NR_ftruncate, fd, 0) == 0)
		return fd;
	(void)sys_close((int)fd);
	return -ESTALE;
}

static long open_with_pid(void)
{
	struct wf_fmt f;
	size_t n = 0;

	while (file.path[n])
		n++;
	wf_fmt_init(&f, file.path + n, sizeof(file.path) - n);
	wf_fmt_str(&f, ".");
	wf_fmt_i64(&f, sys0(__NR_getpid));
	return open_own();
}

/*
 * The file that had the name before, for the first of the processes that come to its end; the lock decides between two. No
 * lock can be had everywhere, and where there is none the size says nearly as much.
 */
static long open_common(void)
{
	long fd = file.was_there ? sys4(__NR_openat, AT_FDCWD, file.path, OPEN_FLAGS, 0)
				 : make_file();
	struct statx st;

	if (fd == -EEXIST)
		return open_with_pid();
	if (fd < 0)
		return fd;
	if (look((int)fd, "", &st) < 0 || (is_kind(&st, S_IFREG) && !is_ours(&st)) ||
	    (file.was_there &&
	     (st.stx_ino != file.seen.stx_ino || st.stx_dev_major != file.seen.stx_dev_major ||
	      st.stx_dev_minor != file.seen.stx_dev_minor))) {
		(void)sys_close((int)fd);
		return -ESTALE;
	}
	if (!is_kind(&st, S_IFREG))
		return fd;
	if (sys2(__NR_flock, fd, LOCK_EX | LOCK_NB) != -EWOULDBLOCK &&
	    look((int)fd, "", &st) == 0 && st.stx_size == 0)
		return fd;
	(void)sys_close((int)fd);
	return open_with_pid();
}

const char *wf_events_write(void)
{
	long fd, ret;

	if (!file.path[0])
		return NULL;
	fd = file.is_own ? open_own() : open_common();
	if (fd < 0)
		return reason(fd);
	(void)sys3(__NR_fcntl, fd, F_SETFL, 0); /* whoever reads from a FIFO may be slow */
	ret = write_rings((int)fd);
	(void)sys_close((int)fd);
	return ret < 0 ? reason(ret) : NULL;
}
