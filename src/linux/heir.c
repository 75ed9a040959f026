// SPDX-License-Identifier: Apache-2.0
/*
 * The heir: a process that outlives the program, to pass on the locks that its threads held when it was killed.
 *
 * The kernel walks the robust lists of the kernel threads that it kills, and compares the owner of each lock with
 * the kernel thread's tid. Those are not our threads' lists and tids. So a process beside the program shares its
 * memory, waits until the kernel has ended it (or it has executed another program), walks the lists of all threads
 * but main, whose list and tid the kernel knows, wakes who waits, and ends.
 *
 * Made by: the door, when a module is loaded that knows of robust locks, and the process maps memory that others may
 * share. It is the program's child for no longer than it takes to make it: no wait sees it.
 *
 * How it knows: the kernel clears the word of set_tid_address() and wakes who waits there when a kernel thread
 * ends. First the door's, then those of all others: then nobody runs in this memory any more.
 *
 * Invariant: whoever writes to the program's memory gains nothing by it. The heir has no descriptors, and a filter
 * lets it wait, wake and end, and nothing else. So it need not hear of set*id.
 *
 * Considered and dropped: see ARCHITECTURE.md.
 */
#include "arch/arch.h"
#include "linux/calls.h"
#include "linux/robust.h"

#include <linux/audit.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/wait.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>

#define STACK_BYTES (64ul << 10)
#define LOOK_NS (20 * WF_MS)
#define MAX_LOOKS                                                                                  \
	100 /* at one kernel thread that the kernel has yet to end; it runs no code of the program's */

enum {
	STARTING,
	READY,
	FAILED
};

static struct {
	uint32_t is_expected; /* (a) for good, in fork children too */
	uint32_t is_due;      /* (a) the door is asked to make it */
	uint32_t is_made;     /* (a) */
	uint32_t door_lives;  /* (a) cleared by the kernel; a futex */
	uint32_t state;       /* (a) STARTING, ...; a futex */
	int pid;              /* (p) before state */
	char *stacks;         /* (o) by the door */
} heir;

/* --- the heir itself --- */

static long limit_self(void)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_futex, 5, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_rt_sigreturn, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_restart_syscall, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { ARRAY_LEN(code), (struct sock_filter *)code };
	long ret = sys5(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	return ret < 0 ? ret : sys3(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

/* By the kernel's own wake-ups, which are not private. */
static void wait_while(const uint32_t *word, uint32_t value, int64_t ns)
{
	const struct __kernel_timespec ts = { ns / WF_SEC, ns % WF_SEC };

	(void)sys4(__NR_futex, word, FUTEX_WAIT, value, ns == WF_NEVER ? NULL : &ts);
}

static void wait_for_the_end(void)
{
	while (wf_load_acquire(&heir.door_lives))
		wait_while(&heir.door_lives, 1, WF_NEVER);
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);
		int tid;

		if (k->is_door)
			continue;
		for (int n = 0; n < MAX_LOOKS && (tid = wf_load_acquire(&k->tid)) > 0; n++)
			wait_while((uint32_t *)&k->tid, (uint32_t)tid, LOOK_NS);
	}
}

/* As lx_futex_owner_died(), but nobody of this process waits any more, and locks of ours may be held for ever. */
static void owner_was_killed(uint32_t *addr, bool is_pi, bool is_pending, uint32_t tid)
{
	uint32_t value = 0, seen;
	long ret = wf_arch_load32(addr, &value);

	if (tid == (uint32_t)wf_rt.pid)
		return;
	for (;;) {
		if (ret < 0)
			return;
		if ((value & FUTEX_TID_MASK) != tid) {
			if (is_pending && !is_pi && !(value & FUTEX_TID_MASK))
				(void)sys3(__NR_futex, addr, FUTEX_WAKE, 1);
			return;
		}
		seen = value;
		/* of the other kind all wait for the word to change, and mark it again */
		ret = wf_arch_cas32(addr, &seen,
				    (is_pi ? 0 : value & FUTEX_WAITERS) | FUTEX_OWNER_DIED);
		if (ret == 0 && seen == value)
			break;
		value = seen;
	}
	if (value & FUTEX_WAITERS)
		(void)sys3(__NR_futex, addr, FUTEX_WAKE, is_pi ? INT32_MAX : 1);
}

static void tell(uint32_t state)
{
	wf_store_release(&heir.state, state);
	(void)sys_futex_wake(&heir.state, 1);
}

