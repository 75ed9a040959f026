// SPDX-License-Identifier: Apache-2.0
/* A thread's fibers as text; see fibers.h. */
#include "dump/fibers.h"
#include "dump/frames.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

#define MOST_LISTED 20 /* of one thread: those that run or wait for one that runs come first */

/* Of a fiber, or of the one that is the thread's own stack. */
static void print_name(const struct wf_dump_view *v, const struct wf_dump_reach *r,
		       uint64_t address)
{
	const struct wf_dump_fiber *f = v->groups->fibers + r->first_fiber;
	char name[2 * WF_GROUPS_NAME_BYTES];
	size_t i = 0;

	if (address == r->own_fiber) {
		printf("the thread's own stack");
		return;
	}
	while (i < r->nr_fibers_read && f[i].address != address)
		i++;
	if (i < r->nr_fibers_read && f[i].name[0])
		printf("fiber \"%s\"", wf_text_clean(name, sizeof(name), f[i].name));
	else
		printf("fiber %#llx", (unsigned long long)address);
}

static void print_state(const struct wf_dump_view *v, const struct wf_dump_reach *r,
			const struct wf_dump_fiber *f)
{
	const char *state = wf_layout_name(v->layout, "fiber", f->state);

	if (strcmp(state, "resumes") == 0) {
		printf("waits for ");
		print_name(v, r, f->resuming);
	} else if (strcmp(state, "new") == 0) {
		printf("has not run yet");
	} else if (strcmp(state, "yielded") == 0) {
		printf("suspended");
	} else if (strcmp(state, "transferred") == 0) {
		printf("suspended by a transfer");
	} else if (strcmp(state, "done") == 0) {
		printf("has ended, not freed");
	} else {
		printf("%s", state);
	}
	if (f->resumer) {
		printf(", resumed by ");
		print_name(v, r, f->resumer);
	}
}

void wf_fibers_print_number(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	const struct wf_dump_reach *r = &v->groups->reaches[d - v->threads->threads];
	const struct wf_dump_fiber *f = v->groups->fibers + r->first_fiber;

	if (!r->nr_fibers)
		return;
	printf("; ");
	if (r->nr_fibers_read &&
	    strcmp(wf_layout_name(v->layout, "fiber", f->state), "running") == 0) {
		printf("in ");
		print_name(v, r, f->address);
		printf(" of ");
	}
	printf("%zu fiber%s", r->nr_fibers, r->nr_fibers == 1 ? "" : "s");
}

void wf_fibers_print(const struct wf_dump_view *v, const struct wf_dump_thread *d)
{
	const struct wf_dump_reach *r = &v->groups->reaches[d - v->threads->threads];
	size_t nr = r->nr_fibers_read < MOST_LISTED ? r->nr_fibers_read : MOST_LISTED;

	for (size_t i = 0; i < nr; i++) {
		const struct wf_dump_fiber *f = &v->groups->fibers[r->first_fiber + i];

		printf("    ");
		print_name(v, r, f->address);
		printf(": ");
		print_state(v, r, f);
		printf("\n");
		wf_frames_print(v, &f->stack, 8);
	}
	if (r->nr_fibers > nr)
		printf("    ... and %zu more fibers\n", r->nr_fibers - nr);
}
