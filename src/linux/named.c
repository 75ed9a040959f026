// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that the kernel answers and that may name a thread of ours, whose tid it does not know: it gets the
 * tid of the thread's own kernel thread when it is bound, else of one that is for all, which like a thread is
 * not the process's first. Their answer about a thread is the same for all threads of a process (limits,
 * session, memory), or belongs to the kernel thread: then those that change it bind the thread first.
 */
#include "linux/named.h"
#include "base/fmt.h"
#include "io/fd.h"
#include "linux/bind.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/everybody.h"
#include "linux/remote.h"

#include <fcntl.h>
#include <linux/capability.h>

#define IOPRIO_WHO_PROCESS 1

/* A kernel thread that is for all, and not the process's first. */
static int common_tid(void)
{
	uint32_t n = wf_load_acquire(&wf_rt.nr_kthreads);

	for (uint32_t i = 0; i < n && wf_is_bound(wf_self()); i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);
		int tid = wf_load_acquire(&k->tid);

		if (!k->is_door && !wf_has_own_state(k) && tid > 0)
			return tid;
	}
	return wf_own_kthread()->tid;
}

int lx_named_kernel_tid(const struct lx_thread *t)
{
	return lx_bind_tid(t) ? lx_bind_tid(t) : common_tid();
}

/* The tid for the kernel of what a program calls tid. One that is not ours goes on as it is. */
static uint32_t kernel_tid(uint32_t tid)
{
	struct lx_thread *t = tid >= WF_TID_BASE ? lx_by_tid(tid) : NULL;

	return t ? (uint32_t)lx_named_kernel_tid(t) : tid;
}

static long call_with(struct wf_frame *f, int i, int j)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };

	args[i] = (int)kernel_tid((uint32_t)args[i]);
	args[j] = (int)kernel_tid((uint32_t)args[j]);
	return lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS);
}

long sysc_names_first(struct wf_frame *f)
{
	return call_with(f, 0, 0);
}

#define STATUS_HEAD_BYTES 256 /* the tracer stands in the eighth line */

/* The kernel thread that traces tid, as the kernel calls it; 0: none. */
static int tracer_of(uint32_t tid)
{
	static const char field[] = "\nTracerPid:\t";
	char text[STATUS_HEAD_BYTES + 1] = { 0 }, path[32];
	struct wf_fmt f;
	int tracer = 0;
	long fd;

	wf_fmt_init(&f, path, sizeof(path) - 1);
	wf_fmt_str(&f, "/proc/");
	wf_fmt_u64(&f, tid);
	wf_fmt_str(&f, "/status");
	path[f.len] = 0;
	fd = sys4(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	(void)sys3(__NR_read, fd, text, STATUS_HEAD_BYTES);
	(void)sys_close((int)fd);
	for (const char *p = text; *p; p++) {
		size_t n = 0;

		while (field[n] && p[n] == field[n])
			n++;
		if (field[n])
			continue;
		for (p += n; *p >= '0' && *p <= '9'; p++)
			tracer = tracer * 10 + (*p - '0');
		break;
	}
	return tracer;
}

/*
 * The kernel knows a tracer by its kernel thread: the caller's is its own from now on. A child that asked to be
 * traced (PTRACE_TRACEME) is traced by the one that made it, which the caller may have left before its first
 * request; such requests are made there.
 */
long sysc_ptrace(struct wf_frame *f)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f), (long)WF_ARG3(f) };
	struct wf_kthread *k;
	long ret = lx_bind_for(LX_BIND_STATE);

	if (ret < 0)
		return ret;
	args[1] = (int)kernel_tid((uint32_t)args[1]);
	ret = lx_blocking_call(__NR_ptrace, args, false, LX_RESTART_SYS);
	if (ret != -ESRCH || args[1] <= 0)
		return ret;
	k = lx_remote_find(tracer_of((uint32_t)args[1]));
	return k && k != wf_own_kthread()
		       ? lx_remote_do(k, LX_REMOTE_PTRACE, args[0], args[1], args[2], args[3])
		       : ret;
}

/* The thread that a call is about, to be bound before it: NULL when that is no thread of ours. */
static struct lx_thread *bind_named(uint32_t tid)
{
	struct lx_thread *t = lx_by_tid(tid);

	if (t == lx_self())
		(void)lx_bind_for(LX_BIND_STATE);
	else if (t)
		lx_bind_other(t, LX_BIND_STATE);
	return t;
}

#define PERF_FLAG_PID_CGROUP 4

long sysc_perf_event_open(struct wf_frame *f)
{
	long args[6] = { (long)WF_ARG0(f), (int)WF_ARG1(f), (long)WF_ARG2(f), (long)WF_ARG3(f),
			 (long)WF_ARG4(f) };
	struct lx_thread *t = NULL;
	long ret;

	if ((int)args[1] >= 0 && !(args[4] & PERF_FLAG_PID_CGROUP))
		t = bind_named((uint32_t)args[1]);
	if (t)
		args[1] = lx_bind_tid(t) ? lx_bind_tid(t)
					 : (int)lx_tid(t); /* not yet: no such process */
	ret = lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS);
	if (ret >= 0)
		wf_fd_forget((int)ret);
	return ret;
}

