// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks and what of them was used; see stacks.h.
 *
 * The kernel knows which pages of a stack were ever touched (/proc/PID/pagemap). The lowest of them is the high-water mark,
 * of all threads that had this stack: libc gives it to one after the other. So the figures are upper bounds.
 */
#include "dump/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/file.h"
#include "text.h"

#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_GUARD (1ull << 58) /* Linux 6.15 */
#define CHUNK_PAGES 1024u
#define MAX_STACK_BYTES (64ull << 30)

/* Twice what was used, since nobody knows the deepest call yet, in steps. */
#define PROPOSED_TIMES 2
#define PROPOSED_STEP (16ull << 10)
#define PROPOSED_LEAST (64ull << 10)

struct group {
	char function[256]; /* or the place of code without a name; "main" */
	const char *object;
	uint64_t size, used; /* of one stack, the largest */
	int64_t deepest;     /* the thread that used most */
	size_t nr;
};

#define MAX_GROUPS 4096u /* what comes then is not known */
#define MAX_KNOWN 64u

/* A place in code that was looked up; thousands of threads begin in few. */
struct known {
	uint64_t pc;
	struct wf_unwind_name name;
};

struct stacks {
	const struct wf_dump_view *view;
	struct known known[MAX_KNOWN];
	int pagemap;
	uint64_t page;
	struct group *groups;
	size_t nr_groups, nr_unknown;
};

static uint64_t round_up(uint64_t n, uint64_t step)
{
	return (n + step - 1) / step * step;
}

static bool is_there(const struct stacks *s, uint64_t address)
{
	char c;

	return wf_target_read(s->view->target, address, &c, 1);
}

/* A guard that the kernel keeps inside a mapping looks swapped out, and cannot be read. */
static bool is_touched(const struct stacks *s, uint64_t entry, uint64_t address)
{
	if (entry & PAGE_PRESENT)
		return true;
	return entry & PAGE_SWAPPED && !(entry & PAGE_GUARD) && is_there(s, address);
}

/* The lowest page of [low, high) that was touched; high: none was, 0: that cannot be read. */
static uint64_t lowest_touched(const struct stacks *s, uint64_t low, uint64_t high)
{
	uint64_t entries[CHUNK_PAGES];

	while (low < high) {
		uint64_t nr = (high - low) / s->page;
		ssize_t got;

		nr = nr < CHUNK_PAGES ? nr : CHUNK_PAGES;
		if (!wf_budget_take(s->view->target->budget, nr * sizeof(entries[0])))
			return 0;
		got = pread(s->pagemap, entries, nr * sizeof(entries[0]),
			    (off_t)(low / s->page * sizeof(entries[0])));
		if (got < (ssize_t)sizeof(entries[0]))
			return 0;
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]); i++, low += s->page)
			if (is_touched(s, entries[i], low))
				return low;
	}
	return high;
}

/* Main's stack is the kernel's, which makes it as large as it is used; what it may become is the limit. */
static bool find_main_stack(const struct stacks *s, uint64_t *out_low, uint64_t *out_high,
			    uint64_t *out_size)
{
	char path[64], line[512];
	unsigned long long low = 0, high = 0, limit = 0;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", s->view->target->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[stack]") && sscanf(line, "%llx-%llx", &low, &high) == 2)
			found = true;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/limits", s->view->target->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		(void)sscanf(line, "Max stack size %llu", &limit);
	if (f)
		fclose(f);
	*out_low = low;
	*out_high = high;
	*out_size = limit;
	return found && low < high;
}

