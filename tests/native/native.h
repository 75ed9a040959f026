// SPDX-License-Identifier: Apache-2.0
/* Shared by the programs of this folder. */
#ifndef WEFT_TESTS_NATIVE_H
#define WEFT_TESTS_NATIVE_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The test has been told to run with threads of the kernel. */
static inline bool is_native_run(void)
{
	const char *weft = getenv("WEFT");

	return weft && strcmp(weft, "0") == 0;
}

/* Workers but the one: somebody may take a task over. */
static inline bool has_others(void)
{
	const char *workers = getenv("WEFT_WORKERS");

	return workers ? strcmp(workers, "1") != 0 : sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

/* Limits of the emulator of a processor, under which meson runs the programs of another family. */
#define SKIP_IF_EMULATED(lack)                                                                     \
	do {                                                                                       \
		if (getenv("MESON_EXE_WRAPPER"))                                                   \
			SKIP(lack);                                                                \
	} while (0)

#endif
