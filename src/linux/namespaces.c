// SPDX-License-Identifier: Apache-2.0
/*
 * Namespaces: a thread that enters one is bound, and what it makes is there with it. One that is alone is the process, so
 * our other kernel threads follow it, where the kernel lets one of several do that: not into mounts (they share a working
 * directory), users and time.
 */
#include "linux/bindcalls.h"
#include "linux/calls.h"
#include "linux/everybody.h"
#include "linux/fds.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>

static const struct kind {
	uint64_t flag;
	const char *path;
} followed[] = {
	{ CLONE_NEWNET, "/proc/thread-self/ns/net" },
	{ CLONE_NEWUTS, "/proc/thread-self/ns/uts" },
	{ CLONE_NEWIPC, "/proc/thread-self/ns/ipc" },
	{ CLONE_NEWCGROUP, "/proc/thread-self/ns/cgroup" },
	{ CLONE_NEWPID, "/proc/thread-self/ns/pid_for_children" },
};

/* The caller is there, and goes there once more. */
static void follow(long fd, uint64_t flags)
{
	const struct lx_everybody call = { .nr = __NR_setns,
					   .args = { fd, (long)flags },
					   .is_own_state = true };

	if (fd < 0 || lx_everybody_request(&call) < 0)
		lx_config.on_outside("they cannot follow into its namespaces");
}

long sysc_unshare(struct wf_frame *f)
{
	long ret = lx_fds_unshare(f);

	for (size_t i = 0; ret == 0 && lx_is_alone() && i < ARRAY_LEN(followed); i++) {
		long fd;

		if (!(WF_ARG0(f) & followed[i].flag))
			continue;
		fd = sys4(__NR_openat, AT_FDCWD, followed[i].path, O_RDONLY | O_CLOEXEC, 0);
		follow(fd, followed[i].flag);
		if (fd >= 0)
			(void)sys_close((int)fd);
	}
	return ret;
}

long sysc_setns(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	uint64_t flags = 0, all = WF_ARG1(f);
	long ret = lx_bind_call(f);

	if (ret < 0 || !lx_is_alone())
		return ret;
	if (!all)
		all = (uint64_t)WF_MAX(sys2(__NR_ioctl, fd, NS_GET_NSTYPE), 0);
	for (size_t i = 0; i < ARRAY_LEN(followed); i++)
		flags |= all & followed[i].flag;
	if (flags)
		follow(fd, flags);
	return ret;
}
