// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --program`: what will happen to a program under weft, from its files alone.
 *
 * Called by: doctor.c. Invariant: the verdict "refused" is exactly what `weft run` refuses; both ask
 * program.c.
 */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "libraries.h"
#include "program.h"
#include "text.h"

/* What becomes of a call under weft. */
enum fate {
	ANSWERED, /* by weft, in user space */
	BOUND,    /* the calling thread keeps a kernel thread of its own from then on */
	PASSED,   /* to the kernel, unchanged */
};

static const char *const fate_names[] = { "answered", "bound", "passed" };

static const struct {
	const char *name;
	enum fate fate;
} calls[] = {
	{ "fork", PASSED },
	{ "vfork", PASSED },
	{ "posix_spawn", PASSED },
	{ "posix_spawnp", PASSED },
	{ "clone", ANSWERED },
	{ "syscall", ANSWERED },
	{ "setuid", ANSWERED },
	{ "setgid", ANSWERED },
	{ "seteuid", ANSWERED },
	{ "setegid", ANSWERED },
	{ "setreuid", ANSWERED },
	{ "setregid", ANSWERED },
	{ "setresuid", ANSWERED },
	{ "setresgid", ANSWERED },
	{ "setgroups", ANSWERED },
	{ "initgroups", ANSWERED },
	{ "sigaltstack", ANSWERED },
	{ "pthread_setaffinity_np", ANSWERED },
	{ "sched_setaffinity", ANSWERED },
	{ "timer_create", BOUND }, /* only with SIGEV_THREAD or SIGEV_THREAD_ID */
	{ "sched_setscheduler", BOUND },
	{ "sched_setparam", BOUND },
	{ "pthread_setschedparam", BOUND },
	{ "pthread_attr_setschedpolicy", BOUND },
	{ "ptrace", BOUND },
	{ "unshare", BOUND },
	{ "setns", BOUND },
	{ "capset", BOUND },
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* What makes threads. The libraries of glibc that do so on request of these are in is_passive(). */
static const char *const makers[] = {
	"pthread_create", "thrd_create", "aio_read", "aio_write", "lio_listio", "getaddrinfo_a",
};

struct report {
	struct wf_program program;
	struct wf_libraries libraries;
	bool uses[NR_CALLS];
	bool has_dlopen;
	bool uses_std_thread;   /* somebody starts a std::thread */
	const char *makers[16]; /* who makes threads: names of libraries, "" for the program */
	size_t nr_makers;
	size_t nr_missing;         /* libraries not found */
	uint64_t static_tls_bytes; /* PT_TLS of the program and of all libraries */
	int64_t syscall_pairs;
};

/* One walk over the imports of one file. */
struct walk {
	struct report *report;
	bool is_program;
	bool makes_threads;
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
	/* A library's calls are mostly never made; only the program's own say something. */
	for (size_t i = 0; w->is_program && i < NR_CALLS; i++) {
		if (strcmp(name, calls[i].name) == 0)
			w->report->uses[i] = true;
	}
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

static void analyse(struct report *r)
{
	struct walk w = { .report = r, .is_program = true };
	size_t passive_cxx = SIZE_MAX;

	wf_binary_imports(&r->program.binary, visit_import, &w);
	if (w.makes_threads)
		add_maker(r, "");
	r->static_tls_bytes = r->program.binary.tls_bytes;
	for (size_t i = 0; i < r->libraries.nr; i++) {
		const struct wf_libraries_item *item = &r->libraries.items[i];

		if (!item->path) {
			r->nr_missing++;
			continue;
		}
		w = (struct walk){ .report = r };
		wf_binary_imports(&item->binary, visit_import, &w);
		r->static_tls_bytes += item->binary.tls_bytes;
		if (!w.makes_threads)
			continue;
		if (strcmp(item->name, "libstdc++.so.6") == 0)
			passive_cxx = i; /* who uses it may come later */
		else if (!is_passive(r, item->name))
			add_maker(r, item->name);
	}
	if (passive_cxx != SIZE_MAX && !is_passive(r, "libstdc++.so.6"))
		add_maker(r, r->libraries.items[passive_cxx].name);
	r->syscall_pairs = wf_binary_syscall_pairs(&r->program.binary);
}

static bool uses_bound(const struct report *r)
{
	for (size_t i = 0; i < NR_CALLS; i++) {
		if (r->uses[i] && calls[i].fate == BOUND)
			return true;
	}
	return false;
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
	if (uses_bound(r))
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

static void print_text(const struct report *r, const char *name, struct verdict v)
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
	for (size_t i = 0; i < r->nr_makers; i++)
		print_line(i ? "" : "threads",
			   *r->makers[i] ? r->makers[i] : "made by the program itself");
	if (r->nr_makers == 0)
		print_line("threads", "none made");
	printf("%-14s%llu bytes of its own, %llu with its libraries%s\n", "TLS",
	       (unsigned long long)b->tls_bytes, (unsigned long long)r->static_tls_bytes,
	       b->flags & DF_STATIC_TLS ? " (DF_STATIC_TLS)" : "");
	printf("%-14s%lld byte pairs 0f 05 in its own text%s\n", "syscall",
	       (long long)r->syscall_pairs,
	       r->syscall_pairs > 0 ? ": perhaps system calls that bypass libc" : "");
	for (size_t i = 0; i < NR_CALLS; i++) {
		if (r->uses[i])
			printf("%-14s%-28s %s\n", "uses", calls[i].name, fate_names[calls[i].fate]);
	}
	for (size_t i = 0; i < b->nr_needed; i++)
		print_line("needs", b->needed[i]);
	for (size_t i = 0; i < r->libraries.nr; i++) {
		if (!r->libraries.items[i].path)
			print_line("missing", r->libraries.items[i].name);
	}
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
		wf_text_json_begin(&j, "calls", '{');
		for (size_t i = 0; i < NR_CALLS; i++) {
			if (r->uses[i])
				wf_text_json_string(&j, calls[i].name, fate_names[calls[i].fate]);
		}
		wf_text_json_end(&j, '}');
		wf_text_json_begin(&j, "needed", '[');
		for (size_t i = 0; i < b->nr_needed; i++)
			wf_text_json_string(&j, NULL, b->needed[i]);
		wf_text_json_end(&j, ']');
		print_libraries(&j, r);
	}
	wf_text_json_end(&j, '}');
}

int wf_report_program(const char *name, bool is_json)
{
	static struct report r; /* static for its size; there is one report in a process */
	struct verdict v;

	wf_program_examine(&r.program, name);
	if (!r.program.exit_code) {
		if (wf_libraries_collect(&r.libraries, &r.program.binary, r.program.target) < 0) {
			wf_cmd_error("doctor: out of memory");
			wf_program_done(&r.program);
			return WF_EXIT_REFUSED;
		}
		analyse(&r);
	}
	v = judge(&r);
	if (is_json)
		print_json(&r, name, v);
	else
		print_text(&r, name, v);
	wf_libraries_free(&r.libraries);
	wf_program_done(&r.program);
	return v.exit_code;
}
