// SPDX-License-Identifier: Apache-2.0
/*
 * Finds libweft.so.0.
 *
 * Called by: run.c, checks.c, bench/grid.c. Invariant: what is returned can be preloaded. The dynamic loader itself only
 * prints a warning about a preload that it cannot load, and then runs the program without it.
 */
#include "library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beside.h"
#include "binary.h"
#include "inspect.h"

#define LIBRARY "libweft.so.0"

/* Installed (flat, then multiarch and lib64), build tree. */
static const char *const places[] = {
	"../lib",
	"../lib/x86_64-linux-gnu",
	"../lib64",
	"../../src",
};

static bool is_preloadable(const char *path, char *out_why, size_t why_bytes)
{
	struct wf_binary b;
	const char *damage;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_good, is_ours;
	int ret;

	if (fd < 0) {
		snprintf(out_why, why_bytes, "the library %s cannot be read: %s", path,
			 strerror(errno));
		return false;
	}
	ret = wf_binary_open(&b, fd, &damage);
	is_good = ret == 0 && b.is_elf && b.is_64bit && b.machine == EM_X86_64 &&
		  b.type == ET_DYN && b.has_dynamic;
	is_ours = is_good && wf_binary_defines(&b, WF_INSPECT_SYMBOL);
	wf_binary_close(&b);
	if (!is_good)
		snprintf(out_why, why_bytes, "%s is not a shared library for x86-64", path);
	else if (!is_ours)
		snprintf(out_why, why_bytes, "%s is not weft's library, " LIBRARY, path);
	return is_ours;
}

bool wf_library_find(char out_path[PATH_MAX], char *out_why, size_t why_bytes)
{
	const char *from_env = getenv("WEFT_LIBRARY");

	if (from_env && *from_env) {
		if (!realpath(from_env, out_path)) {
			snprintf(out_why, why_bytes, "WEFT_LIBRARY names %s: %s", from_env,
				 strerror(errno));
			return false;
		}
	} else if (!wf_beside_find(places, sizeof(places) / sizeof(places[0]), LIBRARY, F_OK,
				   out_path)) {
		snprintf(out_why, why_bytes, "%s; set WEFT_LIBRARY to its path",
			 access("/proc/self/exe", F_OK) == 0 ? LIBRARY
				 " is neither installed nor built"
							     : LIBRARY
				 " is looked for beside the command, which /proc would name, "
				 "but none is mounted");
		return false;
	}
	/* The loader splits at colons and spaces and expands $ORIGIN; it knows no quoting. */
	if (out_path[strcspn(out_path, ": $")]) {
		snprintf(
			out_why, why_bytes,
			"the path %s has a colon, space or dollar sign, and LD_PRELOAD cannot name "
			"it; move or link the library elsewhere",
			out_path);
		return false;
	}
	return is_preloadable(out_path, out_why, why_bytes);
}
