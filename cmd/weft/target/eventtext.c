// SPDX-License-Identifier: Apache-2.0
/* An event in words; see eventtext.h. */
#include "target/eventtext.h"

#include <string.h>

#include "event_list.h"
#include "target/wait.h"

static const struct {
	const char *name, *text;
} events[] = {
#define WF_EVENT(number, name, text) { name, text },
	WF_EVENTS
#undef WF_EVENT
};

static void print_argument(FILE *out, const struct wf_layout *l, char kind, uint64_t value)
{
	const unsigned long long n = value;
	const char *call;

	switch (kind) {
	case 'x':
		fprintf(out, "%#llx", n);
		break;
	case 's':
		fprintf(out, "%lld", (long long)n);
		break;
	case 'w':
		fputs(wf_layout_name(l, "wait", value), out);
		break;
	case 'r':
		fputs(wf_layout_name(l, "reason", value), out);
		break;
	case 'h':
		fputs(wf_layout_name(l, "handoff", value), out);
		break;
	case 'c':
		call = wf_waits_call_name((long)value);
		fprintf(out, call ? "%llu (%s)" : "%llu%.0s", n, call ? call : "");
		break;
	case 't':
		fprintf(out, value ? "thread %llu" : "the process", n);
		break;
	case 'k':
		fprintf(out, value ? "worker %llu" : "no worker", n - 1);
		break;
	default:
		fprintf(out, "%llu", n);
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

void wf_eventtext_print(FILE *out, const struct wf_layout *l, unsigned event, uint64_t a,
			uint64_t b)
{
	const char *name = wf_layout_name(l, "event", event), *p = text_of(name);

	fputs(name, out);
	if (*p)
		putc(' ', out);
	for (; *p; p++) {
		if (*p != '$') {
			putc(*p, out);
			continue;
		}
		print_argument(out, l, p[2], p[1] == 'a' ? a : b);
		p += 2;
	}
}
