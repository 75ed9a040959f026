// SPDX-License-Identifier: Apache-2.0
/*
 * From a plain process to weft and back: at the first thread, and in a fork child.
 *
 * Until a program makes a thread nothing of it differs from a native one: the gate passes calls through. The
 * first clone() with CLONE_THREAD takes over masks, handlers and identity of the main thread, turns the main
 * kernel thread into the door and lets the main thread go on on a worker.
 */
#include "arch/arch.h"
#include "base/fmt.h"
#include "io/epoll_driver.h"
#include "io/ring.h"
#include "linux/abi.h"
#include "linux/action.h"
#include "linux/bind.h"
#include "linux/credentials.h"
#include "linux/deathsig.h"
#include "linux/door.h"
#include "linux/everybody.h"
#include "linux/futex_table.h"
#include "linux/heir.h"
#include "linux/nametable.h"
#include "linux/policy.h"
#include "linux/queue.h"
#include "linux/remote.h"
#include "linux/room.h"
#include "linux/scope.h"
#include "linux/sigdeliver.h"
#include "linux/sigfault.h"
#include "linux/signals.h"
#include "linux/sigqueue.h"
#include "linux/stacks.h"
#include "linux/start.h"
#include "linux/thread.h"
#include "linux/timertable.h"
#include "linux/uring.h"
#include "sched/preempt.h"
#include "sched/self.h"
#include "sys/cpu.h"
#include "sys/rseq.h"

#include <errno.h>
#include <linux/personality.h>
#include <linux/random.h>
#include <signal.h>

#define MEMBARRIER_REGISTER_PRIVATE_EXPEDITED 16

static bool is_refused;

/* Behind the gate's exit nobody looks at the attention word again: what a kick brings is dealt with at once. */
static bool is_copy(uintptr_t pc)
{
	return lx_gate.in_pool(pc);
}

#define SPIN_BYTES 24ul /* of code on either side: a loop that looks, and some that count rounds */

static bool is_spin(uintptr_t pc)
{
	/* The page of pc is there, and maybe none beside it. */
	uintptr_t page = WF_ALIGN_DOWN(pc, WF_PAGE);
	uintptr_t from = WF_MAX(pc - SPIN_BYTES, page);
	uintptr_t to = WF_MIN(pc + SPIN_BYTES, page + WF_PAGE);
	unsigned char code[2 * SPIN_BYTES];

	return wf_arch_copy(code, (const void *)from, to - from) == 0 &&
	       wf_arch_has_pause(code, to - from);
}

/* Others want something of this kernel thread, whichever thread it runs. */
static void kicked(struct wf_kthread *k)
{
	lx_everybody_answer(k);
	lx_remote_answer(k);
}

#define POLLOUT 4

/* Not where it would have to wait for somebody to read it: signals come through here. */
static bool may_say(void)
{
	struct {
		int fd;
		short events, revents;
	} out = { .fd = 2, .events = POLLOUT };

	return sys3(__NR_poll, &out, 1, 0) == 1 && out.revents & POLLOUT;
}

static void tell_lack_of_rings(void)
{
	if (lx_config.on_lacking && may_say())
		lx_config.on_lacking();
}

static void tell_refused_kthread(long error)
{
	if (lx_config.on_short && may_say())
		lx_config.on_short(error == -EAGAIN   ? "RLIMIT_NPROC, or pids.max"
				   : error == -ENOMEM ? "memory, or RLIMIT_AS"
						      : "a filter of system calls");
}

static const struct wf_sched_hooks hooks = {
	.thread_exited = lx_thread_exited,
	.interrupted = lx_signal_interrupted,
	.resuming = lx_signal_resuming,
	.in_runtime = lx_signal_in_runtime,
	.kicked = kicked,
	.is_copy = is_copy,
	.is_spin = is_spin,
	.stands_still = lx_bind_in_fault,
	.stranded = lx_signal_stranded,
	.refused_kthread = tell_refused_kthread,
	.lacks_rings = tell_lack_of_rings,
};

static long refuse(const char *why)
{
	is_refused = true;
	if (lx_config.on_refused)
		lx_config.on_refused(why);
	return 0;
}

/* A call that must succeed did not. */
static long refuse_for(const char *call, long error)
{
	const char *why = " is refused by a filter of system calls";
	char line[160];
	struct wf_fmt f;

	if (error == -ENOMEM)
		why = " finds no memory for the runtime's tables (RLIMIT_AS, or vm.max_map_count)";
	else if (error == -EMFILE || error == -ENFILE)
		why = " finds no descriptor left (RLIMIT_NOFILE, or fs.file-max)";
	else if (error == -ENOSPC)
		why = " finds no room in the user's epoll watches (fs.epoll.max_user_watches)";
	wf_fmt_init(&f, line, sizeof(line));
	wf_fmt_str(&f, call);
	wf_fmt_str(&f, why);
	return refuse(line);
}

