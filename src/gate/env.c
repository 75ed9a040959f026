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
