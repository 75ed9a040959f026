// SPDX-License-Identifier: Apache-2.0
/*
 * The program's own rings of io_uring: what the kernel keeps of them for one kernel thread.
 *
 * A ring with a single issuer lets only that one submit; deferred and cooperative completions wait until that
 * one is in the kernel again; registered rings, and the limits of its kernel workers, are numbers of its own. A
 * thread that makes such a ring, or enables or registers one, is bound. Other rings may be used from anywhere:
 * their completions find the kernel thread that submitted, which never ends (wf_kthread_tie()).
 *
 * A ring that belongs to the main thread before weft starts belongs to what becomes the door, and main leaves
 * it: such a program stays native.
 */
#include "linux/uring.h"
#include "base/fmt.h"
#include "linux/abi.h"
#include "linux/bind.h"
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/masked.h"
#include "sys/uring.h"

#include <fcntl.h>
#include <linux/time_types.h>

#define TIED_TO_A_TASK                                                                             \
	(SYS_URING_SETUP_SINGLE_ISSUER | SYS_URING_SETUP_DEFER_TASKRUN |                           \
	 SYS_URING_SETUP_COOP_TASKRUN)
#define WAIT_EVERY_KIND 0x40000000 /* __WALL */
#define RING_LINK "anon_inode:[io_uring]"

