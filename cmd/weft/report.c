// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --program`: what will happen to a program under weft, from its files; of a process also from where it is now.
 *
 * Called by: doctor.c. Invariant: the verdict "refused" is exactly what `weft run` refuses; both ask
 * program.c.
 */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "expect.h"
#include "libraries.h"
#include "program.h"
#include "text.h"
#include "uses.h"

/* Functions that make threads. The libraries of glibc that do so on request of these are in is_passive(). */
static const char *const makers[] = {
	"pthread_create", "thrd_create", "aio_read", "aio_write", "lio_listio", "getaddrinfo_a",
};

struct report {
	struct wf_program program;
	struct wf_libraries libraries;
	struct wf_uses uses;
	struct wf_expect expect;
	bool has_dlopen;
	bool uses_std_thread;   /* somebody starts a std::thread */
	const char *makers[16]; /* who makes threads: names of libraries, "" for the program */
	size_t nr_makers;
	size_t nr_missing;         /* libraries not found */
	uint64_t static_tls_bytes; /* PT_TLS of the program and of all libraries */
	int64_t syscall_pairs;
	uint64_t text_bytes; /* of all of them, to be looked through at the first thread */
	const char *
		base_user; /* who uses the GS base itself: a library, "" for the program, or NULL */
	bool has_filters;  /* and somebody may set filters for system calls */
};

#define SEARCH_US_PER_MIB 200 /* at most, but on a cold page cache */

/* One walk over the imports of one file. */
struct walk {
	struct report *report;
	const char *library; /* NULL: the program itself */
	bool makes_threads, limits_itself;
};

static void visit_import(const char *name, void *data)
{
	struct walk *w = data;

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (strcmp(name, makers[i]) == 0)
			w->makes_threads = true;
	}
	if (strncmp(name, "_ZNSt6thread15_M_start_thread", 29) == 0)
		w->report->uses_std_thread = true;
	if (strcmp(name, "dlopen") == 0)
		w->report->has_dlopen = true;
	if (strcmp(name, "prctl") == 0)
		w->limits_itself = true;
	if (!w->library)
		wf_expect_import(&w->report->expect, name);
	wf_uses_add(&w->report->uses, name, w->library);
}

static void visit_number(int nr, void *data)
{
	struct report *r = data;

	wf_uses_add_number(&r->uses, nr);
}

/* Libraries that import pthread_create for those who ask them to, and make no thread by themselves. */
static bool is_passive(const struct report *r, const char *name)
{
	static const char *const glibc[] = { "libc.so.6", "libpthread.so.0", "librt.so.1",
					     "libanl.so.1" };

	for (size_t i = 0; i < sizeof(glibc) / sizeof(glibc[0]); i++) {
		if (strcmp(name, glibc[i]) == 0)
			return true;
	}
	return strcmp(name, "libstdc++.so.6") == 0 && !r->uses_std_thread;
}

static void add_maker(struct report *r, const char *name)
{
	if (r->nr_makers < sizeof(r->makers) / sizeof(r->makers[0]))
		r->makers[r->nr_makers++] = name;
}

static uint64_t text_bytes(const struct wf_binary *b)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->nr_phdrs; i++) {
		if (b->phdrs[i].p_type == PT_LOAD && b->phdrs[i].p_flags & PF_X)
			bytes += b->phdrs[i].p_filesz;
	}
	return bytes;
}

/* Without prctl() nobody may set a filter who is not root. */
static void add_traits(struct report *r, unsigned int traits, const char *name, bool limits_itself)
{
	if (strcmp(name, "libc.so.6") == 0)
		return;
	if (traits & WF_BINARY_USES_BASE && !r->base_user)
		r->base_user = name;
	r->has_filters |= limits_itself && traits & WF_BINARY_FILTERS;
}

static void analyse(struct report *r)
{
	struct walk w = { .report = r };
	size_t passive_cxx = SIZE_MAX;
	unsigned int traits;

	wf_binary_imports(&r->program.binary, visit_import, &w);
	if (w.makes_threads)
		add_maker(r, "");
	r->syscall_pairs = wf_binary_syscall_pairs(&r->program.binary, visit_number, r);
	(void)wf_binary_traits(&r->program.binary, &traits);
	add_traits(r, traits, "", w.limits_itself);
	r->static_tls_bytes = r->program.binary.tls_bytes;
	r->text_bytes = text_bytes(&r->program.binary);
	for (size_t i = 0; i < r->libraries.nr; i++) {
		const struct wf_libraries_item *item = &r->libraries.items[i];

		if (!item->path) {
			r->nr_missing++;
			continue;
		}
		w = (struct walk){ .report = r, .library = item->name };
		wf_binary_imports(&item->binary, visit_import, &w);
		add_traits(r, item->traits, item->name, w.limits_itself);
		r->static_tls_bytes += item->binary.tls_bytes;
		r->text_bytes += text_bytes(&item->binary);
		if (!w.makes_threads)
			continue;
		if (strcmp(item->name, "libstdc++.so.6") == 0)
			passive_cxx = i; /* who uses it may come later */
		else if (!is_passive(r, item->name))
			add_maker(r, item->name);
	}
	if (passive_cxx != SIZE_MAX && !is_passive(r, "libstdc++.so.6"))
		add_maker(r, r->libraries.items[passive_cxx].name);
	wf_uses_sort(&r->uses);
}

