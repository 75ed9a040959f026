// SPDX-License-Identifier: Apache-2.0
/* Shared by the tests of the gate: the libc of this process as a module, and a clock. */
#ifndef TESTS_UNIT_GATE_H
#define TESTS_UNIT_GATE_H

#include <link.h>
#include <string.h>
#include <time.h>

static inline int take_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

static inline struct dl_phdr_info libc_module(void)
{
	struct dl_phdr_info info = { .dlpi_name = NULL };

	dl_iterate_phdr(take_libc, &info);
	return info;
}

static inline double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

#endif
