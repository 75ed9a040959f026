// SPDX-License-Identifier: Apache-2.0
/* The target of fuzz_layout.c: how it is made, damaged, and read, for which target/target.c reads a real one. */
#include <elf.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "fuzz_target.h"
#include "target/target.h"

struct image whole, image;
uint64_t random_state = 88172645463325252u;

uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t at(const void *member)
{
	return BASE + (uint64_t)((const char *)member - (const char *)&whole);
}

static void put(void *o, enum fake_field f, uint64_t value)
{
	fake_put(whole.rows, o, f, value);
}

/* The tables in which the dynamic linker finds the one symbol. */
static void build_object(struct image *i)
{
	uint32_t h = 5381;

	for (const char *c = WF_INSPECT_SYMBOL; *c; c++)
		h = h * 33 + (unsigned char)*c;
	memcpy(i->elf.e_ident, ELFMAG, SELFMAG);
	i->elf.e_ident[EI_CLASS] = ELFCLASS64;
	i->elf.e_phentsize = sizeof(Elf64_Phdr);
	i->elf.e_phnum = 2;
	i->elf.e_phoff = offsetof(struct image, headers);
	i->headers[0] = (Elf64_Phdr){ .p_type = PT_LOAD };
	i->headers[1] = (Elf64_Phdr){ .p_type = PT_DYNAMIC,
				      .p_vaddr = offsetof(struct image, dynamic) };
	i->dynamic[0] = (Elf64_Dyn){ DT_GNU_HASH, { offsetof(struct image, hash) } };
	i->dynamic[1] = (Elf64_Dyn){ DT_SYMTAB, { offsetof(struct image, symbols) } };
	i->dynamic[2] = (Elf64_Dyn){ DT_STRTAB, { offsetof(struct image, strings) } };
	i->hash.head[0] = i->hash.head[1] = i->hash.head[2] = 1;
	i->hash.bucket = 1;
	i->hash.chain = h | 1;
	strcpy(i->strings + 1, WF_INSPECT_SYMBOL);
	i->symbols[1] = (Elf64_Sym){ .st_name = 1,
				     .st_shndx = 1,
				     .st_value = offsetof(struct image, inspect) };
}

/* A tree: thread 0 has opened all groups, each other thread is in one of them, and has a scope. */
static void build_groups(struct image *i)
{
	uint64_t head = at(i->scopes[0]) + i->rows[FAKE_SCOPES_GROUPS].offset, link = head;

	for (uint64_t n = 0; n < NR_GROUPS; n++) {
		char *g = i->groups[n], *scope = g + i->rows[FAKE_GROUP_SCOPE].offset;

		put(scope, FAKE_SCOPE_DEADLINE, n << 40);
		put(scope, FAKE_SCOPE_NAME, at(i->threads) + i->rows[FAKE_LX_NAME].offset);
		put(scope, FAKE_SCOPE_OWNER, at(i->scopes[0]));
		put(scope, FAKE_SCOPE_STATE, n);
		put(g, FAKE_GROUP_NR, n);
		put(g + i->rows[FAKE_GROUP_LINK].offset, FAKE_LIST_NEXT, link);
		link = at(g) + i->rows[FAKE_GROUP_LINK].offset;
	}
	put(i->scopes[0] + i->rows[FAKE_SCOPES_GROUPS].offset, FAKE_LIST_NEXT, link);
	for (uint64_t n = 0; n < NR_THREADS; n++) {
		char *sc = i->scopes[n], *g = i->groups[n % NR_GROUPS];
		uint64_t base = at(g) + i->rows[FAKE_GROUP_SCOPE].offset;

		put(i->threads + n * i->rows[FAKE_THREAD].size, FAKE_T_SCOPES, at(sc));
		put(sc, FAKE_SCOPES_TOP, at(i->scope[n]));
		put(i->scope[n], FAKE_SCOPE_DEADLINE, n << 40);
		put(i->scope[n], FAKE_SCOPE_NAME, at(i->threads) + i->rows[FAKE_LX_NAME].offset);
		put(i->scope[n], FAKE_SCOPE_OWNER, at(sc));
		if (!n)
			continue;
		put(sc + i->rows[FAKE_SCOPES_GROUPS].offset, FAKE_LIST_NEXT,
		    at(sc) + i->rows[FAKE_SCOPES_GROUPS].offset);
		put(sc, FAKE_SCOPES_GROUP, at(g));
		put(sc, FAKE_SCOPES_BASE, base);
		put(i->scope[n], FAKE_SCOPE_OUTER, base);
	}
}

