// SPDX-License-Identifier: Apache-2.0
/*
 * The files of /proc in which threads show: the kernel's text of some kernel thread, with what is the thread's own
 * (or, for the process, the number of threads and what the main thread has) put in its place.
 *
 * They are memory files that hold what was true when they were opened.
 */
#include "base/fmt.h"
#include "linux/named.h"
#include "linux/procfile.h"
#include "linux/procpath.h"
#include "sched/account.h"

#include <linux/fcntl.h>
#include <linux/memfd.h>

#define TEXT_BYTES (8ul << 10)
#define TICK_NS (10 * WF_MS) /* of sysconf(_SC_CLK_TCK) */

struct texts {
	char in[TEXT_BYTES], out[TEXT_BYTES];
};

static bool is_name(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

bool lx_proc_is_made(const struct lx_proc_path *p)
{
	static const char *const names[] = { "comm", "stat", "status", "schedstat" };

	if (p->kind != LX_PROC_THREAD && p->kind != LX_PROC_GROUP)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (is_name(p->rest, names[i]))
			return true;
	return false;
}

static long read_text(const char *path, char *out, size_t room)
{
	long fd = sys4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0), n;

	if (fd < 0)
		return fd;
	n = sys3(__NR_read, fd, out, room - 1);
	(void)sys_close((int)fd);
	if (n >= 0)
		out[n] = 0;
	return n;
}

/* "/proc/self/task/TID/"; tid 0: "/proc/self/". */
static void put_folder(struct wf_fmt *f, int tid)
{
	wf_fmt_str(f, "/proc/self/");
	if (tid) {
		wf_fmt_str(f, "task/");
		wf_fmt_u64(f, (uint64_t)tid);
		wf_fmt_str(f, "/");
	}
}

/* Behind the name, which may hold anything. */
static char *behind_name(char *stat)
{
	char *p = stat;

	for (char *q = stat; *q; q++)
		if (*q == ')')
			p = q + 1;
	return p;
}

/* In a call: who sees a sleeper may rely on it that it waits already, which only the kernel knows. */
char lx_proc_state_in_call(const struct lx_thread *t)
{
	const struct wf_kthread *k = wf_load_acquire(&t->base.kthread);
	char path[64], text[128], *p;
	struct wf_fmt f;

	if (!k || wf_load_relaxed(&t->base.wait_kind) != WF_WAIT_CALL)
		return 'R';
	wf_fmt_init(&f, path, sizeof(path) - 1);
	put_folder(&f, wf_load_acquire(&k->tid));
	wf_fmt_str(&f, "stat");
	path[f.len] = 0;
	if (read_text(path, text, sizeof(text)) < 0)
		return 'R';
	/* Not that of a kernel thread that has nothing to do since. */
	if (wf_load_acquire(&t->base.kthread) != k ||
	    wf_load_relaxed(&t->base.wait_kind) != WF_WAIT_CALL)
		return 'R';
	p = behind_name(text);
	return *p == ' ' ? p[1] : 'R';
}

static char state_of(const struct lx_thread *t)
{
	if (t == lx_self())
		return 'R';
	switch (wf_state_of(wf_load_acquire(&t->base.state))) {
	case WF_PARKED: /* not while it is WF_PARKING: the list of waiters may not have it yet */
		return 'S';
	case WF_RUNNING:
		return wf_load_relaxed(&t->base.wait_kind) == WF_WAIT_CALL
			       ? lx_proc_state_in_call(t)
			       : 'R';
	case WF_DEAD:
		return 'Z'; /* main, which others outlive */
	default:
		return 'R';
	}
}

static void put_state(struct wf_fmt *f, const struct lx_thread *t)
{
	static const char *const words[] = { "S (sleeping)", "D (disk sleep)",   "T (stopped)",
					     "Z (zombie)",   "t (tracing stop)", "R (running)" };
	char state = state_of(t);
	size_t i = 0;

	while (i < ARRAY_LEN(words) - 1 && words[i][0] != state)
		i++;
	wf_fmt_str(f, "State:\t");
	wf_fmt_str(f, words[i]);
}

