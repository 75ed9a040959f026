// SPDX-License-Identifier: Apache-2.0
/*
 * The end of the process: what was asked for at its end (counters, events) is written once, by whoever ends it first.
 *
 * Called by: the ends of a process that run code here: exit_group(), the last exit(), default actions of signals, faults.
 *
 * Invariant: lx.ender goes from 0 to a kernel thread's tid, once. A kernel thread that finds another one's there sleeps until
 * the process is gone: if it went on, it would cut off what the first one writes, and the status would be its own. The door does not
 * sleep: a signal from outside must be able to end a process that waits for the reader of a FIFO. One that finds its own there
 * has crashed in what is written, and dies at once.
 *
 * A fault ends the process when its instruction is made again, and that may find memory there by then. So those who
 * sleep go on, long after all has been written.
 */
#include "linux/ending.h"
#include "linux/abi.h"
#include "trace/trace.h"

#include <signal.h>
#include <time.h>

#define PATIENCE_NS WF_SEC

/* The kernel writes a core for them. */
#define CRASHES                                                                                    \
	(lx_bit(SIGQUIT) | lx_bit(SIGILL) | lx_bit(SIGTRAP) | lx_bit(SIGABRT) | lx_bit(SIGBUS) |   \
	 lx_bit(SIGFPE) | lx_bit(SIGSEGV) | lx_bit(SIGXCPU) | lx_bit(SIGXFSZ) | lx_bit(SIGSYS))

/* The last events are those that led here, not what the other threads do until the process is gone. */
static void freeze(void)
{
	struct wf_trace_moment now = { .cycles = wf_cpu_cycles() };

	(void)sys_clock_read(CLOCK_MONOTONIC, &now.monotonic);
	(void)sys_clock_read(CLOCK_BOOTTIME, &now.boottime);
	wf_trace_freeze(&now);
}

bool lx_ending_begin(void)
{
	uint32_t self = (uint32_t)lx_kernel_tid(), seen = 0;

	if (wf_cas(&lx.ender, &seen, self)) {
		freeze();
		return true;
	}
	if (seen == self || self == (uint32_t)wf_rt.door->tid)
		return false;
	for (bool was_written = false; !was_written;) {
		was_written = wf_load_acquire(&lx.is_end_written);
		while (sys_futex_wait(&lx.ender, seen, PATIENCE_NS) == -EINTR)
			;
	}
	return false;
}

void lx_ending_over(void)
{
	wf_store_release(&lx.is_end_written, true); /* pairs with the load above */
}

void lx_ending_tell(int sig)
{
	if (lx_config.on_death && CRASHES & lx_bit(sig))
		lx_config.on_death(sig);
}

void lx_ending_record(int sig)
{
	if (!lx_ending_begin())
		return;
	if (sig)
		lx_ending_tell(sig);
	if (lx.on_exit)
		lx.on_exit();
	lx_ending_over();
}
