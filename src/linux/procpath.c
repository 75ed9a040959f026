// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of threads: /proc/self/task/TID/..., /proc/thread-self/..., /proc/TID/...
 *
 * Files that tell one thread from another are made by procfile.c. Everything else there (maps, fd, ns, limits, ...) is
 * the same for all threads of a process, or belongs to the kernel thread: the path is turned into that of the
 * thread's own kernel thread when it is bound, else of one that all share.
 *
 * A file that only the thread itself may write (its security label, who logged in) is its kernel thread's: a thread that
 * opens such a file of its own to write is bound first. Nobody's kernel thread must be taken for another thread's there.
 */
#include "linux/procpath.h"
#include "linux/bind.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/named.h"
#include "linux/nametable.h"

#include "base/fmt.h"

#include <linux/fcntl.h>

#define PREFIX "/proc/"
#define PREFIX_HEAD 0x6f72702fu /* "/pro" */
#define PREFIX_LEN (sizeof(PREFIX) - 1)
#define PATH_BYTES 128

static bool skip(const char **p, const char *word)
{
	const char *q = *p;

	while (*word)
		if (*q++ != *word++)
			return false;
	*p = q;
	return true;
}

static void skip_slashes(const char **p)
{
	while (**p == '/')
		(*p)++;
}

static bool number(const char **p, uint32_t *out)
{
	uint64_t v = 0;
	const char *q = *p;

	while (*q >= '0' && *q <= '9' && v < INT32_MAX)
		v = v * 10 + (uint64_t)(*q++ - '0');
	if (q == *p || v > INT32_MAX || (*q && *q != '/'))
		return false;
	*p = q;
	*out = (uint32_t)v;
	return true;
}

static void set_rest(struct lx_proc_path *out, const char *p)
{
	size_t i = 0;

	skip_slashes(&p);
	while (*p && i < sizeof(out->rest) - 1)
		out->rest[i++] = *p++;
	if (*p)
		out->kind = LX_PROC_OTHER; /* nothing of ours is as long */
	while (i && out->rest[i - 1] == '/')
		i--;
	out->rest[i] = 0;
}

/* Behind "task": one of its entries, or itself. */
static void parse_task(struct lx_proc_path *out, const char *p)
{
	uint32_t tid;

	skip_slashes(&p);
	if (!*p) {
		out->kind = LX_PROC_TASKS;
		return;
	}
	if (!number(&p, &tid) || !tid)
		return;
	out->t = lx_by_tid(tid);
	if (!out->t)
		return; /* the kernel has none of that name either, or it is a tool's */
	out->kind = LX_PROC_THREAD;
	set_rest(out, p);
}

static bool is_group_file(const struct lx_proc_path *p)
{
	static const char *const names[] = { "status", "stat", "comm" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *rest = p->rest;

		if (skip(&rest, names[i]) && !*rest)
			return true;
	}
	return false;
}

/* Of these the process has main's. */
static bool is_written_by_itself(const struct lx_proc_path *p)
{
	const char *rest = p->rest;

	return skip(&rest, "attr/") || (skip(&rest, "loginuid") && !*rest) ||
	       (skip(&rest, "sessionid") && !*rest);
}

/* Behind /proc/. */
static void parse(struct lx_proc_path *out, const char *p)
{
	uint32_t tid;

	if (skip(&p, "thread-self")) {
		out->t = lx_self();
		if (!*p)
			out->kind = LX_PROC_LINK;
	} else if (!skip(&p, "self")) {
		if (!number(&p, &tid))
			return;
		if (tid != (uint32_t)wf_rt.pid) {
			out->t = tid >= WF_TID_BASE ? lx_by_tid(tid) : NULL;
			if (!out->t)
				return;
		}
	}
	if (*p != '/' && (*p || !out->t || out->kind == LX_PROC_LINK))
		return;
	skip_slashes(&p);
	if (skip(&p, "task") && (*p == '/' || !*p)) {
		out->t = NULL;
		parse_task(out, p);
		return;
	}
	out->kind = out->t ? LX_PROC_THREAD : LX_PROC_GROUP;
	set_rest(out, p);
	if (out->kind == LX_PROC_GROUP && is_written_by_itself(out)) {
		out->kind = LX_PROC_THREAD;
		out->t = lx.main;
	} else if (out->kind == LX_PROC_GROUP && !is_group_file(out)) {
		out->kind = LX_PROC_OTHER;
	}
}

