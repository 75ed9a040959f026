// SPDX-License-Identifier: Apache-2.0
/*
 * The process or core file that `weft dump` looks at: its memory, its mappings, its kernel threads.
 *
 * Used by: all of this folder, and dump/. Invariant: the target is only read. A stopped target goes on when
 * wf_target_resume() is called and also when this process dies in any way, because it is held with
 * PTRACE_SEIZE; no wait for it lasts longer than STOP_LIMIT_MS.
 */
#ifndef WF_TARGET_TARGET_H
#define WF_TARGET_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/budget.h"

/* Registers by DWARF number (x86-64): rax rdx rcx rbx rsi rdi rbp rsp r8..r15 rip. */
#define WF_REG_RBX 3
#define WF_REG_RBP 6
#define WF_REG_RSP 7
#define WF_REG_RIP 16
#define WF_NR_REGS 17

struct wf_regs {
	uint64_t reg[WF_NR_REGS];
	uint32_t known; /* bit per register; 0: nothing is known */
};

struct wf_target_map {
	uint64_t start, end, offset;
	char *path;    /* "" for anonymous memory; of a file that is gone, with " (deleted)" */
	bool has_code; /* of a core: always */
};

/* A kernel thread. */
struct wf_target_lwp {
	int tid;       /* for us */
	int inner_tid; /* for the program, which may have numbers of its own (a PID namespace) */
	struct wf_regs regs;
	long call; /* system call that it was stopped in, or -1 */
	char name[16];
	bool is_held, is_stopped, is_refused;
	int signal; /* arrived while it was being stopped: given back at the end */
};

struct wf_target_segment;
struct wf_core_file;

struct wf_target {
	int pid;
	int inner_pid;
	bool is_core;
	bool has_own_root;        /* its file names are not ours */
	struct wf_budget *budget; /* of every read; NULL: no bound */
	char program[PATH_MAX];
	int memory_fd;              /* /proc/PID/mem, or the core file */
	struct wf_target_map *maps; /* by address */
	size_t nr_maps;
	struct wf_target_lwp *lwps; /* by inner_tid, once it is stopped */
	size_t nr_lwps;
	int first_tid;                      /* core: of the thread that ended it */
	struct wf_target_segment *segments; /* core: what of the memory is in the file */
	size_t nr_segments;
	struct wf_core_file *last_file;   /* core: of those that were mapped */
	int64_t stopped_at, stopped_us;   /* when it was stopped, for how long */
	int core_signal;                  /* core: what ended the process, or 0 */
	uint64_t core_bytes, core_wanted; /* core: of the file, and what its headers promise */
	uint64_t entry;                   /* core: where the executable begins to run, 0: unknown */
	char error[PATH_MAX + 256];       /* one line, after a function below failed */
};

/* Sets t->error; returns false. */
bool __attribute__((format(printf, 2, 3)))
wf_target_fail(struct wf_target *t, const char *format, ...);

/* Opens a process; false and t->error. Nothing is stopped yet. Release with wf_target_done() in any case. */
bool wf_target_open_process(struct wf_target *t, int pid, struct wf_budget *budget);
bool wf_target_open_core(struct wf_target *t, const char *file, const char *exe,
			 struct wf_budget *budget);
void wf_target_done(struct wf_target *t);

/* Has the process ended, or become another program, since it was opened? */
bool wf_target_is_gone(const struct wf_target *t);

/* Stops every kernel thread and reads its registers. False: none could be held, see error. */
bool wf_target_stop(struct wf_target *t);
void wf_target_resume(struct wf_target *t);

/* The signals that the kernel keeps for the process; not of a core. */
uint64_t wf_target_pending(const struct wf_target *t);

/* All of it, or false. */
bool wf_target_read(const struct wf_target *t, uint64_t address, void *out, size_t bytes);
/* As much as is there; returns the number of bytes. */
size_t wf_target_read_some(const struct wf_target *t, uint64_t address, void *out, size_t bytes);

const struct wf_target_map *wf_target_map_at(const struct wf_target *t, uint64_t address);

/* For core.c: one more, zeroed by the caller; NULL: out of memory. */
struct wf_target_lwp *wf_target_add_lwp(struct wf_target *t);

/* The kernel thread that the program knows by this number, or NULL. */
const struct wf_target_lwp *wf_target_lwp(const struct wf_target *t, int inner_tid);

#endif
