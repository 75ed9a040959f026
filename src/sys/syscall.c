// SPDX-License-Identifier: Apache-2.0
/* Raw Linux helpers that are more than one instruction; see syscall.h. */
#include "sys/syscall.h"
#include "base/die.h"
#include "base/fmt.h"
#include "base/spin.h"

#include <linux/mman.h>
#include <signal.h>

/*
 * Where the next mapping of ours goes, if that is free. The kernel puts the program's mappings below the stack, as near
 * to it as there is room, from at most 1 TiB below on. Ours lie in 64 GiB that begin at random 256 GiB further down
 * (ThreadSanitizer allows memory so far).
 */
#define APART_BYTES (5ul << 38)
#define APART_RANGE (1ul << 36)

#ifndef MADV_DONTDUMP
#define MADV_DONTDUMP 16
#define MADV_DODUMP 17
#endif

static uintptr_t apart_end, apart_used; /* (a) */

static uintptr_t place(size_t bytes)
{
	uintptr_t end = wf_load_relaxed(&apart_end);
	uintptr_t used;

	if (!end) {
		uintptr_t here = (uintptr_t)__builtin_frame_address(0), none = 0;

		if (here < APART_BYTES + 2 * APART_RANGE)
			return 0; /* addresses of 39 bits, as AArch64 may have: where the kernel likes */
		end = here - APART_BYTES - (uintptr_t)&apart_end % APART_RANGE;
		end = wf_cas(&apart_end, &none, end) ? end : none;
	}
	bytes = WF_ALIGN_UP(bytes, WF_PAGE);
	used = wf_fetch_add_relaxed(&apart_used, bytes) + bytes;
	return WF_ALIGN_DOWN(end - used % APART_RANGE, WF_PAGE);
}

static void *map(size_t bytes, int protection)
{
	long p = sys6(__NR_mmap, place(bytes), bytes, protection,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return sys_failed(p) ? NULL : (void *)p;
}

void *sys_map(size_t bytes)
{
	return map(bytes, PROT_READ | PROT_WRITE);
}

/* A debugger that writes a core file would write all of it, zeroes. */
void *sys_reserve(size_t bytes)
{
	void *p = map(bytes, PROT_NONE);

	if (p)
		(void)sys3(__NR_madvise, p, bytes, MADV_DONTDUMP);
	return p;
}

long sys_commit(void *p, size_t bytes)
{
	long ret = sys_protect((uintptr_t)p, (uintptr_t)p + bytes, PROT_READ | PROT_WRITE);

	if (ret == 0)
		(void)sys3(__NR_madvise, p, bytes, MADV_DODUMP);
	return ret;
}

void sys_unmap(void *p, size_t bytes)
{
	if (p)
		(void)sys2(__NR_munmap, p, bytes);
}

uint32_t sys_room_for(size_t bytes_beside, uint32_t step, uint32_t most)
{
	uint64_t limit[2] = { UINT64_MAX, UINT64_MAX }, nr;

	(void)sys4(__NR_prlimit64, 0, 9 /* RLIMIT_AS */, NULL, limit);
	nr = limit[0] / bytes_beside;
	return nr < most ? WF_MIN(WF_ALIGN_UP((uint32_t)nr + 1, step), most) : most;
}

long sys_futex_wait(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	struct __kernel_timespec ts = { timeout_ns / WF_SEC, timeout_ns % WF_SEC };

	return sys4(__NR_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected,
		    timeout_ns < 0 ? NULL : &ts);
}

long sys_futex_wake(uint32_t *word, int n)
{
	return sys3(__NR_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n);
}

long sys_clock_read(int clock, int64_t *out_ns)
{
	struct __kernel_timespec ts;
	long ret = sys2(__NR_clock_gettime, clock, &ts);

	if (ret == 0)
		*out_ns = ts.tv_sec * WF_SEC + ts.tv_nsec;
	return ret;
}

int64_t sys_now(void)
{
	int64_t ns = 0;

	(void)sys_clock_read(1 /* CLOCK_MONOTONIC */, &ns);
	return ns;
}

/* a few microseconds: longer than any section, unless the holder lost its CPU */
#define SPINS_BEFORE_YIELD 200
#define YIELDS_BEFORE_SLEEP 50
#define RELAX_NS (50 * WF_US)
/* A thousand kernel threads that look again so often leave the holder no processor: who waits for long looks less and less. */
#define SLEEPS_AS_LONG 16
#define LONGER_AT_MOST 7

void sys_relax(uint32_t round)
{
	struct __kernel_timespec ts = { 0, RELAX_NS };

	if (round < SPINS_BEFORE_YIELD) {
		wf_cpu_pause();
	} else if (round < SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP) {
		(void)sys0(__NR_sched_yield);
	} else {
		round -= SPINS_BEFORE_YIELD + YIELDS_BEFORE_SLEEP;
		ts.tv_nsec <<= WF_MIN(round / SLEEPS_AS_LONG, (uint32_t)LONGER_AT_MOST);
		(void)sys2(__NR_nanosleep, &ts, NULL);
	}
}

/* How many pauses lie between two looks of a waiter at most: the more of them look, the later the next holder gets the line. */
#define BACKOFF_MAX 128

void wf_spin_lock_slow(struct wf_spin *s)
{
	uint32_t round = 0, pauses = 1;

	do {
		if (round >= SPINS_BEFORE_YIELD) {
			sys_relax(round++);
			continue;
		}
		for (uint32_t i = 0; i < pauses; i++)
			wf_cpu_pause();
		round += pauses;
		pauses = WF_MIN(2 * pauses, (uint32_t)BACKOFF_MAX);
	} while (!wf_spin_trylock(s));
}

void wf_die(const char *what, const char *file, int line)
{
	char text[256];
	struct wf_fmt f;

	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_str(&f, "weft: internal error: ");
	wf_fmt_str(&f, what);
	wf_fmt_str(&f, " (");
	wf_fmt_str(&f, file);
	wf_fmt_str(&f, ":");
	wf_fmt_u64(&f, (uint64_t)line);
	wf_fmt_str(&f, ")\n");
	(void)sys_write(2, text, f.len);
	/* SIGABRT with its default action, unblocked here: the status that a monitor expects. */
	struct sys_sigaction dfl = { 0 };
	uint64_t none = 0;

	(void)sys_sigaction(SIGABRT, &dfl, NULL);
	(void)sys_sigprocmask(SIG_SETMASK, &none, NULL);
	(void)sys_tgkill((int)sys0(__NR_getpid), (int)sys0(__NR_gettid), SIGABRT);
	for (;;)
		(void)sys1(__NR_exit_group, 134);
}
