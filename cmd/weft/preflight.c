// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at the machine before `weft run` begins; see preflight.h.
 *
 * The library finds the same things out, but in each program again, and would say so for each `ls` of a script.
 */
#include "preflight.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "probes.h"

#define HWCAP2_FSGSBASE (1ul << 1)
#define MDWE_REFUSES                                                                               \
	1 /* PR_MDWE_REFUSE_EXEC_GAIN, without PR_MDWE_NO_INHERIT: an executed program has it, too */

const char *wf_preflight_why_native(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return preload && strstr(preload, "vgpreload_")
			       ? "valgrind hides FSGSBASE, the right to write the FS and GS base"
			       : "this processor or kernel does not let programs write the FS and GS "
				 "base (FSGSBASE)";
	if (wf_probes_mdwe() == MDWE_REFUSES)
		return "text may not be written here (PR_SET_MDWE)";
	/* A security module (EACCES) decides by the program, a filter does not. */
	if (wf_probes_patch_here() == -EPERM)
		return "text may not be written here (a seccomp filter, MemoryDenyWriteExecute=)";
	return NULL;
}
