// SPDX-License-Identifier: Apache-2.0
/*
 * The layout of the runtime, as data; see inspect.h. Nothing in the process reads it.
 */
#include "obs/inspect.h"
#include "arch/arch.h"
#include "linux/abi.h"
#include "sched/fibers.h"
#include "sched/group.h"
#include "sched/runtime.h"
#include "sched/tasks.h"
#include "sync/chan.h"

#define FIELD(type, member)                                                                        \
	{                                                                                          \
#type "." #member, (uint32_t)offsetof(struct type, member),                        \
			(uint32_t)sizeof(((struct type *)0)->member)                               \
	}
#define SIZE(type)                                                                                 \
	{                                                                                          \
#type, 0, (uint32_t)sizeof(struct type)                                            \
	}

static const struct wf_inspect_field fields[] = {
	SIZE(wf_runtime),
	FIELD(wf_runtime, started),
	FIELD(wf_runtime, pid),
	FIELD(wf_runtime, nr_workers),
	FIELD(wf_runtime, workers),
	FIELD(wf_runtime, kthreads),
	FIELD(wf_runtime, nr_kthreads),
	FIELD(wf_runtime, door),
	FIELD(wf_runtime, nr_idle),
	FIELD(wf_runtime, nr_searching),
	FIELD(wf_runtime, nr_vacant),
	FIELD(wf_runtime, coarse_now),
	FIELD(wf_runtime, monitor_armed),

	SIZE(wf_thread_table),
	FIELD(wf_thread_table, slots),
	FIELD(wf_thread_table, object_bytes),
	FIELD(wf_thread_table, nr_slots),

	SIZE(wf_kthread),
	FIELD(wf_kthread, cur),
	FIELD(wf_kthread, prev),
	FIELD(wf_kthread, worker),
	FIELD(wf_kthread, insys),
	FIELD(wf_kthread, direct),
	FIELD(wf_kthread, sleep_word),
	FIELD(wf_kthread, is_door),
	FIELD(wf_kthread, is_helper),
	FIELD(wf_kthread, is_poller),
	FIELD(wf_kthread, bound),
	FIELD(wf_kthread, tid),
	FIELD(wf_kthread, index),
	FIELD(wf_kthread, ring),
	FIELD(wf_kthread, call_nr),
	FIELD(wf_kthread, count),
#define WF_COUNTER(member, name) FIELD(wf_counters, member),
	WF_COUNTERS
#undef WF_COUNTER

		SIZE(wf_worker),
	FIELD(wf_worker, kthread),
	FIELD(wf_worker, index),
	FIELD(wf_worker, is_vacant),
	FIELD(wf_worker, rests),
	FIELD(wf_worker, rq),
	FIELD(wf_worker, inbox),
	FIELD(wf_worker, awake_ns),
	FIELD(wf_worker, awake_since),
	FIELD(wf_runq, nr),

	SIZE(wf_thread),
	FIELD(wf_thread, sp),
	FIELD(wf_thread, state),
	FIELD(wf_thread, attention),
	FIELD(wf_thread, kthread),
	FIELD(wf_thread, next),
	FIELD(wf_thread, home),
	FIELD(wf_thread, level),
	FIELD(wf_thread, wait_kind),
	FIELD(wf_thread, is_preempted),
	FIELD(wf_thread, tid),
	FIELD(wf_thread, wait_what),
	FIELD(wf_thread, wait_since),
	FIELD(wf_thread, timer),
	FIELD(wf_thread, tls),
	FIELD(wf_thread, nr_switches),
	FIELD(wf_thread, run_ns),
	FIELD(wf_thread, scopes),
	FIELD(wf_timer, armed),
	FIELD(wf_timer, deadline),

	SIZE(lx_thread),
	FIELD(lx_thread, child_tid),
	FIELD(lx_thread, joined),
	FIELD(lx_thread, sig_mask),
	{ "lx_thread.sig_pending",
	  (uint32_t)(offsetof(struct lx_thread, pending) + offsetof(struct lx_pending, set)),
	  (uint32_t)sizeof(uint64_t) },
	FIELD(lx_thread, sig_awaited),
	FIELD(lx_thread, stack_low),
	FIELD(lx_thread, stack_high),
	FIELD(lx_thread, name),
	SIZE(lx_process),
	FIELD(lx_process, nr_threads),
	FIELD(lx_process, main),
	FIELD(lx_process, parked),
	FIELD(lx_process, why_native),
	{ "lx_process.sig_pending",
	  (uint32_t)(offsetof(struct lx_process, shared) + offsetof(struct lx_pending, set)),
	  (uint32_t)sizeof(uint64_t) },

	SIZE(wf_chan),
	FIELD(wf_chan, name),
	FIELD(wf_chan, capacity),
	FIELD(wf_chan, count),

	SIZE(wf_scope),
	FIELD(wf_scope, deadline),
	FIELD(wf_scope, name),
	FIELD(wf_scope, outer),
	FIELD(wf_scope, owner),
	FIELD(wf_scope, state),
	SIZE(wf_scopes),
	FIELD(wf_scopes, top),
	FIELD(wf_scopes, base),
	FIELD(wf_scopes, groups),
	FIELD(wf_scopes, group),
	FIELD(wf_list, next),
	SIZE(wf_group),
	FIELD(wf_group, scope),
	FIELD(wf_group, nr),
	FIELD(wf_group, link),
	FIELD(wf_group, limit),
	FIELD(wf_group, policy),
	SIZE(wf_tasks),
	FIELD(wf_tasks, next),
	FIELD(wf_tasks, top),
	FIELD(wf_tasks, bottom),
	FIELD(wf_tasks, tid),
	FIELD(wf_tasks, runs_of),
	SIZE(wf_fibers),
	FIELD(wf_fibers, next),
	FIELD(wf_fibers, page),
	FIELD(wf_fibers, own),
	FIELD(wf_fibers, current),
	FIELD(wf_fibers, id),
	FIELD(wf_fibers, tid),
	SIZE(wf_fibers_page),
	FIELD(wf_fibers_page, next),
	FIELD(wf_fibers_page, nr),
	SIZE(wf_fiber_shown),
	FIELD(wf_fiber_shown, sp),
	FIELD(wf_fiber_shown, parent),
	FIELD(wf_fiber_shown, home_id),
	FIELD(wf_fiber_shown, resumer),
	FIELD(wf_fiber_shown, resuming),
	FIELD(wf_fiber_shown, state),
	FIELD(wf_fiber_shown, low),
	FIELD(wf_fiber_shown, name),

	SIZE(wf_trace_ring),
	FIELD(wf_trace_ring, next),
	FIELD(wf_trace_ring, mask),
	FIELD(wf_trace_ring, places),
	SIZE(wf_trace),
	FIELD(wf_trace, on),
	FIELD(wf_trace, keeps),
	FIELD(wf_trace, nr_lacking),
	FIELD(wf_trace, began),
	FIELD(wf_trace, frozen),
	FIELD(wf_trace, asked),
	FIELD(wf_trace_moment, cycles),
	FIELD(wf_trace_moment, monotonic),
	FIELD(wf_trace_moment, boottime),
	SIZE(wf_trace_event),
	FIELD(wf_trace_event, cycles),
	FIELD(wf_trace_event, event),
	FIELD(wf_trace_event, tid),
	FIELD(wf_trace_event, a),
	FIELD(wf_trace_event, b),

	/* A thread that left its CPU by a call: its registers lie at sp, and the rest of its stack behind them. */
	SIZE(wf_switch_frame),
#define ROW(name) FIELD(wf_switch_frame, name),
	WF_SAVED_BY_SWITCH(ROW)
#undef ROW
	/* A preempted thread's saved context: its address lies here above sp. */
	{ "wf_resume", 0, WF_RESUME_UC + sizeof(void *) },
	{ "wf_resume.uc", WF_RESUME_UC, sizeof(void *) },
	SIZE(wf_ucontext),
#define ROW(name, index)                                                                           \
	{ "wf_ucontext." #name,                                                                    \
	  (uint32_t)(offsetof(struct wf_ucontext, reg) + WF_UC_##index * sizeof(uint64_t)),        \
	  (uint32_t)sizeof(uint64_t) },
	WF_SAVED_BY_SIGNAL(ROW)
#undef ROW
};

#define STATE(value, name)                                                                         \
	{                                                                                          \
		"state", name, value                                                               \
	}
#define WAIT(value, name)                                                                          \
	{                                                                                          \
		"wait", name, value                                                                \
	}

static const struct wf_inspect_value values[] = {
	STATE(WF_FREE, "free"),
	STATE(WF_NEW, "new"),
	STATE(WF_READY, "ready"),
	STATE(WF_RUNNING, "running"),
	STATE(WF_PARKING, "parking"),
	STATE(WF_PARKED, "parked"),
	STATE(WF_WOKEN, "woken"),
	STATE(WF_DEAD, "dead"),

	WAIT(WF_WAIT_NONE, "none"),
	WAIT(WF_WAIT_FUTEX, "futex"),
	WAIT(WF_WAIT_FD, "fd"),
	WAIT(WF_WAIT_POLL, "poll"),
	WAIT(WF_WAIT_SLEEP, "sleep"),
	WAIT(WF_WAIT_SIGNAL, "signal"),
	WAIT(WF_WAIT_CALL, "call"),
	WAIT(WF_WAIT_CHILD, "child"),
	WAIT(WF_WAIT_UNUSED, "unused"),
	WAIT(WF_WAIT_EVENT, "event"),
	WAIT(WF_WAIT_RECV, "recv"),
	WAIT(WF_WAIT_SEND, "send"),
	WAIT(WF_WAIT_SELECT, "select"),
	WAIT(WF_WAIT_GROUP, "group"),

#define WF_EVENT(number, name, text) { "event", name, WF_EV_##number },
	WF_EVENTS
#undef WF_EVENT

	{ "handoff", "left open", WF_HANDOFF_LAZY },
	{ "handoff", "before the call", WF_HANDOFF_CERTAIN },
	{ "handoff", "by the monitor", WF_HANDOFF_MONITOR },
	{ "handoff", "before a call not known", WF_HANDOFF_UNKNOWN },

	{ "policy", "all", WF_GROUP_ALL },
	{ "policy", "any", WF_GROUP_ANY },
	{ "policy", "each", WF_GROUP_EACH },

	{ "fiber", "new", WF_FIBER_NEW },
	{ "fiber", "running", WF_FIBER_RUNNING },
	{ "fiber", "resumes", WF_FIBER_RESUMES },
	{ "fiber", "yielded", WF_FIBER_YIELDED },
	{ "fiber", "transferred", WF_FIBER_TRANSFERRED },
	{ "fiber", "done", WF_FIBER_DONE },

	{ "reason", "event", WF_WAKE_EVENT },
	{ "reason", "time-out", WF_WAKE_TIMEOUT },
	{ "reason", "signal", WF_WAKE_INTERRUPTED },

	{ "const", "state_mask", WF_STATE_MASK },
	{ "const", "scope_shield", WF_SCOPE_SHIELD },
	{ "const", "scope_cancelled", WF_SCOPE_CANCELLED },
	{ "const", "trace_rings", WF_TRACE_RINGS },
	{ "const", "trace_kind_bits", WF_TRACE_KIND_BITS },
	{ "const", "trace_sched", WF_TRACE_SCHED },
	{ "const", "trace_calls", WF_TRACE_CALLS },
	{ "const", "trace_asked", WF_TRACE_ASKED },
	{ "const", "trace_asked_bytes", WF_TRACE_ASKED_BYTES },
	/* A hook's return address lies so far below the stack of the call that it answers. */
	{ "const", "gate_return",
	  WF_RED_ZONE + sizeof(struct wf_frame) - offsetof(struct wf_frame, next) },
};

_Static_assert(WF_DEAD == 7 && WF_WAIT_NR == 14 && WF_WAKE_NR == 4, "name the new values above");

static const struct wf_inspect_root roots[] = {
	{ "wf_runtime", &wf_rt },      { "wf_thread_table", &wf_thread_table },
	{ "lx_process", &lx },         { "wf_trace", &wf_trace },
	{ "wf_tasks", &wf_tasks_all }, { "wf_fibers", &wf_fibers_all },
};

/* Volatile as a whole would say too much: it is constant, but the compiler must not drop it. */
WF_EXPORT const struct wf_inspect weft_inspect = {
	.magic = WF_INSPECT_MAGIC,
	.version = WF_INSPECT_VERSION,
	.nr_fields = ARRAY_LEN(fields),
	.nr_values = ARRAY_LEN(values),
	.nr_roots = ARRAY_LEN(roots),
	.fields = fields,
	.values = values,
	.roots = roots,
};
