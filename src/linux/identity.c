// SPDX-License-Identifier: Apache-2.0
/*
 * What Linux keeps per thread and a program can ask for: scheduling policy, affinity, name, priority.
 *
 * Kept per weft thread and validated as the kernel does; a tid of another process goes to the kernel.
 */
#include "io/fd.h"
#include "linux/abi.h"
#include "linux/calls.h"
#include "linux/names.h"
#include "linux/policy.h"

#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/prctl.h>
#include <linux/sched.h>

#define MADV_DONTNEED 4

struct lx_thread *lx_sched_named(uint32_t tid, bool *out_foreign)
{
	struct lx_thread *t = lx_by_tid(tid);

	*out_foreign = !t && tid < WF_TID_BASE;
	return t;
}

uint32_t lx_sched_plain(uint32_t policy)
{
	return policy & ~(uint32_t)SCHED_RESET_ON_FORK;
}

static bool is_realtime(uint32_t policy)
{
	policy = lx_sched_plain(policy);
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

static long check_policy(uint32_t policy, int priority)
{
	policy = lx_sched_plain(policy);
	if (policy != SCHED_NORMAL && policy != SCHED_BATCH && policy != SCHED_IDLE &&
	    !is_realtime(policy))
		return -EINVAL;
	if (is_realtime(policy) ? priority < 1 || priority > 99 : priority != 0)
		return -EINVAL;
	return 0;
}

/* May we have a real-time policy at all? Ask the kernel for it on this kernel thread, and give it back. */
static long may_be_realtime(uint32_t policy, int priority)
{
	int zero = 0;
	long ret = sys3(__NR_sched_setscheduler, 0, policy, &priority);

	if (ret == 0)
		(void)sys3(__NR_sched_setscheduler, 0, SCHED_NORMAL, &zero);
	return ret;
}

/* Real-time before everything, idle behind everything. */
static uint8_t level_of(const struct lx_thread *t)
{
	if (is_realtime(t->policy))
		return 0;
	return lx_sched_plain(t->policy) == SCHED_IDLE ? WF_LEVELS - 1
						       : (uint8_t)(WF_LEVEL_NORMAL + t->nice);
}

void lx_sched_inherit(struct lx_thread *t, const struct lx_thread *parent)
{
	t->policy = parent->policy;
	t->priority = parent->priority;
	t->nice = parent->nice;
	if (t->policy & SCHED_RESET_ON_FORK) {
		t->policy = is_realtime(t->policy) ? SCHED_NORMAL : lx_sched_plain(t->policy);
		t->priority = 0;
		t->nice = WF_MAX(t->nice, 0);
	}
	t->base.level = level_of(t);
}

long lx_sched_set_policy(struct lx_thread *t, uint32_t policy, int priority)
{
	long ret = check_policy(policy, priority);

	if (ret == 0 && is_realtime(policy))
		ret = may_be_realtime(policy, priority);
	if (ret < 0)
		return ret;
	t->policy = policy;
	t->priority = priority;
	t->base.level = level_of(t);
	return 0;
}

long sysc_sched_setscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || (int)WF_ARG1(f) < 0)
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG2(f), sizeof(priority)) < 0)
		return WF_ARG2(f) ? -EFAULT : -EINVAL;
	return t ? lx_sched_set_policy(t, (uint32_t)WF_ARG1(f), priority) : -ESRCH;
}

long sysc_sched_setparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	int priority = 0;

	if (foreign)
		return lx_raw(f);
	if ((int)WF_ARG0(f) < 0 || !WF_ARG1(f))
		return -EINVAL;
	if (wf_arch_copy(&priority, (const void *)WF_ARG1(f), sizeof(priority)) < 0)
		return -EFAULT;
	return t ? lx_sched_set_policy(t, t->policy, priority) : -ESRCH;
}

long sysc_sched_getscheduler(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	return t ? (long)t->policy : -ESRCH;
}

long sysc_sched_getparam(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	if (!WF_ARG1(f))
		return -EINVAL;
	return t ? wf_arch_copy((void *)WF_ARG1(f), &t->priority, sizeof(t->priority)) : -ESRCH;
}

/* The processors that this process may use at all: those of the door, which never changes them. */
static long allowed(uint64_t *mask, size_t bytes)
{
	return sys3(__NR_sched_getaffinity, wf_rt.door->tid, bytes, mask);
}

static bool is_equal(const uint64_t *a, const uint64_t *b)
{
	for (size_t i = 0; i < ARRAY_LEN(((struct lx_thread *)0)->affinity); i++)
		if (a[i] != b[i])
			return false;
	return true;
}

/* The kernel thread goes where the thread may run, and back again with the next one that may run anywhere. */
void lx_place(struct wf_kthread *k, struct wf_thread *base)
{
	struct lx_thread *t = lx_of(base);
	uint64_t all[ARRAY_LEN(t->affinity)] = { 0 };

	if (base->is_pinned) {
		(void)sys3(__NR_sched_setaffinity, k->tid, sizeof(t->affinity), t->affinity);
	} else {
		(void)allowed(all, sizeof(all));
		(void)sys3(__NR_sched_setaffinity, k->tid, sizeof(all), all);
	}
	k->is_pinned = base->is_pinned;
}