struct dirent_k {
	uint64_t inode, offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

/* The call's effect stays with this kernel thread. The threads that it makes have none of it. */
static long bind_and(struct wf_frame *f, long (*call)(struct wf_frame *))
{
	bool was_bound = wf_load_acquire(&lx_self()->binds) & LX_BIND_URING;
	long ret = lx_bind_for(LX_BIND_URING);

	if (ret < 0)
		return ret;
	ret = call(f);
	if (ret < 0 && !was_bound)
		lx_bind_no_longer_for(LX_BIND_URING);
	return ret;
}

static long call_kernel(struct wf_frame *f)
{
	return lx_blocking(f, false);
}

long sysc_io_uring_setup(struct wf_frame *f)
{
	struct sys_uring_params p;

	if (wf_arch_copy(&p.flags,
			 (const void *)(WF_ARG1(f) + offsetof(struct sys_uring_params, flags)),
			 sizeof(p.flags)) < 0)
		return call_kernel(f);
	if (p.flags & SYS_URING_SETUP_REGISTERED_FD_ONLY) /* the result is no descriptor */
		return bind_and(f, call_kernel);
	/* Of a ring that is still disabled whoever enables it becomes the owner. */
	if (!(p.flags & TIED_TO_A_TASK) || p.flags & SYS_URING_SETUP_R_DISABLED)
		return sysc_new_fd(f);
	return bind_and(f, sysc_new_fd);
}

long sysc_io_uring_register(struct wf_frame *f)
{
	switch ((uint32_t)WF_ARG1(f) & ~SYS_URING_REGISTER_USE_REGISTERED_RING) {
	case SYS_URING_REGISTER_ENABLE_RINGS:
	case SYS_URING_REGISTER_IOWQ_AFF:
	case SYS_URING_REGISTER_IOWQ_MAX_WORKERS:
	case SYS_URING_REGISTER_RING_FDS:
		return bind_and(f, call_kernel);
	default:
		return call_kernel(f);
	}
}

/* As long as there is no time: completions that are there, or EINTR. */
static long look_for_completions(const long args[6])
{
	struct __kernel_timespec none = { 0 };
	struct sys_uring_getevents_arg ext = { .ts = (uintptr_t)&none };
	long ret = sys6(__NR_io_uring_enter, args[0], args[1], args[2],
			args[3] | SYS_URING_ENTER_EXT_ARG, &ext, sizeof(ext));

	if (ret == -ETIME)
		return -EINTR;
	if (ret != -EINVAL)
		return ret;
	/* Linux 5.10 knows no time: nothing is waited for, and nobody knows whether there is enough. */
	ret = sys6(__NR_io_uring_enter, args[0], args[1], 0, args[3], NULL, 0);
	return ret ? ret : -EINTR;
}

/*
 * Submissions end with the kernel thread that made them. A caller that only waits has looked for completions before,
 * as a rule, and found none; what is submitted with a wait may be over at once.
 */
long sysc_io_uring_enter(struct wf_frame *f)
{
	long args[6] = { (long)WF_ARG0(f), (long)WF_ARG1(f), (long)WF_ARG2(f),
			 (long)WF_ARG3(f), (long)WF_ARG4(f), (long)WF_ARG5(f) };
	struct sys_uring_getevents_arg ext;
	struct lx_masked how = { .mask = (const void *)WF_ARG4(f),
				 .bytes = WF_ARG5(f),
				 .look = look_for_completions,
				 .is_certain = WF_ARG1(f) == 0 };

	wf_kthread_tie();
	if (WF_ARG2(f) == 0 || !(WF_ARG3(f) & SYS_URING_ENTER_GETEVENTS))
		return lx_blocking(f, false);
	if (WF_ARG3(f) & SYS_URING_ENTER_EXT_ARG) {
		if (WF_ARG3(f) & SYS_URING_ENTER_EXT_ARG_REG || WF_ARG5(f) != sizeof(ext) ||
		    wf_arch_copy(&ext, (const void *)WF_ARG4(f), sizeof(ext)) < 0)
			return lx_blocking(f, how.is_certain);
		how.mask = (const void *)ext.sigmask;
		how.bytes = ext.sigmask_bytes;
		ext.sigmask = 0;
		args[4] = (long)&ext;
	} else {
		args[4] = 0;
	}
	return lx_masked_wait(f, args, &how);
}

static bool is_ring(const char *name)
{
	char path[48], link[sizeof(RING_LINK)] = "";
	struct wf_fmt path_of;

	wf_fmt_init(&path_of, path, sizeof(path));
	wf_fmt_str(&path_of, "/proc/self/fd/");
	wf_fmt_str(&path_of, name);
	return sys3(__NR_readlink, path, link, sizeof(link)) == sizeof(RING_LINK) - 1 &&
	       __builtin_memcmp(link, RING_LINK, sizeof(RING_LINK) - 1) == 0;
}

/* The kernel tells whose a ring is by refusing all others: it is asked by a child that does nothing else. */
static bool is_owned(int fd)
{
	int status = 0;
	long pid = sys5(__NR_clone, 0, NULL, NULL, NULL, NULL);

	if (pid == 0)
		for (;;)
			(void)sys1(__NR_exit, sys4(__NR_io_uring_register, fd,
						   SYS_URING_REGISTER_PROBE, NULL, 0) == -EEXIST);
	return pid > 0 && sys4(__NR_wait4, pid, &status, WAIT_EVERY_KIND, NULL) == pid &&
	       status == 1 << 8;
}

static bool has_registered_ring(void)
{
	for (int i = 0; i < SYS_URING_REGISTERED_MAX; i++)
		if (sys6(__NR_io_uring_enter, i, 0, 0, SYS_URING_ENTER_REGISTERED_RING, NULL, 0) >=
		    0)
			return true;
	return false;
}

const char *lx_uring_of_main(void)
{
	static char names[1024]; /* used before there are threads */
	long dir = sys4(__NR_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			0);
	bool has_ring = false, owns = false;
	uint64_t fd;
	long n;

	while (dir >= 0 && (n = sys3(__NR_getdents64, dir, names, sizeof(names))) > 0)
		for (long at = 0; at < n && !owns;) {
			struct dirent_k *d = (void *)(names + at);

			at += d->bytes;
			if (!wf_fmt_parse_u64(d->name, &fd) || !is_ring(d->name))
				continue;
			has_ring = true;
			owns = is_owned((int)fd);
		}
	if (dir >= 0)
		(void)sys_close((int)dir);
	return owns || (has_ring && has_registered_ring())
		       ? "a ring of io_uring belongs to the main thread"
		       : NULL;
}
