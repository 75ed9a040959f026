// SPDX-License-Identifier: Apache-2.0
/*
 * The events of a snapshot as text; see print.h.
 *
 * The names are the target's, and so are the numbers that stand for something. The meaning of an event's
 * arguments is found by its name, in src/trace/event_list.h.
 */
#include "dump/print.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "event_list.h"
#include "text.h"

static const struct {
	const char *name, *text;
} events[] = {
#define WF_EVENT(number, name, text) { name, text },
	WF_EVENTS
#undef WF_EVENT
};

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

static void print_name(const struct wf_dump_view *v, const char *set, uint64_t value)
{
	char name[64];

	fputs(wf_text_clean(name, sizeof(name), wf_layout_name(v->layout, set, value)), stdout);
}

static void print_argument(const struct wf_dump_view *v, char kind, uint64_t value)
{
	const unsigned long long n = value;
	const char *call;

	switch (kind) {
	case 'x':
		printf("%#llx", n);
		break;
	case 'w':
		print_name(v, "wait", value);
		break;
	case 'r':
		print_name(v, "reason", value);
		break;
	case 'h':
		print_name(v, "handoff", value);
		break;
	case 'c':
		call = wf_waits_call_name((long)value);
		printf(call ? "%llu (%s)" : "%llu%.0s", n, call ? call : "");
		break;
	case 't':
		printf(value ? "thread %llu" : "the process", n);
		break;
	default:
		printf("%llu", n);
	}
}

static const char *text_of(const char *name)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strcmp(events[i].name, name) == 0)
			return events[i].text;
	}
	return "$ax $bx"; /* of a newer weft */
}

static void print_event(const struct wf_dump_view *v, const struct wf_dump_event *e)
{
	const char *name = wf_layout_name(v->layout, "event", e->event), *p = text_of(name);

	print_name(v, "event", e->event);
	if (*p)
		putchar(' ');
	for (; *p; p++) {
		if (*p != '$') {
			putchar(*p);
			continue;
		}
		print_argument(v, p[2], p[1] == 'a' ? e->a : e->b);
		p += 2;
	}
	putchar('\n');
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
		print_event(v, e);
	}
}