void lx_proc_parse(struct lx_proc_path *out, int dirfd, const char *user_path)
{
	char path[PATH_BYTES];
	uint32_t head = 0;
	size_t n = 0;

	out->kind = LX_PROC_OTHER;
	out->t = NULL;
	out->rest[0] = 0;
	/* Most paths end here. Four bytes at once cost a tenth of a copy; they may reach over the end of a page. */
	if (wf_arch_load32((const uint32_t *)user_path, &head) == 0 && (char)head == '/' &&
	    head != PREFIX_HEAD)
		return;
	if (wf_arch_copy(path, user_path, 1) < 0)
		return;
	if (path[0] != '/' && (path[0] < '0' || path[0] > '9' || !lx_nametable_is_tasks(dirfd)))
		return;
	if (path[0] == '/' && (wf_arch_copy(path, user_path, PREFIX_LEN) < 0 ||
			       __builtin_memcmp(path, PREFIX, PREFIX_LEN)))
		return;
	for (n = 0; n < sizeof(path); n++)
		if (wf_arch_copy(&path[n], user_path + n, 1) < 0 || !path[n])
			break;
	if (n == sizeof(path) || path[n])
		return;
	if (path[0] == '/')
		parse(out, path + PREFIX_LEN);
	else
		parse_task(out, path);
}

static void kernel_path(char *buf, size_t bytes, const struct lx_proc_path *p, int tid)
{
	struct wf_fmt f;

	wf_fmt_init(&f, buf, bytes - 1);
	wf_fmt_str(&f, "/proc/self/task/");
	wf_fmt_u64(&f, (uint64_t)tid);
	if (p->rest[0])
		wf_fmt_str(&f, "/");
	wf_fmt_str(&f, p->rest);
	buf[f.len] = 0;
}

static long call_as(struct wf_frame *f, int arg, const struct lx_proc_path *p, int tid)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };
	char path[PATH_BYTES];

	kernel_path(path, sizeof(path), p, tid);
	args[arg] = (long)path;
	return lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS);
}

long lx_proc_call(struct wf_frame *f, int arg, const struct lx_proc_path *p)
{
	if (WF_LIKELY(p->kind != LX_PROC_THREAD))
		return lx_raw(f); /* as before it was looked at: they hardly ever wait */
	return call_as(f, arg, p, lx_named_kernel_tid(p->t));
}

long lx_proc_open(struct wf_frame *f, int arg, const struct lx_proc_path *p, bool writes)
{
	struct lx_thread *self = lx_self();
	bool was_bound = wf_load_acquire(&self->binds) & LX_BIND_STATE;
	long fd;

	if (!writes || !is_written_by_itself(p))
		return lx_proc_call(f, arg, p);
	if (p->t != self) /* the door's, if it has none: the kernel refuses what we write there */
		return call_as(f, arg, p, lx_bind_tid(p->t) ? lx_bind_tid(p->t) : wf_rt.pid);
	fd = lx_bind_for(LX_BIND_STATE);
	if (fd < 0)
		return fd;
	fd = lx_proc_call(f, arg, p);
	if (fd < 0 && !was_bound)
		lx_bind_no_longer_for(LX_BIND_STATE);
	return fd;
}

/* Calls with a path: at the first argument, or at the second after a directory. */
long sysc_path(struct wf_frame *f)
{
	struct lx_proc_path p;

	lx_proc_parse(&p, AT_FDCWD, (const char *)WF_ARG0(f));
	return lx_proc_call(f, 0, &p);
}