struct verdict {
	const char *name; /* in JSON, and the first word of the text */
	const char *text;
	int exit_code;
};

static struct verdict judge(const struct report *r)
{
	if (r->program.exit_code)
		return (struct verdict){ "refused", NULL, 2 };
	if (r->nr_missing)
		return (struct verdict){ "incomplete", "libraries are missing, so it cannot start",
					 2 };
	if (r->nr_makers == 0 && r->has_dlopen)
		return (struct verdict){ "runs",
					 "no pthread_create in sight, but dlopen may bring one",
					 0 };
	if (r->nr_makers == 0)
		return (struct verdict){ "runs", "0 pthread_create: nothing to do", 0 };
	if (r->base_user && r->has_filters)
		return (struct verdict){
			"plain NPTL",
			"it uses the GS base itself, and may filter its own system calls: its "
			"threads stay the kernel's",
			1
		};
	if (wf_uses_has(&r->uses, WF_CALLS_BOUND))
		return (struct verdict){
			"runs 1:1",
			"threads that make a call marked 'bound' keep a kernel thread; "
			"the others are user-level threads",
			1
		};
	return (struct verdict){ "runs", "its threads become user-level threads", 0 };
}

static const char *libc_name(const struct wf_program *p)
{
	if (!p->is_read || !p->binary.has_interp)
		return "none";
	if (strstr(p->binary.interp, "ld-linux"))
		return "glibc";
	return strstr(p->binary.interp, "ld-musl") ? "musl" : "other";
}

static void print_line(const char *title, const char *value)
{
	char clean[PATH_MAX];

	printf("%-14s%s\n", title, wf_text_clean(clean, sizeof(clean), value));
}

/*
 * The program's rows in full. A library's calls are mostly never made, so of those only what differs from the
 * plain kernel is worth a line.
 */
static void print_uses(const struct wf_uses *u)
{
	for (size_t i = 0; i < u->nr; i++) {
		const struct wf_uses_item *item = &u->items[i];
		const struct wf_calls_row *row = item->row;
		bool is_plain = !*row->note && row->fate < WF_CALLS_BOUND;
		char by[NAME_MAX + 1] = "";

		if (item->by && is_plain)
			continue;
		wf_text_clean(by, sizeof(by), item->by ? item->by : "");
		printf("%-14s%-24s %s", item->by ? "library uses" : "uses", row->name,
		       wf_calls_fate_names[row->fate]);
		if (*row->note)
			printf("; %s", row->note);
		if (item->is_inline)
			printf(" (by an instruction of its own)");
		if (item->by)
			printf(" (%s)", by);
		putchar('\n');
	}
	if (u->is_incomplete)
		print_line("uses", "more, but there was no memory for it");
}

static void append(char *text, size_t bytes, const char *separator, const char *what)
{
	size_t len = strlen(text);

	snprintf(text + len, bytes - len, "%s%s", len ? separator : "", what);
}

static void print_makers(const struct report *r)
{
	char line[1024] = "", clean[sizeof(line)];

	for (size_t i = 0; i < r->nr_makers; i++)
		append(line, sizeof(line), ", ",
		       *r->makers[i] ? r->makers[i] : "the program itself");
	if (r->nr_makers == 0)
		print_line("threads", "none made");
	else
		printf("%-14smade by %s\n", "threads", wf_text_clean(clean, sizeof(clean), line));
}

