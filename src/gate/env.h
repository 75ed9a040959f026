// SPDX-License-Identifier: Apache-2.0
/*
 * Reads an environment before libc has been told where it is.
 */
#ifndef WF_GATE_ENV_H
#define WF_GATE_ENV_H

#include <stdbool.h>

/* Where the variable stands, or NULL. */
char **wf_env_find(char **env, const char *name);

/* Its value, in its place, or NULL. */
char *wf_env_get(char **env, const char *name);

/*
 * A variable that the loader has replaced by a copy stands in its place again. Programs that write their titles over their
 * arguments and environment expect both to be one piece.
 */
void wf_env_restore(char **env, const char *name);

bool wf_env_is(const char *value, const char *word);
bool wf_env_begins(const char *value, const char *word);

/* Does a list of files, as in LD_PRELOAD, have one with this file's name, in whatever folder? */
bool wf_env_lists(const char *list, const char *file);

/* The answer of a variable that switches something: 1, on, yes, true or 0, off, no, false in any case. */
enum wf_env_switch {
	WF_ENV_UNSET, /* no such variable, or an empty one */
	WF_ENV_OFF,
	WF_ENV_ON,
	WF_ENV_OTHER,
};
enum wf_env_switch wf_env_switch(const char *value);

#endif