/* Each thread has forked as many as its place says, and has taken one of FORKER. */
static void build_tasks(struct image *i)
{
	for (uint64_t n = 0; n < NR_THREADS; n++) {
		uint64_t *top = &i->places_of_tasks[2 * n];

		top[1] = n;
		put(i->tasks[n], FAKE_TASKS_NEXT, i->tasks_all);
		put(i->tasks[n], FAKE_TASKS_TOP, at(top));
		put(i->tasks[n], FAKE_TASKS_BOTTOM, at(top + 1));
		put(i->tasks[n], FAKE_TASKS_TID, 100 + n);
		put(i->tasks[n], FAKE_TASKS_RUNS_OF, 100 + n != FORKER ? FORKER : 0);
		i->tasks_all = at(i->tasks[n]);
	}
}

/* Each thread has one fiber, resumed by and resuming that of the next; of its places one is unused, and one another thread's. */
static void build_fibers(struct image *i)
{
	for (uint64_t n = 0; n < NR_THREADS; n++) {
		uint64_t *places = i->fiber_pages[n] + i->rows[FAKE_FPAGE].size / 8;
		uint64_t next = at(i->fiber[(n + 1) % NR_THREADS]);

		put(i->fibers[n], FAKE_FIBERS_NEXT, i->fibers_all);
		put(i->fibers[n], FAKE_FIBERS_PAGE, at(i->fiber_pages[n]));
		put(i->fibers[n], FAKE_FIBERS_OWN, at(i->stack));
		i->fiber_current[n] = at(n % 3 ? i->fiber[n] : i->stack);
		put(i->fibers[n], FAKE_FIBERS_CURRENT, at(&i->fiber_current[n]));
		put(i->fibers[n], FAKE_FIBERS_ID, n + 1);
		put(i->fibers[n], FAKE_FIBERS_TID, 100 + n);
		put(i->fiber_pages[n], FAKE_FPAGE_NR, 4);
		places[0] = at(places) + 1;
		places[1] = next;
		places[3] = at(i->fiber[n]);
		put(i->fiber[n], FAKE_FIBER_SP, at(i->threads) + 256);
		put(i->fiber[n], FAKE_FIBER_PARENT, next);
		put(i->fiber[n], FAKE_FIBER_HOME_ID, n + 1);
		put(i->fiber[n], FAKE_FIBER_RESUMER, n & 1 ? next : at(i->stack));
		put(i->fiber[n], FAKE_FIBER_RESUMING, next);
		put(i->fiber[n], FAKE_FIBER_STATE, n % 7);
		put(i->fiber[n], FAKE_FIBER_LOW, at(i->threads));
		put(i->fiber[n], FAKE_FIBER_NAME, at(i->threads) + i->rows[FAKE_LX_NAME].offset);
		i->fibers_all = at(i->fibers[n]);
	}
}