static void put_name(struct wf_fmt *f, const struct lx_thread *t)
{
	char name[sizeof(t->name) + 1] = { 0 };

	__builtin_memcpy(name, t->name, sizeof(t->name));
	wf_fmt_str(f, name);
}

/* The signals with a handler, or ignored: not those of the runtime. */
static uint64_t signals_with(bool is_ignored)
{
	uint64_t set = 0;

	for (int sig = 1; sig <= WF_NR_SIGNALS; sig++) {
		void *h = lx.action[sig].handler;

		if (h && (h == (void *)1) == is_ignored)
			set |= lx_bit(sig);
	}
	return set;
}

static void put_hex16(struct wf_fmt *f, uint64_t v)
{
	static const char digits[] = "0123456789abcdef";

	for (int shift = 60; shift >= 0; shift -= 4) {
		char c[2] = { digits[v >> shift & 15], 0 };

		wf_fmt_str(f, c);
	}
}

static bool begins(const char *line, const char *word)
{
	while (*word)
		if (*line++ != *word++)
			return false;
	return true;
}

/* One line of status, without its end, is put anew: false if it is right as it is. */
static bool put_status_line(struct wf_fmt *f, const char *line, const struct lx_thread *t,
			    bool is_group)
{
	if (begins(line, "Name:")) {
		wf_fmt_str(f, "Name:\t");
		put_name(f, t);
	} else if (begins(line, "State:")) {
		put_state(f, t);
	} else if (begins(line, "Pid:")) {
		wf_fmt_str(f, "Pid:\t");
		wf_fmt_u64(f, is_group ? (uint64_t)wf_rt.pid : lx_tid(t));
	} else if (begins(line, "NSpid:")) {
		wf_fmt_str(f, "NSpid:\t");
		wf_fmt_u64(f, is_group ? (uint64_t)wf_rt.pid : lx_tid(t));
	} else if (begins(line, "Threads:")) {
		wf_fmt_str(f, "Threads:\t");
		wf_fmt_u64(f, wf_load_relaxed(&lx.nr_threads));
	} else if (begins(line, "SigPnd:")) {
		wf_fmt_str(f, "SigPnd:\t");
		put_hex16(f, wf_load_relaxed(&t->pending.set));
	} else if (begins(line, "SigBlk:")) {
		wf_fmt_str(f, "SigBlk:\t");
		put_hex16(f, wf_load_relaxed(&t->sig_mask));
	} else if (begins(line, "SigIgn:")) {
		wf_fmt_str(f, "SigIgn:\t");
		put_hex16(f, signals_with(true));
	} else if (begins(line, "SigCgt:")) {
		wf_fmt_str(f, "SigCgt:\t");
		put_hex16(f, signals_with(false));
	} else if (begins(line, "voluntary_ctxt_switches:")) {
		wf_fmt_str(f, "voluntary_ctxt_switches:\t");
		wf_fmt_u64(f, t->base.nr_switches);
	} else if (begins(line, "nonvoluntary_ctxt_switches:")) {
		wf_fmt_str(f, "nonvoluntary_ctxt_switches:\t0");
	} else {
		return false;
	}
	return true;
}

static void put_status(struct wf_fmt *f, char *in, const struct lx_thread *t, bool is_group)
{
	while (*in) {
		char *end = in;

		while (*end && *end != '\n')
			end++;
		if (!*end)
			return;
		*end = 0;
		if (!put_status_line(f, in, t, is_group))
			wf_fmt_str(f, in);
		wf_fmt_str(f, "\n");
		in = end + 1;
	}
}

