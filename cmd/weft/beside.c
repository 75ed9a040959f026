// SPDX-License-Identifier: Apache-2.0
/* Files that came with the command; see beside.h. */
#include "beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool wf_beside_find(const char *const places[], size_t nr, const char *name, int mode,
		    char out_path[PATH_MAX])
{
	char self[PATH_MAX], candidate[3 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		return false;
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < nr; i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s/%s", self, places[i], name);
		if (realpath(candidate, out_path) && access(out_path, mode) == 0)
			return true;
	}
	return false;
}