static void on_fault(int sig, void *info, void *context)
{
	wf_self_handle(lx_signal_on_fault, sig, info, context);
}

static void take_over_handlers(void)
{
	const struct sys_sigaction fault = {
		.handler = (void *)on_fault,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SYS_SA_RESTORER,
		.restorer = (void *)wf_arch_restorer_native,
		/*
		 * Somebody may send them in a storm: one at a time, or they fill the alternate stack. No kick meanwhile: it
		 * would find the runtime, and what it was for would wait for the next one.
		 */
		.mask = LX_FAULTS | lx_bit(WF_SIG_KICK),
	};

	for (int sig = 1; sig <= WF_NR_SIGNALS; sig++)
		(void)sys_sigaction(sig, NULL, &lx.action[sig]);
	wf_preempt_take_kicks();
	for (uint64_t left = LX_FAULTS; left; left &= left - 1)
		(void)sys_sigaction(__builtin_ctzll(left) + 1, &fault, NULL);
}

/* The area is registered for the main kernel thread, which the main thread leaves now. */
static void unregister_rseq(void)
{
	if (!lx_config.rseq_area || sys4(__NR_rseq, lx_config.rseq_area, lx_config.rseq_bytes,
					 SYS_RSEQ_UNREGISTER, SYS_RSEQ_SIGNATURE) < 0)
		return;
	lx.main->rseq = (struct lx_rseq){
		.area = (uintptr_t)lx_config.rseq_area,
		.bytes = lx_config.rseq_bytes,
		.signature = SYS_RSEQ_SIGNATURE,
	};
}

static void adopt_main(struct lx_thread *t, uint64_t mask)
{
	size_t len;
	uintptr_t tid_address = 0;

	(void)sys_clock_read(3 /* CLOCK_THREAD_CPUTIME_ID */, &t->base.run_ns);
	t->base.tid = (uint32_t)wf_rt.pid;
	lx_signal_thread_init(t, NULL);
	wf_list_init(&t->futex.link);
	wf_list_init(&t->exit_link);
	t->sig_mask = mask;
	/* pthread_create blocks everything around its clone; what main blocked before cannot be seen from here. */
	t->sig_shown_mask = mask;
	t->is_mask_unknown = !(~mask & ~(lx_bit(SIGKILL) | lx_bit(SIGSTOP)));
	(void)sys2(__NR_sigaltstack, NULL, &t->altstack);
	if (t->altstack.flags & SS_DISABLE)
		t->altstack = (struct wf_stack_t){ 0 }; /* the flags that exec leaves */
	(void)sys3(__NR_get_robust_list, 0, &t->robust_head, &len);
	(void)sys2(__NR_prctl, 16 /* PR_GET_NAME */, t->name);
	t->timer_slack_ns = t->default_slack_ns = WF_MAX(
		sys1(__NR_prctl, 30 /* PR_GET_TIMERSLACK */), 1);
	t->policy = lx.base_policy;
	(void)sys2(__NR_sched_getparam, 0, &t->priority);
	lx.base_nice = 20 - (int)WF_MAX(sys2(__NR_getpriority, 0, 0), 1);
	lx_sched_set_nice(t, lx.base_nice);
	lx.base_priority = t->priority;
	lx.has_sticky_timeouts = sys1(__NR_personality, LX_PERSONALITY_QUERY) & STICKY_TIMEOUTS;
	if (sys2(__NR_prctl, 40 /* PR_GET_TID_ADDRESS */, &tid_address) == 0 && tid_address) {
		t->child_tid = (uint32_t *)tid_address;
		lx_exit_word_add(t);
	}
	if (lx.has_userfaults) {
		t->binds |= LX_BIND_FAULT;
		t->base.attention |= WF_ATT_BIND;
	}
	lx_deathsig_start(t);
	lx.main = t;
	lx.nr_threads = 1;
}

/* One for each table: a child that makes threads has a new one. The same seed is to be the same run. */
static uint64_t futex_key(void)
{
	uint64_t key = 0x9e3779b97f4a7c15ull;

	if (!lx_config.runtime.is_shuffled &&
	    sys3(__NR_getrandom, &key, sizeof(key), GRND_NONBLOCK) != sizeof(key))
		key *= wf_cpu_cycles() ^ (uintptr_t)&key; /* before the kernel has any */
	return key;
}