/* How many calls of the program have which fate, and the names of those that are not just answered. */
static void print_counts(const struct wf_uses *u)
{
	char line[1024] = "", part[64];

	for (int fate = 0; fate <= WF_CALLS_REFUSED; fate++) {
		size_t nr = 0;
		char names[512] = "";

		for (size_t i = 0; i < u->nr; i++) {
			if (u->items[i].by || (int)u->items[i].row->fate != fate)
				continue;
			nr++;
			if (fate >= WF_CALLS_BOUND && strlen(names) < sizeof(names) / 2)
				append(names, sizeof(names), " ", u->items[i].row->name);
		}
		if (!nr)
			continue;
		snprintf(part, sizeof(part), "%zu %s", nr, wf_calls_fate_names[fate]);
		append(line, sizeof(line), ", ", part);
		if (*names) {
			append(line, sizeof(line), " ", "(");
			append(line, sizeof(line), "", names);
			append(line, sizeof(line), "", ")");
		}
	}
	if (*line)
		printf("%-14s%s; --calls lists them\n", "calls", line);
}

/* Calls that may wait in the kernel, with a kernel thread for each that does. */
static void print_holders(const struct wf_uses *u)
{
	char names[512] = "";

	for (size_t i = 0; i < u->nr; i++) {
		if (!u->items[i].by && u->items[i].row->fate == WF_CALLS_HANDED &&
		    strlen(names) < sizeof(names) / 2)
			append(names, sizeof(names), ", ", u->items[i].row->name);
	}
	if (*names)
		printf("%-14s%s: each that waits holds a kernel thread\n", "holds", names);
}

static void print_expect(const struct wf_expect *e)
{
	if (*e->now)
		print_line("now", e->now);
	if (*e->locks)
		printf("%-14s%s; who waits is parked in user space\n", "locks", e->locks);
	if (*e->stack)
		print_line("stack", e->stack);
	if (*e->workers)
		print_line("workers", e->workers);
}

static void print_text(const struct report *r, const char *name, struct verdict v, bool has_calls)
{
	const struct wf_binary *b = &r->program.binary;
	char line[1024];

	print_line("program", name);
	if (v.text)
		snprintf(line, sizeof(line), "%s: %s", v.name, v.text);
	else
		snprintf(line, sizeof(line), "%s: %s; %s", v.name, r->program.what,
			 r->program.advice);
	print_line("verdict", line);
	if (!r->program.is_read || !b->is_elf)
		return;
	print_line("file", r->program.target);
	print_line("loader", b->has_interp ? b->interp : "none");
	print_line("libc", libc_name(&r->program));
	if (r->program.exit_code)
		return;
	print_makers(r);
	printf("%-14s%llu bytes of its own, %llu with its libraries%s\n", "TLS",
	       (unsigned long long)b->tls_bytes, (unsigned long long)r->static_tls_bytes,
	       b->flags & DF_STATIC_TLS ? " (DF_STATIC_TLS)" : "");
	if (r->syscall_pairs > 0)
		printf("%-14s%lld possible system calls of its own; weft finds and answers them\n",
		       "syscall", (long long)r->syscall_pairs);
	printf("%-14s%llu MiB of text: about %llu ms at the first thread\n", "search",
	       (unsigned long long)((r->text_bytes + (1 << 19)) >> 20),
	       (unsigned long long)(r->text_bytes * SEARCH_US_PER_MIB / 1000 + (1 << 20)) >> 20);
	if (r->base_user) {
		snprintf(line, sizeof(line),
			 "used by %s itself: each of its calls costs a gettid()",
			 *r->base_user ? r->base_user : "the program");
		print_line("GS base", line);
	}
	for (size_t i = 0; i < r->libraries.nr; i++) {
		if (!r->libraries.items[i].path)
			print_line("missing", r->libraries.items[i].name);
	}
	print_counts(&r->uses);
	print_holders(&r->uses);
	print_expect(&r->expect);
	printf("%-14s%zu libraries\n", "needs", r->libraries.nr);
	if (!has_calls)
		return;
	print_uses(&r->uses);
	for (size_t i = 0; i < b->nr_needed; i++)
		print_line("needs", b->needed[i]);
}

