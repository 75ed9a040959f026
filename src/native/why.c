// SPDX-License-Identifier: Apache-2.0
/* See why.h. Async-signal-safe, as one would log it from anywhere: no stdio. */
#include "native/why.h"
#include "base/fmt.h"
#include "sched/scope.h"

#include <asm/unistd.h>

struct call {
	uint16_t nr;
	bool has_fd; /* as its first argument */
	const char *name;
};

/* Calls that wait, by the names that programs call them by. */
static const struct call calls[] = {
	{ __NR_accept, true, "accept" },
	{ __NR_accept4, true, "accept4" },
	{ __NR_clock_nanosleep, false, "clock_nanosleep" },
	{ __NR_connect, true, "connect" },
	{ __NR_epoll_pwait, true, "epoll_wait" },
	{ __NR_epoll_pwait2, true, "epoll_pwait2" },
	{ __NR_fcntl, true, "fcntl" },
	{ __NR_flock, true, "flock" },
	{ __NR_futex, false, "pthread_cond_wait, sem_wait or pthread_join" },
	{ __NR_io_getevents, false, "io_getevents" },
	{ __NR_io_pgetevents, false, "io_pgetevents" },
	{ __NR_io_uring_enter, true, "io_uring_enter" },
	{ __NR_ioctl, true, "ioctl" },
	{ __NR_mq_timedreceive, true, "mq_receive" },
	{ __NR_mq_timedsend, true, "mq_send" },
	{ __NR_msgrcv, false, "msgrcv" },
	{ __NR_msgsnd, false, "msgsnd" },
	{ __NR_nanosleep, false, "nanosleep" },
	{ __NR_openat, false, "open" },
	{ __NR_ppoll, false, "ppoll" },
	{ __NR_pread64, true, "pread" },
	{ __NR_preadv, true, "preadv" },
	{ __NR_preadv2, true, "preadv2" },
	{ __NR_pselect6, false, "pselect" },
	{ __NR_pwrite64, true, "pwrite" },
	{ __NR_pwritev, true, "pwritev" },
	{ __NR_pwritev2, true, "pwritev2" },
	{ __NR_read, true, "read" },
	{ __NR_readv, true, "readv" },
	{ __NR_recvfrom, true, "recv" },
	{ __NR_recvmmsg, true, "recvmmsg" },
	{ __NR_recvmsg, true, "recvmsg" },
	{ __NR_rt_sigsuspend, false, "sigsuspend" },
	{ __NR_rt_sigtimedwait, false, "sigwait" },
	{ __NR_semop, false, "semop" },
	{ __NR_semtimedop, false, "semtimedop" },
	{ __NR_sendfile, true, "sendfile" },
	{ __NR_sendmmsg, true, "sendmmsg" },
	{ __NR_sendmsg, true, "sendmsg" },
	{ __NR_sendto, true, "send" },
	{ __NR_splice, true, "splice" },
	{ __NR_tee, true, "tee" },
	{ __NR_vmsplice, true, "vmsplice" },
	{ __NR_wait4, false, "waitpid" },
	{ __NR_waitid, false, "waitid" },
	{ __NR_write, true, "write" },
	{ __NR_writev, true, "writev" },
#ifdef __NR_pause /* those that younger families have never had */
	{ __NR_epoll_wait, true, "epoll_wait" },
	{ __NR_open, false, "open" },
	{ __NR_pause, false, "pause" },
	{ __NR_poll, false, "poll" },
	{ __NR_select, false, "select" },
#endif
};

bool wf_why_write_call(struct wf_fmt *f, uint32_t nr)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (calls[i].nr != nr)
			continue;
		wf_fmt_str(f, calls[i].name);
		wf_fmt_str(f, "()");
		return calls[i].has_fd;
	}
	if (nr == WF_SCOPE_BY_CHECK) {
		wf_fmt_str(f, "weft_scope_check()");
	} else if (nr == WF_SCOPE_BY_GROUP) {
		wf_fmt_str(f, "a wait for a group");
	} else if (nr == WF_SCOPE_BY_WAIT) {
		wf_fmt_str(f, "a wait of libweft");
	} else {
		wf_fmt_str(f, "system call ");
		wf_fmt_u64(f, nr);
	}
	return false;
}

void wf_why_write(char *buf, size_t len, const char *name, bool is_cancelled, uint32_t nr,
		  uint64_t what)
{
	char text[256];
	struct wf_fmt f;
	size_t n;

	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_str(&f, name ? name : "scope");
	wf_fmt_str(&f, is_cancelled ? ": was cancelled in " : ": its time was over in ");
	if (wf_why_write_call(&f, nr)) {
		wf_fmt_str(&f, ", of fd ");
		wf_fmt_u64(&f, what);
	}
	if (!len)
		return;
	n = WF_MIN(f.len, len - 1);
	for (size_t i = 0; i < n; i++)
		buf[i] = text[i];
	buf[n] = '\0';
}
