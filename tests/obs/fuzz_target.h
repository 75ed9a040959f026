// SPDX-License-Identifier: Apache-2.0
/*
 * The memory of a small target that fuzz_layout.c looks at, and damages.
 *
 * Owns: what an undamaged target holds (whole), and what its memory holds now (image), which begins at address BASE.
 * Used by: fuzz_layout.c.
 */
#ifndef WEFT_TESTS_OBS_FUZZ_TARGET_H
#define WEFT_TESTS_OBS_FUZZ_TARGET_H

#include <elf.h>
#include <stdint.h>

#include "fake_layout.h"

#define BASE 0x10000ull
#define NR_THREADS 12
#define NR_KTHREADS 4
#define NR_WORKERS 3
#define NR_GROUPS 3
#define PARKED 5   /* a thread in that state */
#define FORKER 102 /* a thread whose tasks all others have taken */
#define NR_EXTREME 12

struct image {
	Elf64_Ehdr elf;
	Elf64_Phdr headers[2];
	Elf64_Dyn dynamic[4];
	struct {
		uint32_t head[4];
		uint64_t bloom;
		uint32_t bucket, chain;
	} hash;
	Elf64_Sym symbols[2];
	char strings[32];
	struct wf_inspect inspect;
	struct wf_inspect_field rows[FAKE_NR];
	struct wf_inspect_value values[FAKE_NR_VALUES];
	struct wf_inspect_root roots[6];
	char runtime[256], table[64], process[64], trace[512];
	uint64_t kthread_list[NR_KTHREADS];
	char kthreads[NR_KTHREADS][256];
	char workers[NR_WORKERS * 256];
	char rings[NR_KTHREADS][64], places[NR_KTHREADS][FAKE_EVENTS * 64];
	char threads[NR_THREADS * 512];
	char scopes[NR_THREADS][256], scope[NR_THREADS][64], groups[NR_GROUPS][512];
	uint64_t tasks_all, places_of_tasks[2 * NR_THREADS];
	char tasks[NR_THREADS][64];
	uint64_t fibers_all, fiber_current[NR_THREADS], fiber_pages[NR_THREADS][8];
	char fibers[NR_THREADS][64], fiber[NR_THREADS][128];
	char stack[4096];
};

extern struct image whole, image;
extern const uint64_t extreme[NR_EXTREME]; /* numbers that find more than random ones */
extern uint64_t random_state;

uint64_t next_random(void);
/* Makes whole. */
void build_whole(void);
/* Makes image of it, with lists that come back to their middle, and a thread that is in a group which it has opened itself. */
void build_circles(void);
/* Makes image of it, with a few places damaged, most of them in the tables. */
void damage(void);

#endif
