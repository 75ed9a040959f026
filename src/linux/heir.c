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
 * share.
 *
 * How it knows: the kernel clears the word of set_tid_address() and wakes who waits there when a kernel thread
 * ends. First the door's, then those of all others: then nobody runs in this memory any more.
 *
 * It is a child of the program's, and its end sends no signal. The kernel shows such a child to __WALL and __WCLONE
 * only, and there we hide it; so it is nobody's child where the program is the first of its namespace, or a reaper.
 * Somebody may stop it, and it must not keep the memory then: the kernel lets it go on when the program ends, since it
 * is alone in a process group that is orphaned by that, and because it asked for SIGCONT (PR_SET_PDEATHSIG).
 * Before the program executes another one an orphan takes its place: that program would have a child, and be told.
 *
 * Invariant: whoever writes to the program's memory gains nothing by it. The heir has no descriptors, no capabilities
 * and no groups, and a filter lets it wait, wake and end, and nothing else. So it need not hear of set*id. Nor may
 * anybody look into that memory through it who may not look into the program; see drop_rights().
 *
 * Considered and dropped: see ARCHITECTURE.md.
 */
#include "linux/heir.h"
#include "arch/arch.h"
#include "linux/calls.h"
#include "linux/doorbell.h"
#include "linux/robust.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/resource.h>
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

enum kind {
	NONE,
	CHILD,
	ORPHAN
};

struct one {
	uint32_t is_needed; /* (a) cleared, it ends */
	uint32_t state;     /* (a) STARTING, ...; a futex */
	int pid;            /* (p) before state */
	char *stacks;       /* (o) by the door: its own, and of the one in between */
};

static struct {
	uint32_t is_expected; /* (a) for good, in fork children too */
	uint32_t is_due;      /* (a) the door is asked for what is wanted */
	uint32_t wanted;      /* (a) enum kind */
	uint32_t made;        /* (a) enum kind */
	/* (a) a futex: cleared by the kernel, and else another number for each heir that is dismissed */
	uint32_t door_lives;
	int child;          /* (a) pid, while it is the program's child; else 0 */
	uint32_t now;       /* (o) by the door: index of the one that there is */
	struct one ones[2]; /* the second replaces the first */
} heir;

/* --- the heir itself --- */

/*
 * A caller without CAP_SYS_PTRACE may look into a process only if its own user and group are all of that one's users and
 * groups: nobody's are, when those differ.
 */
static bool is_out_of_reach(void)
{
	static const int others[] = { 65534, 65533, 1, 0 };
	uint32_t r = 0, e = 0, s = 0;

	if (sys3(__NR_getresuid, &r, &e, &s) < 0 || r != e || e != s)
		return true;
	if (sys3(__NR_getresgid, &r, &e, &s) < 0 || r != e || e != s)
		return true;
	/* The call sets the group for files, too; a change of that one would show in the memory that we share. */
	if (sys1(__NR_setfsgid, -1) != e)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (others[i] != (int)e && sys3(__NR_setresgid, -1, -1, others[i]) == 0)
			return true;
	return false;
}

/*
 * It needs none. But it has the program's memory, and without capabilities it would be open to processes of the same user
 * that have fewer than the program. Where its groups cannot be made to differ, the permitted ones stay as the bar: they
 * are not in effect, and the filter lets nobody bring them into effect.
 */
