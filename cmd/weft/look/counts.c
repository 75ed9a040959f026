// SPDX-License-Identifier: Apache-2.0
/* Names of counters; see counts.h. */
#include "look/counts.h"

#define COUNT(id) [WF_L_C_##id - WF_L_C_SWITCHES]

const struct wf_count wf_counts[WF_NR_COUNTS] = {
	COUNT(SWITCHES) = { "switches", "Switches to a thread." },
	COUNT(PARKS) = { "parks", "Waits of threads." },
	COUNT(UNPARKS) = { "unparks", "Ends of such waits." },
	COUNT(STEALS) = { "steals", "Threads that a worker took from another one." },
	COUNT(HANDOFFS) = { "handoffs", "Workers given on, as their kernel thread was in a call." },
	COUNT(PREEMPTS) = { "preemptions", "Threads interrupted, as their time was over." },
	COUNT(KICKS) = { "kicks", "Signals sent to interrupt a kernel thread." },
	COUNT(POLLS) = { "polls", "Looks for events of descriptors." },
	COUNT(IDLES) = { "idle_sleeps", "Sleeps of workers that had nothing to do." },
	COUNT(DIRECTS) = { "direct_waits", "Waits for events together with the worker." },
	COUNT(RESTS) = { "rests", "Workers sent to rest, as fewer serve better." },
	COUNT(SPAWNS) = { "spawns",
			  "Threads of weft_thread_spawn() for pthreads that run one after another." },
	COUNT(BEGINS) = { "spawns_begun", "Those of them that have begun." },
};
