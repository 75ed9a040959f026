// SPDX-License-Identifier: Apache-2.0
/*
 * The environment that a program's children inherit; see children.h.
 *
 * A program hands its environment on by itself, or a copy of it: so weft's share is taken out of it before main()
 * sees it.
 */
#include "gate/children.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* As cmd/weft/run.c adds it. */
#define STACK_TUNABLE "glibc.pthread.stack_cache_size=137438953472"

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_same(const char *item, size_t len, const char *what, bool by_last_part)
{
	char text[PATH_MAX];

	if (len >= sizeof(text))
		return false;
	memcpy(text, item, len);
	text[len] = 0;
	return by_last_part ? !strcmp(last_part(text), last_part(what)) : !strcmp(text, what);
}

/* The list without that item; the variable goes when nothing is left. */
static void remove_item(const char *name, const char *separators, const char *what,
			bool by_last_part)
{
	const char *list = getenv(name);
	char *rest = list ? malloc(strlen(list) + 1) : NULL;
	size_t n = 0;

	if (!rest)
		return;
	while (*list) {
		size_t len = strcspn(list, separators);

		if (len && !is_same(list, len, what, by_last_part)) {
			if (n)
				rest[n++] = separators[0];
			memcpy(rest + n, list, len);
			n += len;
		}
		list += len + (list[len] != '\0');
	}
	rest[n] = 0;
	if (n)
		(void)setenv(name, rest, 1);
	else
		(void)unsetenv(name);
	free(rest);
}

void wf_children_leave(void)
{
	static const char *const names[] = { "WEFT_WORKERS", "WEFT_STATS", "WEFT_TRACE",
					     "WEFT_SEED",    "WEFT_SLICE", "WEFT_CHILDREN" };
	Dl_info own;

	if (dladdr((void *)wf_children_leave, &own) && own.dli_fname)
		remove_item("LD_PRELOAD", ": ", own.dli_fname, true);
	remove_item("GLIBC_TUNABLES", ":", STACK_TUNABLE, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unsetenv(names[i]);
}
