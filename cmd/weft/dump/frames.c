// SPDX-License-Identifier: Apache-2.0
/* A stack as text; see frames.h. */
#include "dump/frames.h"

#include <stdio.h>
#include <string.h>

#include "text.h"

/* The place where a handler returns to is called by nobody: above it the handler, below what it interrupted. */
static bool is_handler_frame(const struct wf_unwind_name *n)
{
	return n->is_runtime && n->function && strcmp(n->function, "wf_arch_restorer") == 0;
}

void wf_frames_print(const struct wf_dump_view *v, const struct wf_dump_thread *d, int indent)
{
	size_t first = wf_view_first_frame(v, d);

	if (!d->nr_frames && !v->has_no_stacks && !d->is_fiber)
		printf("    (no registers: the kernel thread could not be stopped)\n");
	for (size_t i = first; i < d->nr_frames; i++) {
		struct wf_unwind_name n;
		char function[WF_VIEW_NAME_BYTES], object[256];

		wf_unwind_name(v->unwind, &d->frames[i], &n);
		printf("%*s#%-2zu ", indent, "", i - first);
		if (is_handler_frame(&n)) {
			printf("<signal handler called>\n");
			continue;
		}
		if (n.function)
			printf("%s+%#llx", wf_view_function(function, sizeof(function), n.function),
			       (unsigned long long)n.offset);
		else if (n.object)
			printf("%s+%#llx", wf_text_clean(object, sizeof(object), n.object),
			       (unsigned long long)n.offset);
		else
			printf("%#llx", (unsigned long long)d->frames[i].pc);
		if (n.file)
			printf("  %s:%d", wf_text_clean(object, sizeof(object), n.file), n.line);
		else if (n.function && n.object)
			printf("  (%s)", wf_text_clean(object, sizeof(object), n.object));
		printf(d->frames[i].is_guessed ? "  [by frame pointer]\n" : "\n");
	}
	if (d->is_cut)
		printf("%*s...\n", indent, "");
}