static long drop_rights(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { 0 };

	(void)sys2(__NR_setgroups, 0, NULL);
	for (int cap = 0; cap < 64; cap++)
		if (sys5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			break;
	if (sys2(__NR_capget, &header, caps) < 0)
		return -EPERM;
	if (!caps[0].permitted && !caps[1].permitted)
		return 0;
	if (is_out_of_reach())
		caps[0].permitted = caps[1].permitted = 0;
	caps[0].effective = caps[1].effective = 0;
	caps[0].inheritable = caps[1].inheritable = 0;
	return sys2(__NR_capset, &header, caps);
}

/* A core file would be one of the program's memory. One byte of it is refused, too, where a process takes it. */
static void forbid_cores(void)
{
	static const struct rlimit64 none = { 1, 1 }, nothing = { 0, 0 };

	if (sys4(__NR_prlimit64, 0, RLIMIT_CORE, &none, NULL) < 0)
		(void)sys4(__NR_prlimit64, 0, RLIMIT_CORE, &nothing, NULL);
}

static long limit_self(void)
{
	static const struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_futex, 6, 0),
		/* Of a handler, in a program that uses the base register itself; see sched/self.c. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_gettid, 5, 0),
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

/* False: nobody needs it any more. That is said before the word changes, and so seen, or the word is not what it was. */
static bool wait_for_the_end(const struct one *h)
{
	uint32_t lives;

	while ((lives = wf_load_acquire(&heir.door_lives)) && wf_load_acquire(&h->is_needed))
		wait_while(&heir.door_lives, lives, WF_NEVER);
	if (!wf_load_acquire(&h->is_needed))
		return false;
	for (uint32_t i = 0; i < wf_load_acquire(&wf_rt.nr_kthreads); i++) {
		struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);
		int tid;

		if (k->is_door)
			continue;
		for (int n = 0; n < MAX_LOOKS && (tid = wf_load_acquire(&k->tid)) > 0; n++)
			wait_while((uint32_t *)&k->tid, (uint32_t)tid, LOOK_NS);
	}
	return true;
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

static void tell(struct one *h, uint32_t state)
{
	wf_store_release(&h->state, state);
	(void)sys_futex_wake(&h->state, 1);
}

static void live(void *arg)
{
	/* A fault in the program's memory is an answer; see wf_arch_copy(). */
	const uint64_t mask = ~(lx_bit(SIGSEGV) | lx_bit(SIGBUS));
	struct one *h = arg;

	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sys2(__NR_setpgid, 0, 0);
	(void)sys1(__NR_chdir, "/");
	(void)sys2(__NR_prctl, PR_SET_NAME, "weft-heir");
	(void)sys2(__NR_prctl, PR_SET_PDEATHSIG, SIGCONT);
	forbid_cores();
	if (sys3(__NR_close_range, 0, ~0u, 0) < 0 || drop_rights() < 0 || limit_self() < 0) {
		tell(h, FAILED);
	} else {
		tell(h, READY);
		if (wait_for_the_end(h))
			lx_robust_walk_all(owner_was_killed);
	}
	for (;;)
		(void)sys1(__NR_exit_group, 0);
}

/* In between: its child is nobody's soon. */
static void make(void *arg)
{
	struct one *h = arg;

	if (wf_arch_spawn_process(h->stacks + 2 * STACK_BYTES, live, h, &h->pid) < 0)
		tell(h, FAILED);
	for (;;)
		(void)sys1(__NR_exit_group, 0);
}

/* --- the program --- */

static void reap(int pid)
{
	while (sys4(__NR_wait4, pid, NULL, __WALL, NULL) == -EINTR)
		;
}

static long link_of(const char *path, char text[64])
{
	return sys4(__NR_readlinkat, AT_FDCWD, path, text, 64);
}

/*
 * A process that the door makes would be the first process of another namespace, in place of the program's child. The kernel shows
 * none that has no process yet.
 */
static bool is_parent_elsewhere(void)
{
	char own[64] = { 0 }, later[64] = { 0 };
	long n;

	if (link_of("/proc/thread-self/ns/pid", own) <= 0)
		return false;
	n = link_of("/proc/thread-self/ns/pid_for_children", later);
	return n == -ENOENT || (n > 0 && __builtin_memcmp(own, later, sizeof(own)) != 0);
}

static bool spawn(struct one *h, enum kind kind)
{
	int maker = 0;

	if (is_parent_elsewhere())
		return false;
	if (!h->stacks)
		h->stacks = sys_map(2 * STACK_BYTES);
	if (!h->stacks)
		return false;
	wf_store_relaxed(&h->state, (uint32_t)STARTING);
	wf_store_relaxed(&h->is_needed, 1u);
	wf_store_relaxed(&h->pid, 0);
	if (kind == CHILD)
		return wf_arch_spawn_process(h->stacks + 2 * STACK_BYTES, live, h, &h->pid) >= 0;
	if (wf_arch_spawn_process(h->stacks + STACK_BYTES, make, h, &maker) < 0)
		return false;
	reap(maker);
	return true;
}

static bool make_one(struct one *h, enum kind kind)
{
	if (!spawn(h, kind))
		return false;
	while (wf_load_acquire(&h->state) == STARTING)
		if (sys_futex_wait(&h->state, STARTING, LOOK_NS) == -ETIMEDOUT &&
		    (!h->pid || sys2(__NR_kill, h->pid, 0) == -ESRCH))
			return false;
	if (wf_load_acquire(&h->state) == READY)
		return true;
	if (kind == CHILD)
		reap(h->pid);
	return false;
}

/*
 * A child may be stopped, and of another user than the program is now: who may not end it may let it go on. An orphan may
 * have been killed, and its number be somebody else's.
 */
static void dismiss(struct one *h, enum kind kind)
{
	wf_store_release(&h->is_needed, 0u);
	wf_fetch_add(&heir.door_lives, 1u); /* by the door itself, so it is not 0 */
	(void)sys3(__NR_futex, &heir.door_lives, FUTEX_WAKE, INT32_MAX);
	if (kind != CHILD)
		return;
	if (sys2(__NR_kill, h->pid, SIGKILL) < 0)
		(void)sys2(__NR_kill, h->pid, SIGCONT);
	reap(h->pid);
}

void lx_heir_answer(void)
{
	enum kind wanted, made = (enum kind)wf_load_relaxed(&heir.made);
	struct one *next = &heir.ones[!heir.now];

	if (WF_LIKELY(!wf_load_seq_cst(&heir.is_due)))
		return;
	wf_store_seq_cst(&heir.is_due, 0u);
	wanted = (enum kind)wf_load_relaxed(&heir.wanted);
	if (made == wanted)
		return;
	if (!wf_load_relaxed(&heir.door_lives))
		wf_store_relaxed(&heir.door_lives, 1u);
	(void)sys1(__NR_set_tid_address, &heir.door_lives);
	if (!make_one(next, wanted))
		return;
	if (made)
		dismiss(&heir.ones[heir.now], made);
	heir.now = !heir.now;
	wf_store_relaxed(&heir.child, wanted == CHILD ? next->pid : 0);
	wf_store_release(&heir.made, (uint32_t)wanted);
}

static void ask_for(enum kind kind)
{
	wf_store_relaxed(&heir.wanted, (uint32_t)kind);
	wf_store_seq_cst(&heir.is_due, 1u);
	lx_door_pass();
}

static bool may_need_one(void)
{
	return wf_load_acquire(&heir.is_expected) && wf_load_acquire(&wf_rt.started) &&
	       !wf_load_acquire(&heir.made);
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
		ask_for(CHILD);
}

static void shared(void)
{
	if (may_need_one())
		ask_for(CHILD);
}

void lx_heir_mapped(const struct wf_frame *f)
{
	if (!may_need_one())
		return;
	/* Memory that can be written to now or, by mprotect(), later. */
	if (WF_ARG2(f) & PROT_WRITE || WF_ARG3(f) & MAP_ANONYMOUS ||
	    (sys2(__NR_fcntl, WF_ARG4(f), F_GETFL) & O_ACCMODE) != O_RDONLY)
		ask_for(CHILD);
}

long sysc_shmat(struct wf_frame *f)
{
	long ret = lx_raw(f);

	shared();
	return ret;
}

/* An orphan of these becomes their child after all, and one that wait() shows. */
static bool takes_orphans(void)
{
	int is_reaper = 0;

	(void)sys2(__NR_prctl, PR_GET_CHILD_SUBREAPER, &is_reaper);
	return is_reaper || wf_rt.pid == 1;
}

void lx_heir_leave(void)
{
	if (wf_load_acquire(&heir.made) == CHILD && !takes_orphans())
		ask_for(ORPHAN);
}

void lx_heir_stay(void)
{
	if (wf_load_acquire(&heir.made) == ORPHAN)
		ask_for(CHILD);
}

bool lx_heir_is(int pid)
{
	return pid && pid == wf_load_acquire(&heir.child);
}

/* A child that the program made with another signal than SIGCHLD looks like the heir, and may be there still. */
bool lx_heir_is_only_child(int options)
{
	const int all = WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT;

	if (!wf_load_acquire(&heir.child) || wf_load_relaxed(&lx.has_clone_child))
		return false;
	return !(options & __WALL) ||
	       sys5(__NR_waitid, P_ALL, 0, NULL, all | (options & __WNOTHREAD), NULL) == -ECHILD;
}

void lx_heir_forget(void)
{
	wf_store_relaxed(&heir.is_due, 0u);
	wf_store_relaxed(&heir.made, (uint32_t)NONE);
	wf_store_relaxed(&heir.child, 0);
}
