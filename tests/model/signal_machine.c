// SPDX-License-Identifier: Apache-2.0
/* The kernel of the signal machine, and how it is set up and judged; see signal_machine.h. */
#include "signal_machine.h"
#include "arch/arch.h"
#include "arch/x86_64/sigframe.h"
#include "linux/door.h"
#include "linux/sigdeliver.h"
#include "linux/sigqueue.h"
#include "signal_user.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PENDING 8
#define FIRST_TID 100
#define STOPS (lx_bit(SIGTSTP) | lx_bit(SIGTTIN) | lx_bit(SIGTTOU))

static struct {
	struct {
		int sig;
		struct wf_siginfo info;
	} pending[MAX_PENDING]; /* for the process, oldest first */
	uint32_t nr_pending;
	bool is_door_kicked;
	uint64_t raised[16]; /* by a kernel thread for itself */
	bool is_stopped, is_raising;
	uint32_t nr_stops;
} kernel;

/* --- pending signals --- */

static uint32_t first_pending(uint64_t set)
{
	uint32_t best = MAX_PENDING;

	for (uint32_t i = 0; i < kernel.nr_pending; i++)
		if (set & lx_bit(kernel.pending[i].sig) &&
		    (best == MAX_PENDING || kernel.pending[i].sig < kernel.pending[best].sig))
			best = i;
	return best;
}

static void remove_pending(uint32_t i)
{
	memmove(&kernel.pending[i], &kernel.pending[i + 1],
		(--kernel.nr_pending - i) * sizeof(kernel.pending[0]));
}

static void flush_pending(uint64_t set)
{
	for (uint32_t i; (i = first_pending(set)) != MAX_PENDING;)
		remove_pending(i);
}

/* A stop signal and SIGCONT undo each other, and SIGCONT continues, whatever becomes of it. */
static void undo_opposite(int sig)
{
	if (STOPS & lx_bit(sig)) {
		flush_pending(lx_bit(SIGCONT));
	} else if (sig == SIGCONT) {
		flush_pending(STOPS);
		memset(kernel.raised, 0, sizeof(kernel.raised));
		kernel.is_stopped = false;
	}
}

/* A standard signal is there once; so is a timer's, which counts instead. */
static bool is_there_already(int sig, const struct wf_siginfo *info)
{
	for (uint32_t i = 0; i < kernel.nr_pending; i++) {
		struct wf_siginfo *old = &kernel.pending[i].info;

		if (kernel.pending[i].sig != sig)
			continue;
		if (info->code == SI_TIMER && old->code == SI_TIMER) {
			old->timer.overrun++;
			return true;
		}
		if (sig < LX_FIRST_REALTIME)
			return true;
	}
	return false;
}

static void send_to_process(int sig, const struct wf_siginfo *info)
{
	model_fence(__func__);
	undo_opposite(sig);
	if (is_there_already(sig, info))
		return;
	if (kernel.nr_pending == MAX_PENDING)
		abort();
	kernel.pending[kernel.nr_pending].sig = sig;
	kernel.pending[kernel.nr_pending++].info = *info;
}

void signal_from_outside(void *sig)
{
	struct wf_siginfo info = { .signo = (int)(intptr_t)sig, .code = SI_USER };

	info.kill.pid = 2;
	send_to_process(info.signo, &info);
}

void signal_queue_from_outside(int sig, int value)
{
	struct wf_siginfo info = { .signo = sig, .code = SI_QUEUE };

	info.kill.pid = 2;
	info.kill.value = (uint64_t)value;
	send_to_process(sig, &info);
}

void signal_timer_expires(void *sig)
{
	struct wf_siginfo info = { .signo = (int)(intptr_t)sig, .code = SI_TIMER };

	info.timer.timer_id = 1;
	send_to_process(info.signo, &info);
}

uint32_t signal_nr_pending(void)
{
	return kernel.nr_pending;
}

struct take {
	uint64_t set;
	bool is_for_kicks;
};

static bool can_take(void *arg)
{
	const struct take *t = arg;

	return (t->is_for_kicks && kernel.is_door_kicked) || first_pending(t->set) != MAX_PENDING;
}

static long take_pending(const uint64_t *set, struct wf_siginfo *info,
			 const struct __kernel_timespec *timeout)
{
	struct take t = { *set, wf_own_kthread()->is_door && *set & lx_bit(WF_SIG_KICK) };
	int64_t until = WF_NEVER;
	uint32_t i;
	int sig;

	if (timeout)
		until = model_now() + timeout->tv_sec * WF_SEC + timeout->tv_nsec;
	if (timeout && !timeout->tv_sec && !timeout->tv_nsec)
		model_fence(__func__);
	else
		(void)model_wait(can_take, &t, until);
	if (t.is_for_kicks && kernel.is_door_kicked) {
		kernel.is_door_kicked = false;
		if (info)
			*info = (struct wf_siginfo){ .signo = WF_SIG_KICK, .code = SI_TKILL };
		return WF_SIG_KICK;
	}
	i = first_pending(t.set);
	if (i == MAX_PENDING)
		return -EAGAIN;
	sig = kernel.pending[i].sig;
	if (info)
		*info = kernel.pending[i].info;
	remove_pending(i);
	return sig;
}

/* --- stopping --- */

static bool is_running(void *arg)
{
	(void)arg;
	return !kernel.is_stopped;
}

static bool is_stopped(void *arg)
{
	(void)arg;
	return kernel.is_stopped;
}

/* Between its look and its signal a process that stops itself cannot see a SIGCONT: that instant is left out. */
static bool can_continue(void *arg)
{
	(void)arg;
	return !kernel.is_raising || !lx.is_to_stop;
}