static void live(void *arg)
{
	/* A fault in the program's memory is an answer; see wf_arch_copy(). */
	const uint64_t mask = ~(lx_bit(SIGSEGV) | lx_bit(SIGBUS));

	(void)arg;
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sys0(__NR_setsid);
	(void)sys1(__NR_chdir, "/");
	(void)sys2(__NR_prctl, PR_SET_NAME, "weft-heir");
	if (sys3(__NR_close_range, 0, ~0u, 0) < 0 || limit_self() < 0) {
		tell(FAILED);
	} else {
		tell(READY);
		wait_for_the_end();
		lx_robust_walk_all(owner_was_killed);
	}
	for (;;)
		(void)sys1(__NR_exit_group, 0);
}

/* In between: its child is nobody's soon. */
static void make(void *arg)
{
	(void)arg;
	if (wf_arch_spawn_process(heir.stacks + 2 * STACK_BYTES, live, NULL, &heir.pid) < 0)
		tell(FAILED);
	for (;;)
		(void)sys1(__NR_exit_group, 0);
}

/* --- the program --- */

void lx_heir_answer(void)
{
	int maker = 0;

	if (WF_LIKELY(!wf_load_seq_cst(&heir.is_due)))
		return;
	wf_store_seq_cst(&heir.is_due, 0u);
	if (!heir.stacks)
		heir.stacks = sys_map(2 * STACK_BYTES);
	if (!heir.stacks || wf_load_relaxed(&heir.is_made))
		return;
	wf_store_relaxed(&heir.door_lives, 1u);
	(void)sys1(__NR_set_tid_address, &heir.door_lives);
	wf_store_relaxed(&heir.state, (uint32_t)STARTING);
	wf_store_relaxed(&heir.pid, 0);
	if (wf_arch_spawn_process(heir.stacks + STACK_BYTES, make, NULL, &maker) < 0)
		return;
	while (sys4(__NR_wait4, maker, NULL, __WALL, NULL) == -EINTR)
		;
	while (wf_load_acquire(&heir.state) == STARTING)
		if (sys_futex_wait(&heir.state, STARTING, LOOK_NS) == -ETIMEDOUT &&
		    (!heir.pid || sys2(__NR_kill, heir.pid, 0) == -ESRCH))
			return;
	wf_store_release(&heir.is_made, (uint32_t)(wf_load_relaxed(&heir.state) == READY));
}

static void ask_for_it(void)
{
	wf_store_seq_cst(&heir.is_due, 1u);
	lx_door_pass();
}

static bool may_need_one(void)
{
	return wf_load_acquire(&heir.is_expected) && wf_load_acquire(&wf_rt.started) &&
	       !wf_load_acquire(&heir.is_made);
}

/* Is there anything shared and writable in /proc/self/maps? The second word of a line says so: rw-s. */
static bool has_shared_memory(void)
{
	long fd = sys4(__NR_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0), n;
	bool found = false, can_write = false;
	int at = -1; /* in the second word */
	char buf[256];

	if (fd < 0)
		return true;
	while (!found && (n = sys3(__NR_read, fd, buf, sizeof(buf))) > 0) {
		for (long i = 0; i < n && !found; i++) {
			if (buf[i] == '\n') {
				at = -1;
				can_write = false;
			} else if (at >= 0) {
				can_write |= at == 1 && buf[i] == 'w';
				found = at == 3 && buf[i] == 's' && can_write;
				at++;
			} else if (buf[i] == ' ') {
				at = 0;
			}
		}
	}
	(void)sys_close((int)fd);
	return found;
}

void lx_heir_expect(void)
{
	wf_store_release(&heir.is_expected, 1u);
	lx_heir_start();
}

void lx_heir_start(void)
{
	if (may_need_one() && has_shared_memory())
		ask_for_it();
}

static void shared(void)
{
	if (may_need_one())
		ask_for_it();
}

void lx_heir_mapped(const struct wf_frame *f)
{
	if (!may_need_one())
		return;
	/* What can be written to now or, by mprotect(), later. */
	if (WF_ARG2(f) & PROT_WRITE || WF_ARG3(f) & MAP_ANONYMOUS ||
	    (sys2(__NR_fcntl, WF_ARG4(f), F_GETFL) & O_ACCMODE) != O_RDONLY)
		ask_for_it();
}

long sysc_shmat(struct wf_frame *f)
{
	long ret = lx_raw(f);

	shared();
	return ret;
}

void lx_heir_forget(void)
{
	wf_store_relaxed(&heir.is_due, 0u);
	wf_store_relaxed(&heir.is_made, 0u);
}
