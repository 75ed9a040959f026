// SPDX-License-Identifier: Apache-2.0
/*
 * The process or core file that `weft dump` looks at: its memory, its mappings, its kernel threads.
 *
 * Used by: the dump_*.c files. Invariant: the target is only read. A stopped target goes on when
 * wf_target_resume() is called and also when this process dies in any way, because it is held with
 * PTRACE_SEIZE; no wait for it lasts longer than STOP_LIMIT_MS.
 */
#ifndef WF_DUMP_TARGET_H
#define WF_DUMP_TARGET_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
	char *path; /* "" for anonymous memory */
};

/* A kernel thread. */
struct wf_target_lwp {
	int tid;
	struct wf_regs regs;
	long call; /* system call that it was stopped in, or -1 */
	char name[16];
	bool is_held, is_stopped, is_refused;
	int signal; /* arrived while it was being stopped: given back at the end */
};

struct wf_target_segment;

struct wf_target {
	int pid;
	bool is_core;
	char program[PATH_MAX];
	int memory_fd; /* /proc/PID/mem, or the core file */
	struct wf_target_map *maps;
	size_t nr_maps;
	struct wf_target_lwp *lwps;
	size_t nr_lwps;
	struct wf_target_segment *segments; /* core: what of the memory is in the file */
	size_t nr_segments;
	int64_t stopped_at, stopped_us; /* when it was stopped, for how long */
	int core_signal;                /* core: what ended the process, or 0 */
	uint64_t entry;                 /* core: where the executable begins to run, 0: unknown */
	char error[PATH_MAX + 256];     /* one line, after a function below failed */
};

/* Sets t->error; returns false. */
bool __attribute__((format(printf, 2, 3)))
wf_target_fail(struct wf_target *t, const char *format, ...);

/* Opens a process; false and t->error. Nothing is stopped yet. Release with wf_target_done() in any case. */
bool wf_target_open_process(struct wf_target *t, int pid);
bool wf_target_open_core(struct wf_target *t, const char *file, const char *exe);
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

/* Address of a dynamic symbol of the loaded object whose first mapping is map, 0: none. */
uint64_t wf_target_symbol(const struct wf_target *t, const struct wf_target_map *map,
			  const char *name);

#endif