/* Field n of stat, counted from 1 as in proc(5), is put anew: false if it is right as it is. */
static bool put_stat_field(struct wf_fmt *f, int n, const struct lx_thread *t, bool is_group)
{
	bool is_realtime = t->priority > 0;
	char state[2] = { 0 };

	switch (n) {
	case 3:
		state[0] = state_of(t);
		wf_fmt_str(f, state);
		return true;
	case 14:
		if (!is_group)
			wf_fmt_u64(f, (uint64_t)(wf_account_cpu_ns((struct wf_thread *)&t->base) /
						 TICK_NS));
		return !is_group;
	case 15:
		if (!is_group)
			wf_fmt_str(f, "0");
		return !is_group;
	case 18:
		wf_fmt_i64(f, is_realtime ? -1 - t->priority : 20 + t->nice);
		return true;
	case 19:
		wf_fmt_i64(f, t->nice);
		return true;
	case 20:
		wf_fmt_u64(f, wf_load_relaxed(&lx.nr_threads));
		return true;
	case 40:
		wf_fmt_i64(f, t->priority);
		return true;
	case 41:
		wf_fmt_u64(f, t->policy & 0xffff);
		return true;
	default:
		return false;
	}
}

static void put_stat(struct wf_fmt *f, char *in, const struct lx_thread *t, bool is_group)
{
	char *p = behind_name(in);

	wf_fmt_u64(f, is_group ? (uint64_t)wf_rt.pid : lx_tid(t));
	wf_fmt_str(f, " (");
	put_name(f, t);
	wf_fmt_str(f, ")");
	for (int n = 3; *p == ' '; n++) {
		char *word = ++p, was;

		while (*p && *p != ' ' && *p != '\n')
			p++;
		was = *p;
		*p = 0;
		wf_fmt_str(f, " ");
		if (!put_stat_field(f, n, t, is_group))
			wf_fmt_str(f, word);
		*p = was;
	}
	wf_fmt_str(f, "\n");
}

static void put_schedstat(struct wf_fmt *f, const struct lx_thread *t)
{
	wf_fmt_u64(f, (uint64_t)wf_account_cpu_ns((struct wf_thread *)&t->base));
	wf_fmt_str(f, " 0 ");
	wf_fmt_u64(f, t->base.nr_switches);
	wf_fmt_str(f, "\n");
}

/* The kernel's text of the same file. */
static long read_kernels(const struct lx_proc_path *p, char *out)
{
	char path[96];
	struct wf_fmt f;
	int tid = 0;

	/* The capabilities, the filters and such in the status of the process are main's. */
	if (p->kind == LX_PROC_THREAD || is_name(p->rest, "status"))
		tid = lx_named_kernel_tid(p->kind == LX_PROC_THREAD ? p->t : lx.main);
	wf_fmt_init(&f, path, sizeof(path) - 1);
	put_folder(&f, tid);
	wf_fmt_str(&f, p->rest);
	path[f.len] = 0;
	return read_text(path, out, TEXT_BYTES);
}

long lx_proc_make(const struct lx_proc_path *p, uint64_t open_flags)
{
	bool is_group = p->kind == LX_PROC_GROUP;
	const struct lx_thread *t = is_group ? lx.main : p->t;
	struct texts *texts = sys_map(sizeof(*texts));
	struct wf_fmt f;
	long ret = 0;

	if (!texts)
		return -ENOMEM;
	wf_fmt_init(&f, texts->out, sizeof(texts->out));
	if (is_name(p->rest, "comm")) {
		put_name(&f, t);
		wf_fmt_str(&f, "\n");
	} else if (is_name(p->rest, "schedstat")) {
		put_schedstat(&f, t);
	} else {
		ret = read_kernels(p, texts->in);
		if (ret >= 0 && is_name(p->rest, "stat"))
			put_stat(&f, texts->in, t, is_group);
		else if (ret >= 0)
			put_status(&f, texts->in, t, is_group);
	}
	if (ret >= 0)
		ret = sys2(__NR_memfd_create, p->rest, open_flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (ret >= 0)
		(void)sys4(__NR_pwrite64, ret, texts->out, f.len, 0);
	sys_unmap(texts, sizeof(*texts));
	return ret;
}
