// SPDX-License-Identifier: Apache-2.0
/* A trace as text; see trace.h. */
#include "trace/trace.h"

#include "target/eventtext.h"

bool wf_trace_text(FILE *out, const struct wf_take *k)
{
	const struct wf_rings *r = &k->rings;

	fprintf(out, "# %s, process %d, %u workers\n", k->program, k->target->inner_pid,
		k->nr_workers);
	fprintf(out, "# seconds by CLOCK_BOOTTIME, kernel thread by its place, thread, event\n");
	for (size_t i = 0; i < r->nr_events; i++) {
		const struct wf_ring_event *e = &r->events[i];
		int64_t ns = wf_take_ns(k, e->cycles);
		const char *name = e->tid ? wf_take_thread(k, e->tid) : NULL;

		fprintf(out, "%lld.%09lld %3u %8lld %-15s ", (long long)(ns / 1000000000),
			(long long)(ns % 1000000000), e->kthread, (long long)e->tid,
			name ? name : "-");
		wf_eventtext_print(out, k->layout, e->event, e->a, e->b);
		putc('\n', out);
	}
	return true;
}
