// SPDX-License-Identifier: Apache-2.0
/*
 * The word of a process that dies to `weft watch`, which dumps it while it still has all its threads.
 *
 * Used by: gate/attach.c, which opens it, linux/ending.c through a hook; and cmd/weft/watch/, the other side.
 *
 * The page is shared memory of the watcher. Its word, which is a futex of both processes:
 *
 *   QUIET  -> DYING    the process   CAS release, once, then wakes the watcher
 *   DYING  -> SEEN     the watcher   store, after the dump, then wakes the process
 *   any    -> QUIET    the watcher   store, when the process is gone
 *
 * As long as the word is DYING, the watcher counts its beats, more often than once in a PATIENCE.
 *
 * Invariant: the process waits for PATIENCE after the last beat, and for LIMIT at most, whatever the watcher does, and ends as
 * it would without one; a second in which it has no processor itself is none of them. The watcher believes nothing in the page
 * but that it should look.
 */
#ifndef WF_OBS_LASTWORD_H
#define WF_OBS_LASTWORD_H

#include <stdbool.h>
#include <stdint.h>

#define WF_LASTWORD_PAGE_MAGIC 0x6863746177746677ull
#define WF_LASTWORD_PAGE_BYTES 4096

enum wf_lastword_word {
	WF_LASTWORD_QUIET,
	WF_LASTWORD_DYING,
	WF_LASTWORD_SEEN,
};

struct wf_lastword_page {
	uint64_t magic; /* (c) */
	uint32_t word;  /* (a) */
	int32_t pid; /* whose page it is: the process itself writes it, before it becomes the program */
	int32_t signal; /* (p) that it dies of */
	uint32_t beats; /* (a) of the watcher, which is at work */
};

/* path: WEFT_WATCH. False: no watcher of this very process is there. */
bool wf_lastword_open(const char *path);
/* From any kernel thread of the process, by the one that ends it. */
void wf_lastword_tell(int sig);

#endif