long sysc_names_both(struct wf_frame *f)
{
	return call_with(f, 0, 1);
}

long sysc_ioprio(struct wf_frame *f)
{
	struct lx_thread *t;
	long ret, old;

	if ((uint32_t)WF_ARG0(f) != IOPRIO_WHO_PROCESS)
		return lx_raw(f);
	if (f->nr == __NR_ioprio_get)
		return call_with(f, 1, 1);
	t = bind_named((uint32_t)WF_ARG1(f));
	if (!t)
		return lx_raw(f);
	if (lx_bind_tid(t))
		return sys3(f->nr, IOPRIO_WHO_PROCESS, lx_bind_tid(t), WF_ARG2(f));
	/* It will be bound when it runs again. Would the kernel allow it? */
	old = sys2(__NR_ioprio_get, IOPRIO_WHO_PROCESS, 0);
	ret = sys3(__NR_ioprio_set, IOPRIO_WHO_PROCESS, 0, WF_ARG2(f));
	(void)sys3(__NR_ioprio_set, IOPRIO_WHO_PROCESS, 0, old);
	if (ret == 0) {
		t->ioprio = (int)WF_ARG2(f);
		wf_store_release(&t->has_ioprio, true);
	}
	return ret;
}

#define PIDFD_THREAD O_EXCL

/* A descriptor for one thread would be one for a kernel thread: refused as by kernels before 6.9. */
long sysc_pidfd_open(struct wf_frame *f)
{
	long args[6] = { (int)kernel_tid((uint32_t)WF_ARG0(f)), (long)WF_ARG1(f) };
	long fd;

	if (WF_ARG1(f) & PIDFD_THREAD && args[0] != (int)WF_ARG0(f))
		return -EINVAL;
	fd = lx_blocking_call(__NR_pidfd_open, args, false, LX_RESTART_SYS);
	if (fd >= 0)
		wf_fd_made((int)fd, WF_ARG1(f) & O_NONBLOCK);
	return fd;
}

/*
 * SIGIO goes to the process instead of a thread of ours, since the kernel's signals come in for the process.
 */
long sysc_fcntl_owner(struct wf_frame *f)
{
	struct {
		int type, pid;
	} owner;
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f) };

	if ((uint32_t)WF_ARG1(f) == F_SETOWN) {
		if ((int)args[2] >= (int)WF_TID_BASE && lx_by_tid((uint32_t)args[2]))
			args[2] = wf_rt.pid;
	} else if (wf_arch_copy(&owner, (const void *)args[2], sizeof(owner)) == 0 &&
		   owner.pid >= (int)WF_TID_BASE && lx_by_tid((uint32_t)owner.pid)) {
		owner.pid = wf_rt.pid;
		args[2] = (long)&owner;
	}
	return lx_blocking_call(__NR_fcntl, args, false, LX_RESTART_SYS);
}

/* The caller's own; it is the process if it is alone. */
static long set_caps(const long args[6])
{
	bool had_state = lx_has_own_state();
	const struct lx_everybody call = { .nr = __NR_capset,
					   .args = { args[0], args[1] },
					   .is_own_state = had_state };
	long ret;

	if (lx_is_alone())
		return lx_everybody_request(&call);
	ret = lx_bind_for(LX_BIND_STATE);
	if (ret < 0)
		return ret;
	ret = lx_blocking_call(__NR_capset, args, false, LX_RESTART_SYS);
	if (ret < 0 && !had_state)
		lx_bind_no_longer_for(LX_BIND_STATE);
	return ret;
}

/* capget, capset: the tid stands in memory. Only the caller's own may be set, and may be written as 0. */
long sysc_cap(struct wf_frame *f)
{
	struct __user_cap_header_struct header;
	long args[6] = { (long)&header, (long)WF_ARG1(f) };
	struct lx_thread *self = lx_self(), *t;
	uint32_t version;
	long ret;

	if (wf_arch_copy(&header, (const void *)WF_ARG0(f), sizeof(header)) < 0)
		return lx_raw(f);
	t = header.pid >= 0 ? lx_by_tid((uint32_t)header.pid) : NULL;
	if (!t || (f->nr == __NR_capset && t != self))
		return lx_raw(f);
	version = header.version;
	header.pid = t == self ? 0 : (int)kernel_tid((uint32_t)header.pid);
	if (f->nr == __NR_capset)
		ret = set_caps(args);
	else
		ret = lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS);
	/* the kernel says which version it wants */
	if (header.version != version &&
	    wf_arch_copy((void *)WF_ARG0(f), &header.version, sizeof(header.version)) < 0)
		return -EFAULT;
	return ret;
}
