// SPDX-License-Identifier: Apache-2.0
/* The events of a snapshot as text; see print.h. */
#include "dump/print.h"

#include <stdio.h>
#include <time.h>

#include "target/eventtext.h"

/* Ticks of the cycle counter in a second, measured: the events carry only those. 0: another machine's. */
static double cycles_per_second(const struct wf_dump_view *v)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	struct timespec a, b;
	unsigned long long begin, end;

	if (v->target->is_core || !v->threads->nr_events)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &a);
	begin = __builtin_ia32_rdtsc();
	nanosleep(&pause, NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	end = __builtin_ia32_rdtsc();
	return (double)(end - begin) /
	       ((double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
}

void wf_print_events(const struct wf_dump_view *v)
{
	const struct wf_threads *s = v->threads;
	double rate = cycles_per_second(v);
	uint64_t last = s->nr_events ? s->events[s->nr_events - 1].cycles : 0;

	if (!s->nr_events)
		return;
	printf("\nthe last %zu events (%s before the last one; kernel thread, thread, event):\n",
	       s->nr_events, rate > 0 ? "microseconds" : "cycles");
	for (size_t i = 0; i < s->nr_events; i++) {
		const struct wf_dump_event *e = &s->events[i];
		double before = (double)(last - e->cycles);

		printf("    %12.1f  %7d  %9lld  ", rate > 0 ? before / rate * 1e6 : before,
		       e->kernel_tid, (long long)e->tid);
		wf_eventtext_print(stdout, v->layout, e->event, e->a, e->b);
		putchar('\n');
	}
}
