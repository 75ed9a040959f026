// SPDX-License-Identifier: Apache-2.0
/*
 * Looking through code for a few bytes, 64 at a time; see find.S.
 *
 * Called by: scan.c, segment.c.
 */
#ifndef WF_GATE_X86_64_FIND_H
#define WF_GATE_X86_64_FIND_H

#include <stddef.h>
#include <stdint.h>

/* The next pair of these bytes in [p, end), or end. */
const uint8_t *wf_find_syscall(const uint8_t *p, const uint8_t *end);
const uint8_t *wf_find_0fae(const uint8_t *p, const uint8_t *end);
const uint8_t *wf_find_3d01(const uint8_t *p, const uint8_t *end);

/* For each of nr blocks of 64 bytes, a bit for each byte at which a jump with a 32-bit displacement may begin. */
void wf_find_jumps(const uint8_t *p, size_t nr, uint64_t *out);

/* A bit for each of the 64 bytes at p at which a jump with an 8-bit displacement may begin. */
uint64_t wf_find_short_jumps(const uint8_t *p);

#endif
