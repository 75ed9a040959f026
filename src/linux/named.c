// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that the kernel answers and that may name a thread of ours, whose tid it does not know: it gets the
 * tid of the caller's kernel thread instead, which like a thread is not the process's first.
 *
 * What these calls say of a thread is the same for all threads of a process (limits, session, memory), or
 * belongs to the kernel thread in any case.
 */
#include "io/fd.h"
#include "linux/abi.h"
#include "linux/calls.h"

#include <fcntl.h>
#include <linux/capability.h>

#define IOPRIO_WHO_PROCESS 1

/* The tid for the kernel of what a program calls tid. One that is not ours goes on as it is. */
static uint32_t kernel_tid(uint32_t tid)
{
	return tid >= WF_TID_BASE && lx_by_tid(tid) ? (uint32_t)wf_own_kthread()->tid : tid;
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

long sysc_names_second(struct wf_frame *f)
{
	long ret = call_with(f, 1, 1);

	if (f->nr == __NR_perf_event_open && ret >= 0)
		wf_fd_forget((int)ret);
	return ret;
}

long sysc_names_both(struct wf_frame *f)
{
	return call_with(f, 0, 1);
}

long sysc_ioprio(struct wf_frame *f)
{
	return (uint32_t)WF_ARG0(f) == IOPRIO_WHO_PROCESS ? call_with(f, 1, 1) : lx_raw(f);
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
 * Who gets SIGIO: the process instead of a thread of ours, since the kernel's signals come in for the process.
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

/* capget, capset: the tid stands in memory. Only the caller's own may be set, and may be written as 0. */
long sysc_cap(struct wf_frame *f)
{
	struct __user_cap_header_struct header;
	long args[6] = { (long)&header, (long)WF_ARG1(f) };
	uint32_t version;
	long ret;

	if (wf_arch_copy(&header, (const void *)WF_ARG0(f), sizeof(header)) < 0)
		return lx_raw(f);
	if (header.pid < (int)WF_TID_BASE || !lx_by_tid((uint32_t)header.pid) ||
	    (f->nr == __NR_capset && (uint32_t)header.pid != lx_tid(lx_self())))
		return lx_raw(f);
	version = header.version;
	header.pid = (uint32_t)header.pid == lx_tid(lx_self())
			     ? 0
			     : (int)kernel_tid((uint32_t)header.pid);
	ret = lx_blocking_call((long)f->nr, args, false, LX_RESTART_SYS);
	/* the kernel says which version it wants */
	if (header.version != version &&
	    wf_arch_copy((void *)WF_ARG0(f), &header.version, sizeof(header.version)) < 0)
		return -EFAULT;
	return ret;
}
