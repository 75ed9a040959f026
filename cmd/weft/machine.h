// SPDX-License-Identifier: Apache-2.0
/*
 * A machine as a directory of files: /proc, /sys, or a copy of parts of them somewhere else.
 *
 * Used by: checks.c, doctor.c, snapshot.c, tune/. Invariant: every path that a check reads goes through here, so a fixture
 * under --root is read by the same code as the live machine.
 */
#ifndef WF_MACHINE_H
#define WF_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wf_machine {
	const char *root; /* "" is the live machine */
	/* Called for each file that is read, or NULL: for snapshot.c. content: of what is no file here; else NULL. */
	void (*visit)(const char *path, const char *content, void *data);
	void *data;
};

static inline bool wf_machine_is_live(const struct wf_machine *m)
{
	return m->root[0] == '\0';
}

/* Reads at most bytes - 1 and ends them with NUL. Returns the length, or -errno. */
int wf_machine_read(const struct wf_machine *m, const char *path, char *out, size_t bytes);

/* The first line of a file, or one number in it. */
bool wf_machine_line(const struct wf_machine *m, const char *path, char *out, size_t bytes);
bool wf_machine_number(const struct wf_machine *m, const char *path, long long *out);

/* The value of a line "name:\tvalue" of /proc/self/status. */
bool wf_machine_status(const struct wf_machine *m, const char *name, char *out, size_t bytes);

/* One value of the auxiliary vector. */
bool wf_machine_auxv(const struct wf_machine *m, uint64_t type, uint64_t *out);

/* A row of /proc/self/limits; -1 is "unlimited". */
bool wf_machine_limit(const struct wf_machine *m, const char *name, long long *out_soft,
		      long long *out_hard);

/* The value of a line "name : value" of the first processor in /proc/cpuinfo. */
bool wf_machine_cpu_says(const struct wf_machine *m, const char *name, char *out, size_t bytes);

/* CPUs that the affinity mask allows; 0 if that cannot be read. */
unsigned int wf_machine_cpus(const struct wf_machine *m);

/*
 * The tightest CPU quota of the control group and of all above it, in thousandths of a CPU; -1 without
 * one. *out_where gets the file that sets it.
 */
long long wf_machine_quota(const struct wf_machine *m, char *out_where, size_t where_bytes);
/* The same for the number of kernel threads and processes (pids.max). */
long long wf_machine_tasks(const struct wf_machine *m, char *out_where, size_t where_bytes);

#endif
