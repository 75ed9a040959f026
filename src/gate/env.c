// SPDX-License-Identifier: Apache-2.0
/*
 * The environment as the kernel laid it out; see env.h.
 */
#include "gate/env.h"

#include <stddef.h>

static const char *value_of(const char *entry, const char *name)
{
	while (*name && *name == *entry)
		name++, entry++;
	return !*name && *entry == '=' ? entry + 1 : NULL;
}

char **wf_env_find(char **env, const char *name)
{
	while (*env && !value_of(*env, name))
		env++;
	return *env ? env : NULL;
}

char *wf_env_get(char **env, const char *name)
{
	char **at = wf_env_find(env, name);

	return at ? (char *)value_of(*at, name) : NULL;
}

void wf_env_restore(char **env, const char *name)
{
	char **at = wf_env_find(env, name), *place;

	if (!at || at == env)
		return;
	for (place = at[-1]; *place; place++)
		;
	place++;
	if (value_of(place, name))
		*at = place;
}

bool wf_env_is(const char *value, const char *word)
{
	while (*word && *word == *value)
		word++, value++;
	return *word == *value;
}

bool wf_env_begins(const char *value, const char *word)
{
	while (*word && *word == *value)
		word++, value++;
	return !*word;
}

static const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++)
		if (*path == '/')
			last = path + 1;
	return last;
}

bool wf_env_lists(const char *list, const char *file)
{
	const char *name = last_part(file);

	for (const char *item = list; *item;) {
		const char *p = name;

		/* A folder makes the next part the name. */
		while (*item && *item != ':' && *item != ' ') {
			p = *item == '/' ? name : p && *p == *item ? p + 1 : NULL;
			item++;
		}
		if (p && !*p)
			return true;
		item += *item != '\0';
	}
	return false;
}

static bool is_in_any_case(const char *value, const char *word)
{
	for (; *word; word++, value++) {
		char c = *value >= 'A' && *value <= 'Z' ? (char)(*value + 'a' - 'A') : *value;

		if (c != *word)
			return false;
	}
	return !*value;
}

enum wf_env_switch wf_env_switch(const char *value)
{
	static const char words[2][4][6] = { { "0", "off", "no", "false" },
					     { "1", "on", "yes", "true" } };

	if (!value || !*value)
		return WF_ENV_UNSET;
	for (size_t i = 0; i < 4; i++) {
		if (is_in_any_case(value, words[0][i]))
			return WF_ENV_OFF;
		if (is_in_any_case(value, words[1][i]))
			return WF_ENV_ON;
	}
	return WF_ENV_OTHER;
}
