// SPDX-License-Identifier: Apache-2.0
/*
 * How kernel threads that are not weft's sleep: in libc's functions, so that whatever knows the program by those (valgrind, a
 * sanitizer) sees it wait, and may run its handlers. They are woken by the kernel's call.
 */
#include "native/wait.h"
#include "native/scope.h"
#include "sync/wait.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>

#include <time.h>
#include <unistd.h>

/*
 * A canceller leaves no more than word of it at a thread that is not weft's: so often is that looked for. Handlers: see wait.h.
 */
#define LOOK_NS (10 * WF_MS)

/* The scopes that the wait has, or NULL. Those of a thread whose memory and thread pointer are a parent's are not ours. */
static WF_FACE_CODE struct wf_scopes *own_scopes(void)
{
	struct wf_scopes *sc = wf_scopes_self();

	return sc->top && !sc->thread ? sc : NULL;
}

int64_t wf_native_wait_ns(int64_t ns, bool *out_is_over)
{
	struct wf_scopes *sc = own_scopes();

	*out_is_over = sc && wf_scopes_are_over(sc);
	if (!sc)
		return wf_watched_by_threads ? WF_MIN(ns, LOOK_NS) : ns;
	if (sc->until != WEFT_NEVER) {
		struct timespec now;

		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		ns = WF_MIN(ns, sc->until - (now.tv_sec * WF_SEC + now.tv_nsec));
	}
	return WF_MAX(WF_MIN(ns, LOOK_NS), 0);
}

int wf_native_end_by_scope(void)
{
	struct wf_scopes *sc = own_scopes();

	return sc ? wf_scopes_end(sc, WF_SCOPE_BY_WAIT, 0) : 0;
}

static WF_FACE_CODE bool sleep_in_libc(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	const int kept = errno;
	bool is_over;
	const int64_t ns = wf_native_wait_ns(timeout_ns < 0 ? WEFT_NEVER : timeout_ns, &is_over);
	const struct timespec left = { ns / WF_SEC, ns % WF_SEC };
	struct wf_scopes *sc = wf_scopes_peek();
	long ret;

	if (is_over)
		return true;
	if (!sc->thread)
		wf_store_relaxed(&sc->wait_word, word);
	ret = syscall(__NR_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected,
		      ns == WEFT_NEVER ? NULL : &left, NULL, 0);
	if (!sc->thread)
		wf_store_relaxed(&sc->wait_word, NULL);
	if (ret < 0)
		wf_watched_run_handlers();
	errno = kept;
	return false;
}

__attribute__((constructor)) static void use_libc(void)
{
	wf_wait_outside = (struct wf_wait_outside){ .sleep = sleep_in_libc,
						    .end = wf_native_end_by_scope };
}
