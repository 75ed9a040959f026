// SPDX-License-Identifier: Apache-2.0
/* Circles of waiting; see deadlock.h. */
#include "target/deadlock.h"

#include <stdlib.h>

/*
 * Every thread waits for at most one other, so each walk along the owners ends in a circle or with a thread
 * that waits for nobody. Marks of walks: a thread that an earlier walk has seen leads nowhere new.
 */
void wf_deadlock_find(const struct wf_threads *s, struct wf_waits *w,
		      void (*found)(const struct wf_dump_thread *const *circle, size_t nr,
				    void *arg),
		      void *arg)
{
	const struct wf_dump_thread **path = calloc(s->nr_threads + 1, sizeof(*path));
	size_t *walk = calloc(s->nr_threads + 1, sizeof(*walk));

	for (size_t i = 0; path && walk && i < s->nr_threads; i++) {
		const struct wf_dump_thread *d = &s->threads[i];
		size_t nr = 0, begin = 0;

		while (d && !walk[d - s->threads]) {
			walk[d - s->threads] = i + 1;
			path[nr++] = d;
			d = wf_waits_owner(w, d);
		}
		if (!d || walk[d - s->threads] != i + 1)
			continue;
		while (path[begin] != d)
			begin++;
		found(path + begin, nr - begin, arg);
	}
	free(path);
	free(walk);
}
