// SPDX-License-Identifier: Apache-2.0
/*
 * How kernel threads that are not weft's sleep: in libc's functions, so that whatever knows the program by those (valgrind, a
 * sanitizer) sees it wait, and may run its handlers. They are woken by the kernel's call.
 */
#include "native/wait.h"
#include "sync/wait.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/futex.h>

#include <time.h>
#include <unistd.h>

void wf_native_run_handlers(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
}

static WF_FACE_CODE long sleep_in_libc(uint32_t *word, uint32_t expected, int64_t timeout_ns)
{
	const int64_t wanted = timeout_ns < 0 ? WEFT_NEVER : timeout_ns;
	const int64_t ns = WF_MIN(wanted, WF_NATIVE_LONGEST_NS);
	const struct timespec left = { ns / WF_SEC, ns % WF_SEC };
	const int kept = errno;
	long ret = syscall(__NR_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, expected,
			   ns == WEFT_NEVER ? NULL : &left, NULL, 0);

	if (ret < 0)
		ret = -errno;
	if (ret < 0)
		wf_native_run_handlers();
	errno = kept;
	return ret;
}

__attribute__((constructor)) static void use_libc(void)
{
	wf_wait_sleep = sleep_in_libc;
}
