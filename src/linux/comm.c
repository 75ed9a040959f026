// SPDX-License-Identifier: Apache-2.0
/* The kernel's name for a kernel thread of ours: by it ps(1), its log and cores show the name of a weft thread. */
#include "linux/comm.h"
#include "base/fmt.h"

#include <linux/fcntl.h>
#include <linux/prctl.h>

void lx_comm_tell_kernel(const struct lx_thread *t)
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

void lx_comm_lend(const struct lx_thread *t)
{
	char name[sizeof(t->name)] = { 0 };

	if (wf_load_acquire(&wf_rt.is_filtered))
		return;
	__builtin_memcpy(name, t->name, sizeof(name) - 1);
	(void)sys2(__NR_prctl, PR_SET_NAME, name);
}