/* Every kernel thread of ours makes these calls as it begins, or waits: a filter may know nothing of them. */
static const char *find_refused_call(void)
{
	const struct __kernel_timespec now = { 0, 0 };
	const uint64_t none = 0;
	struct wf_stack_t ss;
	int pid = (int)sys0(__NR_getpid);

	if (sys2(__NR_sigaltstack, NULL, &ss) < 0)
		return "sigaltstack";
	if (sys4(__NR_rt_sigtimedwait, &none, NULL, &now, sizeof(none)) != -EAGAIN)
		return "rt_sigtimedwait";
	if (sys_tgkill(pid, pid, 0) < 0)
		return "tgkill";
	/* See lx_signal_interrupt(). Sooner costs less: with one kernel thread there is nobody to wait for. */
	return sys3(__NR_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0, 0) < 0 ? "membarrier"
										      : NULL;
}

/* Of a table that is emptied, why there is nothing in it stays. */
struct why {
	char text[sizeof(lx.why_native)];
};

static struct why keep_why(void)
{
	struct why why;

	__builtin_memcpy(why.text, lx.why_native, sizeof(why.text));
	return why;
}

static void put_why(const struct why *why)
{
	__builtin_memcpy(lx.why_native, why->text, sizeof(why->text));
}

/* All that was made for the first thread, before anybody else runs. */
static void take_down(void)
{
	const struct why why = keep_why();

	wf_epoll_forget(false);
	wf_runtime_stop();
	/* Calls have set these before, and they hold still when there is a first thread after all. */
	lx = (struct lx_process){
		.has_userfaults = lx.has_userfaults,
		.shares_files = lx.shares_files,
		.has_clone_child = lx.has_clone_child,
	};
	put_why(&why);
}

static long start(uint64_t mask, uintptr_t base)
{
	struct wf_runtime_config config = lx_config.runtime;
	const char *call;
	struct wf_thread *main;
	long ret;

	lx_futex_init(futex_key());
	wf_slab_init(&lx.sigqs, sizeof(struct lx_sigq));
	wf_slab_init(&lx.futex_vectors, LX_FUTEX_VECTOR_MAX * sizeof(struct lx_futex_wait));
	lx_pending_init(&lx.shared, 0);
	ret = wf_epoll_init(&call);
	if (ret < 0)
		return refuse_for(call, ret);
	lx.on_exit = lx_config.on_exit;
	config.io = &wf_epoll_driver;
	config.hooks = &hooks;
	config.thread_bytes = sizeof(struct lx_thread);
	if (!config.nr_workers)
		config.nr_workers = (uint32_t)sys_cpu_count();
	lx.base_policy = (uint32_t)WF_MAX(sys1(__NR_sched_getscheduler, 0), 0);
	config.is_realtime = lx_sched_is_realtime(lx.base_policy);
	main = wf_runtime_start(&config);
	if (!main)
		return refuse_for("mmap", -ENOMEM);
	adopt_main(lx_of(main), mask);
	take_over_handlers();
	/* Without one the main thread could go on nowhere. With it, nothing can fail any more. */
	ret = wf_runtime_staff();
	if (ret < 0) {
		lx_action_give_back();
		return ret;
	}
	unregister_rseq();
	lx_scope_adopt(lx.main);
	main->user_base = base;
	wf_store_release(&wf_arch_gate_on, lx_shares_base() || base ? WF_GATE_SHARED : WF_GATE_ON);
	wf_runtime_leave_door(main, lx_door_drain, lx_door_loop);
	return 1;
}

long lx_start(uintptr_t base)
{
	uint64_t all = ~0ull, mask = 0;
	const char *why;
	long ret;

	if (is_refused || wf_self_kthread())
		return 0;
	if (sys0(__NR_gettid) != sys0(__NR_getpid))
		return refuse("threads were made before weft could see them");
	why = lx_why_native();
	if (!why)
		why = lx_uring_of_main();
	if (why)
		return refuse(why);
	why = find_refused_call();
	if (why)
		return refuse_for(why, -EPERM);
	why = lx_config.prepare();
	if (why)
		return refuse(why);
	(void)sys_sigprocmask(SIG_SETMASK, &all, &mask);
	ret = start(mask, base);
	if (ret <= 0) {
		take_down();
		(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
		return ret;
	}
	lx_heir_start();
	if (lx.main->base.scopes && lx_config.probe_scopes)
		lx_config.probe_scopes();
	return 1;
}

void lx_forget(bool shares_files)
{
	const struct why why = keep_why();

	wf_arch_gate_on = WF_GATE_OFF;
	wf_epoll_forget(shares_files);
	wf_ring_forget();
	lx_timer_table_forget();
	lx_room_forget();
	lx_queue_forget();
	lx_credentials_forget();
	lx_everybody_forget();
	lx_stacks_forget();
	lx_heir_forget();
	lx_nametable_forget();
	lx_config.rseq_area = NULL; /* unregistered in the parent, and never again */
	lx_config.on_exit = NULL;
	lx_config.on_main_end = NULL;
	lx_config.on_death = NULL;
	lx = (struct lx_process){ .shares_files = shares_files };
	put_why(&why);
	wf_runtime_forget();
}
