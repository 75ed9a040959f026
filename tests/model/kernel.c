// SPDX-License-Identifier: Apache-2.0
/* The kernel under the machine, as the checker sees it; see kernel.h. */
#include "kernel.h"
#include "arch/arch.h"
#include "base/die.h"
#include "model.h"
#include "sched/account.h"
#include "sched/peer.h"
#include "sched/timers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_BYTES (4ul << 20)

struct kernel kernel;
long (*machine_kernel)(long nr, long a, long b, long c, long d);

/* --- what the core asks of sys/ and arch/ --- */

/* In the models nobody asks for CPU times. */
void wf_account_leave(struct wf_kthread *k, struct wf_thread *t)
{
	(void)k;
	(void)t;
}

void wf_account_restart(struct wf_thread *self)
{
	(void)self;
}

void wf_account_begin(struct wf_kthread *k)
{
	(void)k;
}

void wf_account_bind(struct wf_kthread *k, struct wf_thread *self)
{
	(void)k;
	(void)self;
}

void wf_account_unbind(struct wf_kthread *k, struct wf_thread *self)
{
	(void)k;
	(void)self;
}

int64_t wf_now(void)
{
	return sys_now();
}

int64_t sys_now(void)
{
	return model_now();
}

/* Big mappings are kept for the next execution; of what is in them only the thread table is used by it. */
void *sys_map(size_t bytes)
{
	static char *small;
	static size_t small_used;
	static struct {
		char *p;
		size_t bytes;
	} big[2]; /* told apart by their sizes */
	char *p;

	if (!bytes) { /* a new execution */
		small_used = 0;
		/* One more: the last store of the count may never have left a store buffer. */
		if (wf_thread_table.slots)
			memset(wf_thread_table.slots, 0,
			       (wf_thread_table.nr_slots + 1) * wf_thread_table.object_bytes);
		return NULL;
	}
	if (bytes > SMALL_BYTES) {
		int i = !big[0].p || big[0].bytes == bytes ? 0 : 1;

		if (!big[i].p)
			big[i].p = mmap(NULL, big[i].bytes = bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (big[i].bytes != bytes)
			abort();
		return big[i].p;
	}
	if (!small)
		small = mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	bytes = WF_ALIGN_UP(bytes, WF_PAGE);
	if (small_used + bytes > SMALL_BYTES)
		return NULL;
	p = small + small_used;
	small_used += bytes;
	memset(p, 0, WF_PAGE); /* more is not used by these small tests */
	return p;
}

void *sys_reserve(size_t bytes)
{
	return sys_map(bytes);
}

long sys_commit(void *p, size_t bytes)
{
	(void)p;
	(void)bytes;
	return 0;
}

/* signal_machine.c has one of its own. */
__attribute__((weak)) long sys_clock_read(int clock, int64_t *out_ns)
{
	return -EINVAL; /* nobody asks for events here */
}

void sys_unmap(void *p, size_t bytes)
{
}

uint32_t sys_room_for(size_t bytes_beside, uint32_t step, uint32_t most)
{
	(void)bytes_beside;
	(void)step;
	return most;
}

static bool is_futex_woken(void *arg)
{
	return ((struct futex_wait *)arg)->is_woken;
}

long sys_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	int64_t until = timeout_ns < 0 ? WF_NEVER : model_now() + timeout_ns;
	struct futex_wait *f = kernel.futex;

	if (wf_fetch_add(word, 0u) != expected)
		return -EAGAIN;
	while (f->word)
		f++;
	*f = (struct futex_wait){ .word = word };
	(void)model_wait(is_futex_woken, f, until);
	f->word = NULL;
	if (f->is_woken)
		return 0;
	return timeout_ns >= 0 && model_now() >= until ? -ETIMEDOUT : -EINTR;
}

long sys_futex_wake(uint32_t *word, int n)
{
	long woken = 0;

	model_fence(__func__);
	for (size_t i = 0; i < ARRAY_LEN(kernel.futex) && woken < n; i++)
		if (kernel.futex[i].word == word && !kernel.futex[i].is_woken) {
			kernel.futex[i].is_woken = true;
			woken++;
		}
	return woken;
}

void sys_relax(uint32_t round)
{
	wf_cpu_pause();
}

void wf_spin_lock_slow(struct wf_spin *s)
{
	while (!wf_spin_trylock(s))
		wf_cpu_pause();
}

void wf_die(const char *what, const char *file, int line)
{
	char text[128];

	snprintf(text, sizeof(text), "%s (%s:%d)", what, file, line);
	model_expect(false, text);
	abort(); /* outside an execution */
}

uint64_t machine_cycles_per_look;
static uint64_t nr_looks;

uint64_t model_cycles(void)
{
	if (machine_cycles_per_look)
		return (uint64_t)model_now() + ++nr_looks * machine_cycles_per_look;
	return (uint64_t)model_now() + model_random(2) * 100000u;
}

