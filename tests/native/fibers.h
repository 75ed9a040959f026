// SPDX-License-Identifier: Apache-2.0
/* Fibers for the tests of them. */
#ifndef WEFT_TESTS_NATIVE_FIBERS_H
#define WEFT_TESTS_NATIVE_FIBERS_H

#include <weft/fiber.h>

static inline weft_fiber *named(const char *name, void *(*fn)(void *))
{
	const struct weft_fiber_opts opts = { .size = sizeof(opts), .name = name };

	return weft_fiber_new(fn, &opts);
}

static inline void *returns_it(void *arg)
{
	return arg;
}

#endif