static long get_pending(uint64_t *out)
{
	model_fence(__func__);
	for (uint32_t i = 0; i < kernel.nr_pending; i++)
		*out |= lx_bit(kernel.pending[i].sig);
	kernel.is_raising = !(*out & lx_bit(SIGCONT));
	return 0;
}

static long raise_stop(int sig)
{
	undo_opposite(sig);
	kernel.raised[wf_own_kthread()->index] |= lx_bit(sig);
	kernel.is_raising = false;
	return 0;
}

static long unblock(uint64_t set)
{
	uint64_t *raised = &kernel.raised[wf_own_kthread()->index];

	model_fence(__func__);
	if (!(*raised & set))
		return 0;
	*raised = 0;
	kernel.is_stopped = true;
	kernel.nr_stops++;
	(void)model_wait(is_running, NULL, WF_NEVER);
	return 0;
}

void signal_continue_stopped(void *arg)
{
	(void)model_wait(is_stopped, NULL, WF_NEVER);
	signal_from_outside((void *)SIGCONT);
}

void signal_continue_any_time(void *arg)
{
	(void)model_wait(can_continue, NULL, WF_NEVER);
	signal_from_outside((void *)SIGCONT);
}

uint32_t signal_nr_stops(void)
{
	return kernel.nr_stops;
}

/* --- system calls --- */

static long send_to_kthread(int tid, int sig)
{
	if (STOPS & lx_bit(sig))
		return raise_stop(sig);
	model_fence(__func__);
	if (tid == wf_rt.door->tid)
		kernel.is_door_kicked = true;
	else
		model_interrupt(tid - FIRST_TID);
	return 0;
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static long kernel_call(long nr, long a, long b, long c, long d)
{
	switch (nr) {
	case __NR_rt_sigtimedwait:
		return take_pending((const uint64_t *)a, (struct wf_siginfo *)b,
				    (const struct __kernel_timespec *)c);
	case __NR_rt_sigqueueinfo:
		send_to_process((int)b, (const struct wf_siginfo *)c);
		return 0;
	case __NR_rt_sigpending:
		return get_pending((uint64_t *)a);
	case __NR_tgkill:
		return send_to_kthread((int)b, (int)c);
	case __NR_membarrier:
		model_membarrier();
		return 0;
	case __NR_rt_sigprocmask: /* with SIG_SETMASK, of a kick that switches: who runs next is open to kicks */
		if (a == SIG_SETMASK)
			model_open_interrupts();
		return a == SIG_UNBLOCK ? unblock(*(const uint64_t *)b) : 0;
	case __NR_prlimit64:
		((uint64_t *)d)[0] = 1000;
		return 0;
	case __NR_exit:
		(void)model_wait(never, NULL, WF_NEVER);
		return 0;
	default:
		return 0;
	}
}

/* --- setting up --- */

long sys_clock_read(int clock, int64_t *out_ns)
{
	*out_ns = model_now();
	return 0;
}

static bool is_copy(uintptr_t rip)
{
	return false;
}

/* As lx_thread_exited(): the slot is another thread's, soon. */
static void thread_exited(struct wf_thread *t)
{
	machine_thread_exited(t);
	wf_thread_free(t);
}

static const struct wf_sched_hooks hooks = {
	.thread_exited = thread_exited,
	.interrupted = lx_signal_interrupted,
	.resuming = lx_signal_resuming,
	.in_runtime = lx_signal_in_runtime,
	.is_copy = is_copy,
};

static void run_door(void *arg)
{
	wf_arch_set_self(arg);
	lx_door_loop(arg);
}

void signal_machine_reset(uint32_t nr_workers)
{
	static struct lx_thread dead;

	memset(&kernel, 0, sizeof(kernel));
	machine_object_bytes = sizeof(struct lx_thread);
	machine_reset(nr_workers);
	machine_kernel = kernel_call;
	signal_gate_reset();
	wf_rt.hooks = wf_hooks_fill(&hooks);
	wf_slab_init(&wf_rt.save_areas, (uint32_t)(4096 + wf_sigframe_save_bytes(2048)));
	memset(&lx, 0, sizeof(lx));
	wf_slab_init(&lx.sigqs, sizeof(struct lx_sigq));
	lx_pending_init(&lx.shared, 0);
	dead = (struct lx_thread){ .base.state = WF_DEAD };
	lx.main = &dead;
	for (uint32_t i = 0; i < nr_workers; i++)
		signal_gate_add_kthread(machine_kthread(&wf_rt.workers[i])->index);
	(void)machine_door(run_door, NULL);
}

struct lx_thread *signal_thread(int worker, void (*program)(void *), uint64_t mask)
{
	struct lx_thread *t = signal_gate_thread(program, mask);

	machine_queue(&wf_rt.workers[worker], &t->base);
	return t;
}

struct lx_thread *signal_bound_thread(void (*program)(void *), uint64_t mask)
{
	struct lx_thread *t = signal_gate_thread(program, mask);
	struct wf_kthread *k = machine_kthread(NULL);

	signal_gate_add_kthread(k->index);
	k->bound = &t->base;
	k->bound_until = WF_NEVER;
	k->bound_is_ready = 1;
	t->base.bound = k;
	return t;
}

void signal_action(int sig, void (*handler)(int, void *, void *), uint64_t flags)
{
	lx.action[sig].handler = (void *)handler;
	lx.action[sig].flags = flags | SA_ONSTACK;
}

/* --- judging --- */

void signal_check(void)
{
	machine_check();
	model_expect(!kernel.nr_pending, "a signal stayed in the kernel");
	model_expect(!kernel.is_stopped, "the process stays stopped");
	model_expect(!lx.shared.set && lx.shared.queue.next == &lx.shared.queue,
		     "a signal stayed in the process's queue");
	model_expect(!lx.nr_sigqs, "a queued signal was lost");
}