long sysc_path_at(struct wf_frame *f)
{
	struct lx_proc_path p;

	lx_proc_parse(&p, (int)WF_ARG0(f), (const char *)WF_ARG1(f));
	return lx_proc_call(f, 1, &p);
}

/* readlink of thread-self: PID/task/TID. */
long sysc_readlink(struct wf_frame *f)
{
	int at = f->nr == __NR_readlinkat;
	uint64_t buf = at ? WF_ARG2(f) : WF_ARG1(f), bytes = at ? WF_ARG3(f) : WF_ARG2(f);
	struct lx_proc_path p;
	struct wf_fmt out;
	char text[48];

	lx_proc_parse(&p, at ? (int)WF_ARG0(f) : AT_FDCWD,
		      (const char *)(at ? WF_ARG1(f) : WF_ARG0(f)));
	if (p.kind != LX_PROC_LINK || (int)bytes <= 0)
		return lx_proc_call(f, at, &p);
	wf_fmt_init(&out, text, sizeof(text));
	wf_fmt_u64(&out, (uint64_t)wf_rt.pid);
	wf_fmt_str(&out, "/task/");
	wf_fmt_u64(&out, lx_tid(lx_self()));
	bytes = WF_MIN(bytes, out.len);
	return wf_arch_copy((void *)buf, text, bytes) < 0 ? -EFAULT : (long)bytes;
}

/*
 * The entries of the directory of all threads. How far it was read is the descriptor's own position, so that
 * lseek() to the beginning starts again: 0 and 1 are "." and "..", then a slot of the thread table each.
 */
struct entry {
	uint64_t ino;
	int64_t next;
	uint16_t bytes;
	uint8_t type;
	char name[13];
};

#define DT_DIR 4
#define ENTRY_NAME offsetof(struct entry, name)
#define FIRST_INO 0x77656674ull /* any number that is not 0 */

static void put_entry(struct entry *e, int64_t at, uint32_t tid)
{
	struct wf_fmt f;

	*e = (struct entry){ .ino = FIRST_INO + (uint64_t)at, .next = at + 1, .type = DT_DIR };
	wf_fmt_init(&f, e->name, sizeof(e->name) - 1);
	if (at < 2)
		wf_fmt_str(&f, at ? ".." : ".");
	else
		wf_fmt_u64(&f, tid);
	e->bytes = (uint16_t)WF_ALIGN_UP(ENTRY_NAME + f.len + 1, 8ul);
}

/* The tid in that slot, or 0. */
static uint32_t tid_at(uint32_t slot)
{
	struct wf_thread *t = wf_thread_slot(slot);
	enum wf_state s = wf_state_of(wf_load_acquire(&t->state));

	return s == WF_FREE || s == WF_DEAD ? 0 : wf_load_relaxed(&t->tid);
}

long sysc_getdents64(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	char *out = (char *)WF_ARG1(f);
	size_t room = (uint32_t)WF_ARG2(f), done = 0;
	uint32_t n = wf_thread_slots();
	int64_t at;

	if (!lx_nametable_is_tasks(fd))
		return lx_blocking(f, false);
	at = sys3(__NR_lseek, fd, 0, 1 /* SEEK_CUR */);
	if (at < 0)
		return lx_blocking(f, false);
	for (; at < (int64_t)n + 2; at++) {
		uint32_t tid = at < 2 ? 1 : tid_at((uint32_t)(at - 2));
		struct entry e;

		if (!tid)
			continue;
		put_entry(&e, at, tid);
		if (done + e.bytes > room)
			break;
		if (wf_arch_copy(out + done, &e, e.bytes) < 0)
			return -EFAULT;
		done += e.bytes;
	}
	if (!done && at < (int64_t)n + 2)
		return -EINVAL;
	(void)sys3(__NR_lseek, fd, at, 0 /* SEEK_SET */);
	return (long)done;
}
