// SPDX-License-Identifier: Apache-2.0
/*
 * Questions that only the running kernel answers: each function tries the thing.
 *
 * Used by: checks.c, preflight.c. Each returns 0 if it works, or -errno; none leaves anything changed.
 */
#ifndef WF_PROBES_H
#define WF_PROBES_H

#include <stdbool.h>
#include <stddef.h>

int wf_probes_guard(void); /* MADV_GUARD_INSTALL */
int wf_probes_io_uring(void);
int wf_probes_epoll_pwait2(void);
int wf_probes_patch_text(void); /* mprotect a private mapping of a file R-X, RW-, R-X */
int wf_probes_patch_here(void); /* the same, not in a child */
int wf_probes_mdwe(void);       /* PR_GET_MDWE: the flags, or -errno */

/*
 * Calls that the runtime makes and that few programs do: i counts them, false behind the last. *out_ret is 0, -ENOSYS or
 * -EPERM where it is refused, or -ECANCELED where it ends the process.
 */
bool wf_probes_call(size_t i, const char **out_name, int *out_ret);

#endif
