// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks for fibers; see stackpool.h.
 *
 * Several are mapped at once and lie side by side, so that the kernel has one mapping for all: with guard regions (Linux 6.13) a
 * process can have 100,000 fibers at default limits, without them the 32,000 that vm.max_map_count allows. Stacks that a thread
 * does not keep are unmapped: so much and no more is left of a crowd of fibers that has gone.
 */
#include "native/stackpool.h"
#include "base/atomic.h"
#include "native/face.h"

#include <errno.h>
#include <sys/mman.h>

#define GUARD_INSTALL 102
#define MAX_BATCH 16u
#define MAX_BATCH_BYTES (16ul << 20)
#define WARM_BYTES (8ul << 20) /* of addresses that a thread keeps of a class */
#define MAX_WARM 64u
#define MIN_WARM 1u

static bool lacks_guard_regions; /* (a) */

WF_FACE_CODE static void **link_of(char *low, unsigned class)
{
	return (void **)(low + wf_stackpool_bytes(class)) - 1;
}

WF_FACE_CODE static uint32_t max_spare(unsigned class)
{
	size_t nr = WARM_BYTES >> (class + WF_STACKPOOL_MIN_SHIFT);

	return (uint32_t)WF_MAX(WF_MIN(nr, MAX_WARM), MIN_WARM);
}

WF_FACE_CODE int wf_stackpool_class(size_t bytes)
{
	for (unsigned class = 0; class < WF_STACKPOOL_CLASSES; class ++)
		if (bytes <= wf_stackpool_bytes(class))
			return (int)class;
	return -ENOMEM;
}

WF_FACE_CODE static bool make_guard(char *low)
{
	if (!wf_load_relaxed(&lacks_guard_regions)) {
		if (madvise(low, WF_STACKPOOL_GUARD, GUARD_INSTALL) == 0)
			return true;
		wf_store_relaxed(&lacks_guard_regions, true);
	}
	return mprotect(low, WF_STACKPOOL_GUARD, PROT_NONE) == 0;
}

/* Map more of them than the last time. */
WF_FACE_CODE static bool map_batch(struct wf_stackpool_class *c, unsigned class)
{
	const size_t stride = wf_stackpool_bytes(class) + WF_STACKPOOL_GUARD;
	uint32_t nr = c->batch ? WF_MIN(2 * c->batch, MAX_BATCH) : 1;
	char *at;

	while (nr > 1 && nr * stride > MAX_BATCH_BYTES)
		nr /= 2;
	at = mmap(NULL, nr * stride, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	/* Or else a fiber that uses a page gets two megabytes, and its neighbours' guards with them. */
	(void)madvise(at, nr * stride, MADV_NOHUGEPAGE);
	c->batch = nr;
	c->fresh = at;
	c->fresh_end = at + nr * stride;
	return true;
}

WF_FACE_CODE char *wf_stackpool_get(struct wf_stackpool *p, unsigned class)
{
	struct wf_stackpool_class *c = &p->classes[class];
	char *low = c->spare;

	if (WF_LIKELY(low)) {
		c->spare = *link_of(low, class);
		c->nr_spare--;
		return low;
	}
	if (c->fresh == c->fresh_end && !map_batch(c, class))
		return NULL;
	/* From the top down: the kernel gives the next batch the addresses below, and joins them to one mapping. */
	if (!make_guard(c->fresh_end - wf_stackpool_bytes(class) - WF_STACKPOOL_GUARD))
		return NULL;
	c->fresh_end -= wf_stackpool_bytes(class) + WF_STACKPOOL_GUARD;
	return c->fresh_end + WF_STACKPOOL_GUARD;
}

WF_FACE_CODE void wf_stackpool_put(struct wf_stackpool *p, unsigned class, char *low)
{
	struct wf_stackpool_class *c = p ? &p->classes[class] : NULL;

	/* In the middle of a mapping it makes two of one, which the kernel may refuse. */
	if ((!c || c->nr_spare >= max_spare(class)) &&
	    (munmap(low - WF_STACKPOOL_GUARD, wf_stackpool_bytes(class) + WF_STACKPOOL_GUARD) ==
		     0 ||
	     !c))
		return;
	*link_of(low, class) = c->spare;
	c->spare = low;
	c->nr_spare++;
}

WF_FACE_CODE void wf_stackpool_done(struct wf_stackpool *p)
{
	for (unsigned class = 0; class < WF_STACKPOOL_CLASSES; class ++) {
		struct wf_stackpool_class *c = &p->classes[class];

		while (c->spare) {
			char *low = c->spare;

			c->spare = *link_of(low, class);
			wf_stackpool_put(NULL, class, low);
		}
		if (c->fresh != c->fresh_end)
			(void)munmap(c->fresh, (size_t)(c->fresh_end - c->fresh));
		*c = (struct wf_stackpool_class){ 0 };
	}
}
