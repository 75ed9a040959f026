// SPDX-License-Identifier: Apache-2.0
/*
 * The door of the dying: a program that crashes says so in a shared page, and waits a moment to be looked at.
 *
 * Called by: supervise.c, watch.c. See obs/lastword.h for the page. A thread of ours waits for its word, since poll() cannot,
 * and does nothing but to wake the loop, which looks at the word itself: between two looks of the thread one program may have
 * died and the next one be dying.
 *
 * Invariant: nothing that stands in the page leads to more than a dump of our own child.
 */
#include "watch/watch.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lastword.h"

static void *wait_at_door(void *arg)
{
	struct wf_watch *w = arg;
	const struct timespec beat = { .tv_nsec = WF_WATCH_S / 4 };
	uint32_t *word = &w->page->word, seen;

	for (;;) {
		/* Pairs with the program's compare-and-swap; it wakes us after that. */
		seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (seen == WF_LASTWORD_DYING) {
			(void)__atomic_add_fetch(&w->page->beats, 1, __ATOMIC_RELAXED);
			(void)eventfd_write(w->door, 1);
		}
		(void)syscall(SYS_futex, word, FUTEX_WAIT, seen,
			      seen == WF_LASTWORD_DYING ? &beat : NULL);
	}
	return NULL;
}

static struct wf_lastword_page *make_page(int *out_fd)
{
	int fd = memfd_create("weft-watch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *page = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, WF_LASTWORD_PAGE_BYTES) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		page = mmap(NULL, WF_LASTWORD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
	if (page == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	*out_fd = fd;
	return page;
}

void wf_watch_door_open(struct wf_watch *w)
{
	char path[64];
	pthread_t waiter;
	int fd;

	w->page = make_page(&fd);
	if (!w->page)
		return;
	w->page->magic = WF_LASTWORD_PAGE_MAGIC;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	w->door = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->door >= 0 && setenv("WEFT_WATCH", path, 1) == 0 &&
	    pthread_create(&waiter, NULL, wait_at_door, w) == 0)
		return;
	(void)unsetenv("WEFT_WATCH");
	if (w->door >= 0)
		close(w->door);
	w->door = -1;
	close(fd);
	(void)munmap(w->page, WF_LASTWORD_PAGE_BYTES);
	w->page = NULL;
}

void wf_watch_door_give(const struct wf_watch *w)
{
	if (w->page)
		w->page->pid = (int32_t)getpid();
}

bool wf_watch_door_is_dying(const struct wf_watch *w)
{
	/* Pairs with the program's compare-and-swap. */
	return w->page && __atomic_load_n(&w->page->word, __ATOMIC_ACQUIRE) == WF_LASTWORD_DYING;
}

int wf_watch_door_signal(const struct wf_watch *w)
{
	int sig = w->page->signal;

	return sig > 0 && sig < NSIG ? sig : SIGABRT;
}

static void set_word(struct wf_watch *w, uint32_t value)
{
	__atomic_store_n(&w->page->word, value,
			 __ATOMIC_RELEASE); /* pairs with the loads of both who wait */
	(void)syscall(SYS_futex, &w->page->word, FUTEX_WAKE, INT_MAX);
}

void wf_watch_door_release(struct wf_watch *w)
{
	set_word(w, WF_LASTWORD_SEEN);
}

void wf_watch_door_reset(struct wf_watch *w)
{
	if (w->dying_folder >= 0)
		close(w->dying_folder);
	w->dying_folder = -1;
	if (!w->page)
		return;
	w->page->pid = 0;
	set_word(w, WF_LASTWORD_QUIET);
}