long sysc_sched_setaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t want[ARRAY_LEN(t->affinity)] = { 0 }, have[ARRAY_LEN(t->affinity)] = { 0 };
	size_t bytes = WF_MIN(WF_ARG1(f), sizeof(want));
	struct wf_kthread *k;
	bool any = false;

	if (foreign)
		return lx_raw(f);
	if (wf_arch_copy(want, (const void *)WF_ARG2(f), bytes) < 0)
		return -EFAULT;
	if (!t)
		return -ESRCH;
	if (allowed(have, sizeof(have)) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		want[i] &= have[i];
		any |= want[i] != 0;
	}
	if (!any)
		return -EINVAL;
	__builtin_memcpy(t->affinity, want, sizeof(want));
	t->has_affinity = true;
	t->base.is_pinned = !is_equal(want, have);
	if (t == lx_self())
		lx_place(wf_self_kthread(), &t->base);
	else if ((k = wf_load_acquire(&t->base.kthread))) {
		(void)wf_fetch_or(&t->base.attention, WF_ATT_RESCHED); /* moved when it runs next */
		wf_kick(k);
	}
	return 0;
}

long sysc_sched_getaffinity(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	uint64_t mask[ARRAY_LEN(t->affinity)] = { 0 };
	long bytes;

	if (foreign)
		return lx_raw(f);
	if (WF_ARG1(f) % sizeof(mask[0]))
		return -EINVAL;
	bytes = allowed(mask, WF_MIN((uint32_t)WF_ARG1(f), sizeof(mask)));
	if (bytes < 0)
		return bytes;
	if (!t)
		return -ESRCH;
	if (t->has_affinity)
		__builtin_memcpy(mask, t->affinity, (size_t)bytes);
	return wf_arch_copy((void *)WF_ARG2(f), mask, (size_t)bytes) < 0 ? -EFAULT : bytes;
}

long sysc_sched_rr_get_interval(struct wf_frame *f)
{
	bool foreign;
	struct lx_thread *t = lx_sched_named((uint32_t)WF_ARG0(f), &foreign);
	struct __kernel_timespec ts = { 0, WF_SLICE_NS };

	if (foreign || (int)WF_ARG0(f) < 0)
		return lx_raw(f);
	return t ? wf_arch_copy((void *)WF_ARG1(f), &ts, sizeof(ts)) : -ESRCH;
}

#define RLIMIT_NICE 13

bool lx_sched_may_be_nice(int nice)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	uint64_t limit[2] = { 0, 0 };

	if (sys4(__NR_prlimit64, 0, RLIMIT_NICE, NULL, limit) == 0 &&
	    (uint64_t)(20 - nice) <= limit[0])
		return true;
	return sys2(__NR_capget, &header, data) == 0 && data[0].effective & 1u << CAP_SYS_NICE;
}

void lx_sched_set_nice(struct lx_thread *t, int nice)
{
	t->nice = nice;
	t->base.level = level_of(t);
}

/* nice is per thread on Linux; it becomes the run queue level. */
long sysc_setpriority(struct wf_frame *f)
{
	uint32_t who = (uint32_t)WF_ARG1(f);
	int nice = WF_MAX(-20, WF_MIN(19, (int)WF_ARG2(f)));
	struct lx_thread *t;

	if (WF_ARG0(f) != 0 || (who && who < WF_TID_BASE && who != (uint32_t)wf_rt.pid))
		return lx_raw(f);
	t = lx_by_tid(who);
	if (!t)
		return -ESRCH;
	if (nice < t->nice && !lx_sched_may_be_nice(nice))
		return -EACCES;
	lx_sched_set_nice(t, nice);
	return 0;
}

long sysc_getpriority(struct wf_frame *f)
{
	uint32_t who = (uint32_t)WF_ARG1(f);
	struct lx_thread *t;

	if (WF_ARG0(f) != 0 || (who && who < WF_TID_BASE && who != (uint32_t)wf_rt.pid))
		return lx_raw(f);
	t = lx_by_tid(who);
	return t ? 20 - t->nice : -ESRCH;
}

long sysc_prctl(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	char name[16] = { 0 };

	switch (WF_ARG0(f)) {
	case PR_SET_NAME:
		for (size_t i = 0; i < sizeof(name) - 1; i++) {
			if (wf_arch_copy(&name[i], (const char *)WF_ARG1(f) + i, 1) < 0)
				return -EFAULT;
			if (!name[i])
				break;
		}
		__builtin_memcpy(self->name, name, sizeof(name));
		return 0;
	case PR_GET_NAME:
		return wf_arch_copy((void *)WF_ARG1(f), self->name, sizeof(self->name));
	case PR_SET_TIMERSLACK:
		self->timer_slack_ns = (int64_t)WF_ARG1(f) > 0 ? (int64_t)WF_ARG1(f)
							       : self->default_slack_ns;
		return 0;
	case PR_GET_TIMERSLACK:
		return self->timer_slack_ns;
	default:
		return lx_blocking(f, false);
	}
}

/*
 * libc gives back the unused part of a dead thread's stack with madvise: a system call, and page faults for
 * the next thread on it. A thread that hardly ran has touched little: its pages stay with the cached stack. One
 * that lived longer may have gone deep, and its stack is given back.
 */
#define SHORT_LIFE_SWITCHES 32
#define SHORT_LIFE_NS (5 * WF_MS)

long sysc_madvise(struct wf_frame *f)
{
	struct lx_thread *self = lx_self();
	uintptr_t low = WF_ARG0(f), high = low + WF_ARG1(f);

	if (WF_ARG2(f) == MADV_DONTNEED && self->stack_high && low >= self->stack_low &&
	    high <= self->stack_high && WF_ARG1(f) &&
	    self->base.nr_switches <= SHORT_LIFE_SWITCHES && self->base.run_ns < SHORT_LIFE_NS)
		return 0;
	return lx_blocking(f, false);
}

/*
 * The name of a thread as a file, /proc/self/task/TID/comm, is a memory file that holds the name; one that was
 * opened for writing is read back when it is closed. So a reader and a writer at once do not see one another.
 */
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