static bool is_plumbing(const char *object)
{
	static const char *const names[] = { "libc.so",  "libc-",   "libpthread",
					     "ld-linux", "libweft", "libstdc++" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(object, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static const struct wf_unwind_name *name_of(struct stacks *s, const struct wf_dump_frame *f)
{
	struct known *k = &s->known[f->pc / 4 % MAX_KNOWN];

	if (k->pc != f->pc) {
		wf_unwind_name(s->view->unwind, f, &k->name);
		k->pc = f->pc;
	}
	return &k->name;
}

/* The outermost frame that is not of libc or of what makes threads of the language. */
static void name_start(struct stacks *s, const struct wf_dump_thread *d, struct group *out)
{
	const struct wf_unwind_name *n;
	char short_name[200];

	snprintf(out->function, sizeof(out->function), "unknown");
	out->object = "";
	if (d->tid == s->view->target->inner_pid) {
		snprintf(out->function, sizeof(out->function), "main");
		return;
	}
	for (size_t i = d->nr_frames; i-- > 0;) {
		n = name_of(s, &d->frames[i]);
		if (!n->object || n->is_runtime || is_plumbing(n->object))
			continue;
		out->object = n->object;
		if (n->function)
			snprintf(out->function, sizeof(out->function), "%s",
				 wf_view_function(short_name, sizeof(short_name), n->function));
		else
			snprintf(out->function, sizeof(out->function), "%s+0x%llx", n->object,
				 (unsigned long long)n->offset);
		return;
	}
}

static bool is_same_group(const struct group *a, const struct group *b)
{
	return a->size == b->size && strcmp(a->function, b->function) == 0 &&
	       strcmp(a->object, b->object) == 0;
}

/* False: out of memory. */
static bool add_to_group(struct stacks *s, const struct group *one)
{
	struct group *grown;

	for (size_t i = 0; i < s->nr_groups; i++) {
		struct group *g = &s->groups[i];

		if (!is_same_group(g, one))
			continue;
		g->nr++;
		if (one->used > g->used) {
			g->used = one->used;
			g->deepest = one->deepest;
		}
		return true;
	}
	if (s->nr_groups == MAX_GROUPS) {
		s->nr_unknown++;
		return true;
	}
	grown = reallocarray(s->groups, s->nr_groups + 1, sizeof(*grown));
	if (!grown)
		return false;
	s->groups = grown;
	s->groups[s->nr_groups++] = *one;
	return true;
}

static bool add_thread(struct stacks *s, const struct wf_dump_thread *d)
{
	uint64_t low = d->stack_low, high = round_up(d->stack_high, s->page), size = high - low;
	uint64_t lowest = 0;
	struct group one = { .nr = 1, .deepest = d->tid };

	if (d->tid == s->view->target->inner_pid && !find_main_stack(s, &low, &high, &size))
		low = 0;
	if (low && low % s->page == 0 && high > low && high - low <= MAX_STACK_BYTES)
		lowest = lowest_touched(s, low, high);
	if (!lowest) {
		s->nr_unknown++;
		return true;
	}
	one.size = size;
	one.used = high - lowest;
	name_start(s, d, &one);
	return add_to_group(s, &one);
}

static uint64_t proposed_for(const struct group *g)
{
	uint64_t bytes = round_up(g->used * PROPOSED_TIMES, PROPOSED_STEP);

	return bytes < PROPOSED_LEAST ? PROPOSED_LEAST : bytes;
}

static int by_used(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->used < y->used ? 1 : -(x->used > y->used);
}

static void put_json(const struct stacks *s)
{
	struct wf_text_json j = { .out = stdout };

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "program", s->view->target->program);
	wf_text_json_number(&j, "pid", s->view->target->pid);
	wf_text_json_number(&j, "nr_threads", (long long)s->view->threads->nr_alive);
	wf_text_json_number(&j, "nr_unknown", (long long)s->nr_unknown);
	wf_text_json_begin(&j, "stacks", '[');
	for (size_t i = 0; i < s->nr_groups; i++) {
		const struct group *g = &s->groups[i];

		wf_text_json_begin(&j, NULL, '{');
		wf_text_json_string(&j, "start", g->function);
		wf_text_json_string(&j, "object", g->object);
		wf_text_json_number(&j, "threads", (long long)g->nr);
		wf_text_json_number(&j, "size_bytes", (long long)g->size);
		wf_text_json_number(&j, "used_bytes", (long long)g->used);
		wf_text_json_number(&j, "proposed_bytes", (long long)proposed_for(g));
		wf_text_json_number(&j, "deepest_thread", g->deepest);
		wf_text_json_end(&j, '}');
	}
	wf_text_json_end(&j, ']');
	if (wf_view_spent(s->view->target))
		wf_text_json_string(&j, "incomplete", wf_view_spent(s->view->target));
	wf_text_json_end(&j, '}');
}

static void put_text(const struct stacks *s)
{
	char clean[256];

	printf("%s, process %d: stacks of %zu threads, in KiB\n",
	       wf_text_clean(clean, sizeof(clean), s->view->target->program), s->view->target->pid,
	       s->view->threads->nr_threads - s->nr_unknown);
	printf("%8s %10s %10s %10s  %-32s %s\n", "threads", "size", "used", "proposed",
	       "begin with", "deepest");
	for (size_t i = 0; i < s->nr_groups; i++) {
		const struct group *g = &s->groups[i];

		printf("%8zu %10llu %10llu %10llu  %-32s %lld\n", g->nr,
		       (unsigned long long)g->size >> 10, (unsigned long long)g->used >> 10,
		       (unsigned long long)proposed_for(g) >> 10,
		       wf_text_clean(clean, sizeof(clean), g->function), (long long)g->deepest);
	}
	if (s->nr_unknown)
		printf("%zu threads with stacks that are not known\n", s->nr_unknown);
	if (s->view->threads->nr_threads < s->view->threads->nr_alive)
		printf("%zu more threads were not read; see --limit\n",
		       s->view->threads->nr_alive - s->view->threads->nr_threads);
	if (wf_view_spent(s->view->target))
		printf("Not all was read: the limit of %s for one dump was reached.\n",
		       wf_view_spent(s->view->target));
	puts("Used is the most that was touched by anybody who had one of these stacks: libc gives them from\n"
	     "one thread to the next, and huge pages are touched as a whole. Proposed is twice that; what a\n"
	     "thread has not called yet may need more.");
}

bool wf_stacks_print(const struct wf_dump_view *v, bool is_json)
{
	struct stacks s = { .view = v, .page = (uint64_t)sysconf(_SC_PAGESIZE) };
	bool is_ok = true;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", v->target->pid);
	s.pagemap = wf_file_open_proc(path);
	if (s.pagemap < 0)
		return false;
	for (size_t i = 0; is_ok && i < v->threads->nr_threads; i++)
		is_ok = add_thread(&s, &v->threads->threads[i]);
	(void)close(s.pagemap);
	if (is_ok && s.nr_groups)
		qsort(s.groups, s.nr_groups, sizeof(s.groups[0]), by_used);
	if (is_ok && is_json)
		put_json(&s);
	else if (is_ok)
		put_text(&s);
	free(s.groups);
	return is_ok;
}
