// SPDX-License-Identifier: Apache-2.0
/* Process or core; see which.h. */
#include "which.h"

#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "cmd.h"
#include "target/find.h"

int wf_which(const char *command, int argc, char **argv, const char *core, const char *exe,
	     int *out_pid)
{
	int nr = argc - optind;
	char error[512];

	*out_pid = 0;
	if (core ? nr > 0 : nr > 1)
		wf_cmd_error("%s: one process or one core file at a time; see 'weft help %s'",
			     command, command);
	else if (!core && nr == 0)
		wf_cmd_error("%s: which process? see 'weft help %s'", command, command);
	else if (exe && !core)
		wf_cmd_error("%s: --exe goes with --core", command);
	else if (core)
		return 0;
	else if (!(*out_pid = wf_find_pid(argv[optind], error, sizeof(error))))
		wf_cmd_error("%s: %s", command, error);
	else
		return 0;
	return WF_EXIT_REFUSED;
}