static void build_threads(struct image *i)
{
	uint32_t bytes = i->rows[FAKE_THREAD].size;

	put(i->table, FAKE_TABLE_SLOTS, at(i->threads));
	put(i->table, FAKE_TABLE_OBJECT_BYTES, bytes);
	put(i->table, FAKE_TABLE_NR_SLOTS, NR_THREADS);
	for (uint64_t n = 0; n < NR_THREADS; n++) {
		char *t = i->threads + n * bytes;

		put(t, FAKE_T_TID, 100 + n);
		put(t, FAKE_T_STATE, n % 8);
		put(t, FAKE_T_WAIT_KIND, n % 8);
		put(t, FAKE_T_WAIT_WHAT, n % 3 ? n : at(i->stack));
		put(t, FAKE_T_WAIT_SINCE, 1000);
		put(t, FAKE_T_SP, at(i->stack) + 256);
		put(t, FAKE_T_KTHREAD, at(i->kthreads[n % NR_KTHREADS]));
		put(t, FAKE_T_NEXT, n ? at(t - bytes) : 0);
		put(t + i->rows[FAKE_T_TIMER].offset, FAKE_TIMER_ARMED, n & 1);
		put(t + i->rows[FAKE_T_TIMER].offset, FAKE_TIMER_DEADLINE, n << 40);
		put(t, FAKE_LX_CHILD_TID, at(i->stack));
		put(t, FAKE_LX_STACK_LOW, at(i->stack));
		put(t, FAKE_LX_STACK_HIGH, at(i->stack) + sizeof(i->stack));
		memcpy(t + i->rows[FAKE_LX_NAME].offset, "name\033[31m\302\233x", 12);
	}
}

void build_whole(void)
{
	struct image *i = &whole;

	build_object(i);
	fake_rows(i->rows);
	memcpy(i->values, fake_values, sizeof(fake_values));
	i->inspect = (struct wf_inspect){ .magic = WF_INSPECT_MAGIC,
					  .version = WF_INSPECT_VERSION,
					  .nr_fields = FAKE_NR,
					  .nr_values = FAKE_NR_VALUES,
					  .nr_roots = 6,
					  .fields = (const void *)at(i->rows),
					  .values = (const void *)at(i->values),
					  .roots = (const void *)at(i->roots) };
	i->roots[0] = (struct wf_inspect_root){ "wf_runtime", (const void *)at(i->runtime) };
	i->roots[1] = (struct wf_inspect_root){ "wf_thread_table", (const void *)at(i->table) };
	i->roots[2] = (struct wf_inspect_root){ "lx_process", (const void *)at(i->process) };
	i->roots[3] = (struct wf_inspect_root){ "wf_trace", (const void *)at(i->trace) };
	i->roots[4] = (struct wf_inspect_root){ "wf_tasks", (const void *)at(&i->tasks_all) };
	i->roots[5] = (struct wf_inspect_root){ "wf_fibers", (const void *)at(&i->fibers_all) };
	put(i->trace, FAKE_TR_KEEPS, 1);
	put(i->trace, FAKE_TR_ON, 1);
	put(i->runtime, FAKE_RT_STARTED, 1);
	put(i->runtime, FAKE_RT_NR_WORKERS, NR_WORKERS);
	put(i->runtime, FAKE_RT_WORKERS, at(i->workers));
	put(i->runtime, FAKE_RT_NR_KTHREADS, NR_KTHREADS);
	put(i->runtime, FAKE_RT_KTHREADS, at(i->kthread_list));
	for (uint64_t n = 0; n < NR_KTHREADS; n++) {
		char *k = i->kthreads[n], *e = i->places[n];

		i->kthread_list[n] = at(k);
		put(k, FAKE_K_TID, 500 + n);
		put(k, FAKE_K_CUR, at(i->threads) + n * i->rows[FAKE_THREAD].size);
		put(k, FAKE_K_WORKER, at(i->workers));
		put(k, FAKE_K_RING, at(i->rings[n]));
		put(i->rings[n], FAKE_RING_NEXT, 20);
		put(i->rings[n], FAKE_RING_MASK, FAKE_EVENTS - 1);
		put(i->rings[n], FAKE_RING_PLACES, at(i->places[n]));
		for (uint64_t x = 0; x < FAKE_EVENTS; x++, e += i->rows[FAKE_EVENT].size) {
			put(e, FAKE_E_CYCLES, 7 * x + n);
			put(e, FAKE_E_EVENT, (x < 4 ? x + FAKE_EVENTS : x) << 8 | (5 * x + n) % 16);
			put(e, FAKE_E_TID, (x + n) % 3 ? 100 + x % 5 : 0);
			put(e, FAKE_E_A, x & 1 ? 100 + (x + n) % 4 : x % 4);
			put(e, FAKE_E_B, x % 4);
		}
	}
	for (uint64_t n = 0; n < NR_WORKERS; n++) {
		char *w = i->workers + n * i->rows[FAKE_WORKER].size;

		put(w, FAKE_W_INDEX, n);
		put(w, FAKE_W_KTHREAD, at(i->kthreads[n]));
		put(w, FAKE_W_INBOX, at(i->threads));
	}
	build_threads(i);
	build_groups(i);
	build_tasks(i);
	build_fibers(i);
}

