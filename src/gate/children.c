// SPDX-License-Identifier: Apache-2.0
/*
 * The environment that a program's children inherit; see children.h.
 *
 * A program hands its environment on by itself, or a copy of it: so weft's share is taken out of it before main()
 * sees it, in place, since libc has not been told yet where the environment is.
 */
#include "gate/children.h"
#include "gate/env.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

/* As cmd/weft/run.c adds it. */
#define STACK_TUNABLE "glibc.pthread.stack_cache_size=137438953472"

static const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++)
		if (*path == '/')
			last = path + 1;
	return last;
}

static bool is_same(const char *item, size_t len, const char *what, bool by_last_part)
{
	size_t i = 0;

	if (by_last_part) {
		const char *end = item + len;

		for (const char *p = item; p < end; p++)
			if (*p == '/')
				item = p + 1;
		len = (size_t)(end - item);
		what = last_part(what);
	}
	while (i < len && what[i] && item[i] == what[i])
		i++;
	return i == len && !what[i];
}

static bool is_separator(char c, const char *separators)
{
	while (*separators && *separators != c)
		separators++;
	return *separators;
}

static void remove_variable(char **env, const char *name)
{
	char **at = wf_env_find(env, name);

	if (!at)
		return;
	do
		at[0] = at[1];
	while (*at++);
}

/* The list without that item; the variable goes when nothing is left. */
static void remove_item(char **env, const char *name, const char *separators, const char *what,
			bool by_last_part)
{
	char *list = wf_env_get(env, name);
	const char *item = list;
	size_t n = 0;

	if (!list)
		return;
	while (*item) {
		size_t len = 0;

		while (item[len] && !is_separator(item[len], separators))
			len++;
		if (len && !is_same(item, len, what, by_last_part)) {
			if (n)
				list[n++] = separators[0];
			for (size_t i = 0; i < len; i++)
				list[n++] = item[i];
		}
		item += len;
		item += *item != '\0';
	}
	list[n] = 0;
	if (!n)
		remove_variable(env, name);
}

void wf_children_leave(char **env)
{
	static const char *const names[] = { "WEFT_WORKERS",  "WEFT_STATS",    "WEFT_TRACE",
					     "WEFT_RECORD",   "WEFT_PERF_MAP", "WEFT_SEED",
					     "WEFT_SLICE",    "WEFT_IO_URING", "WEFT_CHILDREN",
					     "WEFT_STRICT",   "WEFT_PID",      "WEFT_MODEL",
					     "WEFT_OVERFLOW", "WEFT_WATCH",    "WEFT_WATCHDOG" };
	Dl_info own;

	if (dladdr((void *)wf_children_leave, &own) && own.dli_fname)
		remove_item(env, "LD_PRELOAD", ": ", own.dli_fname, true);
	remove_item(env, "GLIBC_TUNABLES", ":", STACK_TUNABLE, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove_variable(env, names[i]);
}