static void print_libraries(struct wf_text_json *j, const struct report *r)
{
	wf_text_json_begin(j, "libraries", '[');
	for (size_t i = 0; i < r->libraries.nr; i++) {
		wf_text_json_begin(j, NULL, '{');
		wf_text_json_string(j, "name", r->libraries.items[i].name);
		if (r->libraries.items[i].path)
			wf_text_json_string(j, "path", r->libraries.items[i].path);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void print_calls(struct wf_text_json *j, const struct wf_uses *u)
{
	wf_text_json_begin(j, "calls", '[');
	for (size_t i = 0; i < u->nr; i++) {
		const struct wf_calls_row *row = u->items[i].row;

		wf_text_json_begin(j, NULL, '{');
		wf_text_json_string(j, "name", row->name);
		wf_text_json_string(j, "fate", wf_calls_fate_names[row->fate]);
		wf_text_json_string(j, "test", row->test);
		wf_text_json_string(j, "differs", row->note);
		if (u->items[i].by)
			wf_text_json_string(j, "library", u->items[i].by);
		wf_text_json_bool(j, "inline", u->items[i].is_inline);
		wf_text_json_end(j, '}');
	}
	wf_text_json_end(j, ']');
}

static void json_expect(struct wf_text_json *j, const struct wf_expect *e)
{
	wf_text_json_string(j, "locks", e->locks);
	if (e->pid) {
		wf_text_json_number(j, "pid", e->pid);
		wf_text_json_bool(j, "under_weft", e->is_woven);
		wf_text_json_number(j, "kernel_threads", (long long)e->nr_threads);
		wf_text_json_number(j, "running", e->running);
		wf_text_json_number(j, "stack_used_bytes", (long long)e->used_bytes);
		wf_text_json_string(j, "now", e->now);
	}
	wf_text_json_number(j, "proposed_stack_bytes", (long long)e->proposed_bytes);
	wf_text_json_string(j, "stack", e->stack);
	wf_text_json_number(j, "proposed_workers", e->proposed_workers);
	wf_text_json_string(j, "workers", e->workers);
}

static void print_json(const struct report *r, const char *name, struct verdict v)
{
	const struct wf_binary *b = &r->program.binary;
	struct wf_text_json j = { .out = stdout };

	wf_text_json_begin(&j, NULL, '{');
	wf_text_json_string(&j, "program", name);
	wf_text_json_string(&j, "verdict", v.name);
	wf_text_json_string(&j, "reason", v.text ? v.text : r->program.what);
	wf_text_json_string(&j, "advice", r->program.advice);
	wf_text_json_string(&j, "file", r->program.target);
	wf_text_json_string(&j, "loader", b->interp);
	wf_text_json_string(&j, "libc", libc_name(&r->program));
	if (!r->program.exit_code) {
		wf_text_json_bool(&j, "makes_threads", r->nr_makers > 0);
		wf_text_json_begin(&j, "thread_makers", '[');
		for (size_t i = 0; i < r->nr_makers; i++)
			wf_text_json_string(&j, NULL, *r->makers[i] ? r->makers[i] : name);
		wf_text_json_end(&j, ']');
		wf_text_json_bool(&j, "dlopen", r->has_dlopen);
		wf_text_json_number(&j, "tls_bytes", (long long)b->tls_bytes);
		wf_text_json_number(&j, "tls_bytes_with_libraries", (long long)r->static_tls_bytes);
		wf_text_json_bool(&j, "static_tls", b->flags & DF_STATIC_TLS);
		wf_text_json_number(&j, "syscall_pairs", r->syscall_pairs);
		wf_text_json_number(&j, "text_bytes", (long long)r->text_bytes);
		wf_text_json_bool(&j, "uses_gs_base", r->base_user != NULL);
		json_expect(&j, &r->expect);
		print_calls(&j, &r->uses);
		wf_text_json_begin(&j, "needed", '[');
		for (size_t i = 0; i < b->nr_needed; i++)
			wf_text_json_string(&j, NULL, b->needed[i]);
		wf_text_json_end(&j, ']');
		print_libraries(&j, r);
	}
	wf_text_json_end(&j, '}');
}

int wf_report_program(const char *name, bool is_json, bool has_calls)
{
	char origin[PATH_MAX];  /* the loader asks the kernel, and that knows no link */
	static struct report r; /* static for its size; there is one report in a process */
	pid_t pid = wf_expect_pid(name);
	char exe[64];
	struct verdict v;

	if (pid) {
		snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
		if (access(exe, R_OK) < 0) {
			wf_cmd_error("doctor: cannot read the program of process %d: %s", (int)pid,
				     strerror(errno));
			return WF_EXIT_REFUSED;
		}
	}
	wf_program_examine(&r.program, pid ? exe : name);
	if (!r.program.exit_code) {
		if (!realpath(r.program.target, origin))
			snprintf(origin, sizeof(origin), "%s", r.program.target);
		else if (pid)
			snprintf(r.program.target, sizeof(r.program.target), "%s", origin);
		if (wf_libraries_collect(&r.libraries, &r.program.binary, origin) < 0) {
			wf_cmd_error("doctor: out of memory");
			wf_program_done(&r.program);
			return WF_EXIT_REFUSED;
		}
		analyse(&r);
		wf_expect_look(&r.expect, pid);
	}
	v = judge(&r);
	if (is_json)
		print_json(&r, name, v);
	else
		print_text(&r, name, v, has_calls);
	wf_uses_free(&r.uses);
	wf_libraries_free(&r.libraries);
	wf_program_done(&r.program);
	return v.exit_code;
}
