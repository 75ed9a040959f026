// SPDX-License-Identifier: Apache-2.0
/* Fixed-size objects; see slab.h. */
#include "mem/slab.h"
#include "sys/syscall.h"

#define CHUNK_BYTES (256ul << 10)

void wf_slab_init(struct wf_slab *s, uint32_t object_bytes)
{
	*s = (struct wf_slab){ .object_bytes = WF_ALIGN_UP(object_bytes, 64u) };
}

/* Under the lock. */
static void *get(struct wf_slab *s)
{
	void *object = s->free;

	if (object) {
		s->free = *(void **)object;
		return object;
	}
	if ((size_t)(s->fresh_end - s->fresh) < s->object_bytes) {
		size_t bytes = WF_MAX(CHUNK_BYTES, (size_t)s->object_bytes);
		char *chunk = sys_map(bytes);

		if (!chunk)
			return NULL;
		s->fresh = chunk;
		s->fresh_end = chunk + bytes;
	}
	object = s->fresh;
	s->fresh += s->object_bytes;
	s->nr_made++;
	return object;
}

void *wf_slab_get(struct wf_slab *s)
{
	void *object;

	wf_spin_lock(&s->lock);
	object = get(s);
	wf_spin_unlock(&s->lock);
	return object;
}

void wf_slab_put(struct wf_slab *s, void *object)
{
	if (!object)
		return;
	wf_spin_lock(&s->lock);
	*(void **)object = s->free;
	s->free = object;
	wf_spin_unlock(&s->lock);
}

uint32_t wf_slab_get_chain(struct wf_slab *s, uint32_t most, void **out)
{
	void **link = out;
	uint32_t nr = 0;

	wf_spin_lock(&s->lock);
	for (*link = NULL; nr < most && (*link = get(s)); nr++) {
		link = *link;
		*link = NULL;
	}
	wf_spin_unlock(&s->lock);
	return nr;
}

void wf_slab_put_chain(struct wf_slab *s, void *first, void *last)
{
	wf_spin_lock(&s->lock);
	*(void **)last = s->free;
	s->free = first;
	wf_spin_unlock(&s->lock);
}