/* Kicks and yields are all that comes this way, unless there is a kernel. */
long model_syscall(long nr, long a, long b, long c, long d)
{
	if (machine_kernel)
		return machine_kernel(nr, a, b, c, d);
	kernel.nr_yields += nr == __NR_sched_yield;
	if (nr == __NR_tgkill) {
		model_fence(__func__);
		if (wf_rt.door && b == wf_rt.door->tid)
			kernel.is_kicked = true;
		else if (b >= FIRST_TID && b - FIRST_TID < (long)ARRAY_LEN(kernel.kicked))
			kernel.kicked[b - FIRST_TID] = true;
	}
	return 0;
}

uintptr_t model_arch_get_base(void)
{
	return (uintptr_t)model_gs;
}

void model_arch_set_base(uintptr_t base)
{
	model_gs = (void *)base;
}

void model_arch_set_self(struct wf_kthread *k)
{
	model_gs = k; /* as model_cpu() was told */
}

uintptr_t model_arch_get_tls(void)
{
	return 1;
}

void model_arch_set_tls(uintptr_t tls)
{
}

/* Nobody sends anything here. */
void wf_peer_watch(struct wf_kthread *k)
{
}

__attribute__((weak)) void wf_preempt_init_kthread(struct wf_kthread *k)
{
}

void model_sys_reset(void);
void model_sys_reset(void)
{
	(void)sys_map(0);
}

/* --- the poller --- */

struct fake_poll {
	uint32_t nr_arms; /* when it began */
	bool *kicked;
};

static bool is_poll_over(void *arg)
{
	const struct fake_poll *p = arg;

	return kernel.is_woken || kernel.nr_events || kernel.nr_arms != p->nr_arms ||
	       kernel.armed <= model_now() || *p->kicked;
}

bool kernel_take_kick(bool *kicked)
{
	if (!*kicked)
		return false;
	*kicked = false;
	wf_store_seq_cst(&wf_self_kthread()->kick_sent, 0u);
	return true;
}

__attribute__((weak)) void wf_preempt_settle(struct wf_kthread *k)
{
	while (wf_load_seq_cst(&k->nr_preempting) || wf_load_seq_cst(&k->kick_sent)) {
		if (kernel_take_kick(&kernel.kicked[k->tid - FIRST_TID]))
			wf_store_seq_cst(&k->preempt, 0u);
		else
			wf_cpu_pause();
	}
}

bool machine_is_kicked(void)
{
	return kernel.kicked[wf_self_kthread()->tid - FIRST_TID];
}

void machine_event(void)
{
	model_fence(__func__);
	kernel.nr_events++;
}

static bool arm_fake(int64_t deadline)
{
	model_fence(__func__);
	if (deadline < kernel.armed) {
		kernel.armed = deadline;
		kernel.nr_arms++;
	}
	return true;
}

static bool poll_fake(int64_t timeout_ns)
{
	int64_t end = timeout_ns < 0 ? WF_NEVER : model_now() + timeout_ns;
	uint32_t number = (uint32_t)(wf_self_kthread()->tid - FIRST_TID);
	bool no_kick = false,
	     *kicked = number < ARRAY_LEN(kernel.kicked) ? &kernel.kicked[number] : &no_kick;
	bool woken;

	if (!timeout_ns)
		model_fence(__func__);
	while (timeout_ns) {
		struct fake_poll p = { kernel.nr_arms, kicked };

		(void)model_wait(is_poll_over, &p, WF_MIN(end, kernel.armed));
		if (kernel_take_kick(kicked) || kernel.is_woken || kernel.nr_events ||
		    kernel.armed <= model_now() || end <= model_now() || model_is_wait_broken())
			break;
	}
	woken = kernel.is_woken;
	kernel.nr_events -= kernel.nr_events > 0;
	kernel.is_woken = false;
	if (kernel.armed <= model_now()) {
		kernel.armed = WF_NEVER;
		wf_timers_due();
	}
	return woken;
}

static void wake_fake(void)
{
	model_fence(__func__);
	kernel.is_woken = true;
}

static bool has_waiters_fake(void)
{
	return false;
}

const struct wf_io_driver kernel_driver = { poll_fake, wake_fake, has_waiters_fake, arm_fake };

static bool is_door_kicked(void *arg)
{
	return kernel.is_kicked;
}

bool machine_sleep_at_door(int64_t until)
{
	bool kicked = model_wait(is_door_kicked, NULL, until);

	kernel.is_kicked = false;
	return kicked;
}

uint32_t machine_nr_yields(void)
{
	return kernel.nr_yields;
}

void kernel_reset(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.armed = WF_NEVER;
	machine_kernel = NULL;
}

bool *kernel_kicked(const struct wf_kthread *k)
{
	return &kernel.kicked[k->tid - FIRST_TID];
}