void build_circles(void)
{
	const uint32_t next = whole.rows[FAKE_GROUP_LINK].offset;

	image = whole;
	fake_put(whole.rows, image.groups[0] + next, FAKE_LIST_NEXT, at(whole.groups[1]) + next);
	fake_put(whole.rows, image.scopes[0], FAKE_SCOPES_GROUP, at(whole.groups[0]));
	for (int n = 0; n < NR_THREADS; n++)
		fake_put(whole.rows, image.scope[n], FAKE_SCOPE_OUTER, at(whole.scope[n]));
	/* Not back to the one that the list begins with. */
	fake_put(whole.rows, image.tasks[0], FAKE_TASKS_NEXT, at(whole.tasks[1]));
	fake_put(whole.rows, image.fibers[0], FAKE_FIBERS_NEXT, at(whole.fibers[1]));
	for (int n = 0; n < NR_THREADS; n++)
		fake_put(whole.rows, image.fiber_pages[n], FAKE_FPAGE_NEXT,
			 at(whole.fiber_pages[(n + 1) % NR_THREADS]));
}

const uint64_t extreme[NR_EXTREME] = { 0,
				       1,
				       7,
				       0x7fffff00,
				       0xffffffff,
				       0x80000000,
				       UINT64_MAX,
				       INT64_MAX,
				       1ull << 63,
				       BASE,
				       BASE + offsetof(struct image, threads),
				       BASE + sizeof(struct image) - 1 };

void damage(void)
{
	int nr = (int)(next_random() % 6);

	image = whole;
	while (nr--) {
		uint64_t r = next_random(), value = next_random();
		size_t width = (size_t)1 << (r >> 60 & 3), bound = sizeof(image);

		if (r >> 58 & 1)
			value = extreme[value % NR_EXTREME];
		if (r >> 57 & 1)
			bound = offsetof(struct image, stack);
		memcpy((char *)&image + r % (bound - width + 1), &value, width);
	}
}

/* The target: what target/target.c is for a real one. */

bool wf_target_fail(struct wf_target *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(t->error, sizeof(t->error), format, args);
	va_end(args);
	return false;
}

size_t wf_target_read_some(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	uint64_t offset = address - BASE;

	if (!wf_budget_take(t->budget, bytes) || offset >= sizeof(image))
		return 0;
	if (bytes > sizeof(image) - offset)
		bytes = sizeof(image) - offset;
	memcpy(out, (const char *)&image + offset, bytes);
	return bytes;
}

bool wf_target_read(const struct wf_target *t, uint64_t address, void *out, size_t bytes)
{
	return wf_target_read_some(t, address, out, bytes) == bytes;
}

uint64_t wf_target_pending(const struct wf_target *t)
{
	return 0;
}

const struct wf_target_lwp *wf_target_lwp(const struct wf_target *t, int inner_tid)
{
	return inner_tid >= 500 && inner_tid < 500 + (int)t->nr_lwps ? &t->lwps[inner_tid - 500]
								     : NULL;
}
