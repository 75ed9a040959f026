// SPDX-License-Identifier: Apache-2.0
/* Looks imports and system call numbers up in the table of calls; see uses.h. */
#include "uses.h"

#include <stdlib.h>
#include <string.h>

/* Functions of libc outside the table's families whose system call has another name. */
static const struct {
	const char *function, *call;
} aliases[] = {
	{ "exit", "exit_group" },     { "_exit", "exit_group" },
	{ "_Exit", "exit_group" },    { "quick_exit", "exit_group" },
	{ "recv", "recvfrom" },       { "send", "sendto" },
	{ "wait", "wait4" },          { "wait3", "wait4" },
	{ "waitpid", "wait4" },       { "seteuid", "setresuid" },
	{ "setegid", "setresgid" },   { "initgroups", "setgroups" },
	{ "nice", "setpriority" },    { "posix_spawn", "vfork" },
	{ "posix_spawnp", "vfork" },  { "system", "vfork" },
	{ "popen", "vfork" },         { "execl", "execve" },
	{ "execle", "execve" },       { "execlp", "execve" },
	{ "execv", "execve" },        { "execvp", "execve" },
	{ "execvpe", "execve" },      { "fexecve", "execveat" },
	{ "lockf", "fcntl" },         { "getrlimit", "prlimit64" },
	{ "setrlimit", "prlimit64" }, { "prlimit", "prlimit64" },
	{ "pread", "pread64" },       { "pwrite", "pwrite64" },
	{ "eventfd", "eventfd2" },
};

static const struct wf_calls_row *find_in(const struct wf_calls_row *rows, size_t nr,
					  const char *name, size_t len)
{
	for (size_t i = 0; i < nr; i++) {
		if (strncmp(rows[i].name, name, len) == 0 && rows[i].name[len] == '\0')
			return &rows[i];
	}
	return NULL;
}

static const struct wf_calls_row *find(const char *name, size_t len)
{
	const struct wf_calls_row *row = find_in(wf_calls_functions, wf_calls_nr_functions, name,
						 len);

	for (size_t i = 0; !row && i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		const char *call = aliases[i].call;

		if (strncmp(aliases[i].function, name, len) == 0 &&
		    aliases[i].function[len] == '\0')
			return find_in(wf_calls_system, wf_calls_nr_system, call, strlen(call));
	}
	return row ? row : find_in(wf_calls_system, wf_calls_nr_system, name, len);
}

static void add(struct wf_uses *u, const struct wf_calls_row *row, const char *by, bool is_inline)
{
	struct wf_uses_item *grown;

	for (size_t i = 0; i < u->nr; i++) {
		if (u->items[i].row == row)
			return;
	}
	grown = reallocarray(u->items, u->nr + 1, sizeof(*grown));
	if (!grown) {
		u->is_incomplete = true;
		return;
	}
	u->items = grown;
	u->items[u->nr++] = (struct wf_uses_item){ row, by, is_inline };
}

static size_t len_without(const char *name, size_t len, const char *end)
{
	size_t end_len = strlen(end);

	return len > end_len && memcmp(name + len - end_len, end, end_len) == 0 ? len - end_len
										: len;
}

void wf_uses_add(struct wf_uses *u, const char *name, const char *by)
{
	size_t len = strlen(name);
	const struct wf_calls_row *row = find(name, len);

	/* open64, __open_2, __read_chk: what headers make of open and read. */
	if (!row) {
		size_t underscores = strspn(name, "_");

		name += underscores;
		len = len_without(name, len - underscores, "_chk");
		len = len_without(name, len, "_2");
		row = find(name, len);
	}
	if (!row)
		row = find(name, len_without(name, len, "64"));
	if (row)
		add(u, row, by, false);
}

void wf_uses_add_number(struct wf_uses *u, int nr)
{
	for (size_t i = 0; i < wf_calls_nr_system; i++) {
		if (wf_calls_system[i].nr == nr)
			add(u, &wf_calls_system[i], NULL, true);
	}
}

static int compare(const void *a, const void *b)
{
	const struct wf_uses_item *x = a, *y = b;

	if (!x->by != !y->by)
		return x->by ? 1 : -1;
	return strcmp(x->row->name, y->row->name);
}

void wf_uses_sort(struct wf_uses *u)
{
	if (u->nr)
		qsort(u->items, u->nr, sizeof(u->items[0]), compare);
}

bool wf_uses_has(const struct wf_uses *u, enum wf_calls_fate fate)
{
	for (size_t i = 0; i < u->nr; i++) {
		if (!u->items[i].by && u->items[i].row->fate == fate)
			return true;
	}
	return false;
}

void wf_uses_free(struct wf_uses *u)
{
	free(u->items);
	*u = (struct wf_uses){ 0 };
}
