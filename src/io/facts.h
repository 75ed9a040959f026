// SPDX-License-Identifier: Apache-2.0
/*
 * Facts about a descriptor's file, so that the kernel need not be asked: what the program told it, and whether there
 * is anything to read; facts.c has the rules.
 *
 * Called by: linux/ before it waits, and after every call that changes what is known.
 */
#ifndef WF_IO_FACTS_H
#define WF_IO_FACTS_H

#include "io/fdtab.h"

/*
 * The file was told this. Kept as long as nobody else can have told it something else; facts.c says when, and
 * the calls below, and wf_fd_made(), keep it true.
 */
struct wf_fd_facts {
	bool is_nonblocking;
	int64_t timeout_ns; /* of a socket, in the direction of events; 0: none */
};
struct wf_fd_facts wf_fd_facts(int fd, uint32_t events);
/* The file is a TCP socket, or something is put between TCP and its readers. */
void wf_fd_note_tcp(int fd, bool is_tcp);
bool wf_fd_is_tcp(int fd);
/* The program has told the file something: its flags, its timeouts. */
void wf_fd_changed(int fd);
/* The file has another number too, or an owner elsewhere; all files have, when the process forks. */
void wf_fd_shared(int fd);
void wf_fd_all_shared(void);
/* The file was opened with O_DIRECT; it refuses RWF_NOWAIT. Hints for speed, which may be out of date. */
bool wf_fd_is_direct(int fd);
bool wf_fd_lacks_nowait(int fd);
void wf_fd_note_lacks_nowait(int fd);
/* A read, begun when seq events were seen, got less than it asked for. */
void wf_fd_drained(int fd, uint32_t seq);
/* The same, and it said EAGAIN. */
void wf_fd_found_empty(int fd, uint32_t seq);
/*
 * Nothing can be read before the next event: an attempt would say EAGAIN, and may wait instead, unless the file is
 * non-blocking.
 */
bool wf_fd_is_empty(int fd, uint32_t seq);
/* A hang-up, an error or urgent data was seen. */
bool wf_fd_is_ended(int fd);
/* Nothing can be read, and nothing has gone wrong, before the next event: poll() would say so. */
bool wf_fd_is_quiet(int fd, uint32_t seq);

/*
 * The caller, which is bound, has a table of descriptors of its own from now on (unshare, close_range). It keeps the
 * runtime's numbers there, too.
 */
void wf_fd_make_private(void);

/* The following under the entry's lock. A new file has the number, or none. */
void wf_facts_reset(struct fd_entry *e);
/* The same, and the file was just made and is known under this number only. */
void wf_facts_begin(struct fd_entry *e, bool is_nonblocking);
/* wf_fd_is_empty(), and a reader waits, without a time limit. */
bool wf_facts_is_empty_for_good(const struct fd_entry *e, uint32_t seq);

#endif
