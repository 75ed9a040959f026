// SPDX-License-Identifier: Apache-2.0
/* The dying process's side of lastword.h. Calls the kernel only: it runs where the program has crashed. */
#include "obs/lastword.h"

#include "base/atomic.h"
#include "sys/syscall.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#define TURN_NS (WF_SEC / 4)
#define PATIENCE_NS (5 * WF_SEC)
#define LIMIT_NS (60 * WF_SEC)

static struct wf_lastword_page *page;

/* A file in /proc alone: nothing happens by opening it, whatever somebody put into the environment. */
static bool is_in_proc(const char *path)
{
	static const char proc[] = "/proc/";
	size_t i = 0;

	while (proc[i] && path[i] == proc[i])
		i++;
	return !proc[i];
}

/*
 * A shorter file would end us at the first look; the seal says that it stays as long as it is. A program or child that it executes or
 * forks inherits the variable, and is not watched: the page says for whom it is.
 */
static bool is_for_us(long fd, const struct wf_lastword_page *p)
{
	long seals = sys3(__NR_fcntl, fd, F_GET_SEALS, 0);

	return seals > 0 && seals & F_SEAL_SHRINK &&
	       sys3(__NR_lseek, fd, 0, SEEK_END) >= WF_LASTWORD_PAGE_BYTES &&
	       p->magic == WF_LASTWORD_PAGE_MAGIC && p->pid == (int32_t)sys0(__NR_getpid);
}

bool wf_lastword_open(const char *path)
{
	long fd, at;

	if (!path || !is_in_proc(path))
		return false;
	fd = sys4(__NR_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	at = sys6(__NR_mmap, 0, WF_LASTWORD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at > 0 && is_for_us(fd, (struct wf_lastword_page *)at))
		page = (struct wf_lastword_page *)at;
	else if (at > 0)
		(void)sys2(__NR_munmap, at, WF_LASTWORD_PAGE_BYTES);
	(void)sys1(__NR_close, fd);
	return page != NULL;
}

static int64_t now(void)
{
	int64_t ns = 0;

	(void)sys_clock_read(CLOCK_MONOTONIC, &ns);
	return ns;
}

/*
 * Until the watcher has seen enough, or is not heard of any more. A turn counts as no more than its length: where it took longer
 * we had no processor either, and after a machine has stood still the watcher's beat is only just coming.
 */
static void wait_for_watcher(void)
{
	const struct __kernel_timespec turn = { .tv_nsec = TURN_NS };
	int64_t at = now(), left = LIMIT_NS, patience = PATIENCE_NS;
	uint32_t heard = wf_load_relaxed(&page->beats);

	/* pairs with the watcher's store */
	while (wf_load_acquire(&page->word) == WF_LASTWORD_DYING && left > 0 && patience > 0) {
		int64_t before = at, took;
		uint32_t beats;

		(void)sys4(__NR_futex, &page->word, FUTEX_WAIT, WF_LASTWORD_DYING, &turn);
		at = now();
		took = at - before < TURN_NS ? at - before : TURN_NS;
		left -= took;
		beats = wf_load_relaxed(&page->beats);
		patience = beats != heard ? PATIENCE_NS : patience - took;
		heard = beats;
	}
}

void wf_lastword_tell(int sig)
{
	uint32_t quiet = WF_LASTWORD_QUIET;

	if (!page || page->pid != (int32_t)sys0(__NR_getpid))
		return;
	page->signal = sig;
	if (!wf_cas(&page->word, &quiet, (uint32_t)WF_LASTWORD_DYING))
		return;
	(void)sys3(__NR_futex, &page->word, FUTEX_WAKE, 1);
	wait_for_watcher();
}
