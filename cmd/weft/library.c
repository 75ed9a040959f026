// SPDX-License-Identifier: Apache-2.0
/*
 * Finds libweft-run.so.
 *
 * Called by: run.c, checks.c. Invariant: what is returned can be preloaded. The dynamic loader itself only
 * prints a warning about a preload that it cannot load, and then runs the program without it.
 */
#include "library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary.h"

#define LIBRARY "libweft-run.so"

/* Relative to the directory of the executable: installed (flat, then multiarch and lib64), build tree. */
static const char *const places[] = {
	"../lib/weft/" LIBRARY,
	"../lib/x86_64-linux-gnu/weft/" LIBRARY,
	"../lib64/weft/" LIBRARY,
	"../../src/" LIBRARY,
};

static bool find_beside_us(char out_path[PATH_MAX])
{
	char self[PATH_MAX], candidate[2 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		return false;
	self[len] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(candidate, sizeof(candidate), "%s/%s", self, places[i]);
		if (realpath(candidate, out_path))
			return true;
	}
	return false;
}

static bool is_preloadable(const char *path, char *out_why, size_t why_bytes)
{
	struct wf_binary b;
	const char *damage;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_good;
	int ret;

	if (fd < 0) {
		snprintf(out_why, why_bytes, "the library %s cannot be read: %s", path,
			 strerror(errno));
		return false;
	}
	ret = wf_binary_open(&b, fd, &damage);
	is_good = ret == 0 && b.is_elf && b.is_64bit && b.machine == EM_X86_64 &&
		  b.type == ET_DYN && b.has_dynamic;
	wf_binary_close(&b);
	if (!is_good)
		snprintf(out_why, why_bytes, "%s is not a shared library for x86-64", path);
	return is_good;
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
	} else if (!find_beside_us(out_path)) {
		snprintf(out_why, why_bytes,
			 LIBRARY " is neither installed nor built; set WEFT_LIBRARY to its path");
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
