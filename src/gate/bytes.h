// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers at addresses of any alignment, as they lie in code and in unwind tables.
 *
 * Used by: sites.c, fde.c.
 */
#ifndef WF_GATE_BYTES_H
#define WF_GATE_BYTES_H

#include <stdint.h>

static inline int32_t load32(const uint8_t *at)
{
	int32_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return v;
}

static inline uint64_t load64(const uint8_t *at)
{
	uint64_t v;

	__builtin_memcpy(&v, at, sizeof(v));
	return v;
}

#endif
