// SPDX-License-Identifier: Apache-2.0
/*
 * Reading and writing files, and calls that wait for the disk.
 *
 * A file is never "ready" later: a call is made on the thread itself. In two cases it leaves its worker to others
 * first: a buffered read that the page cache cannot answer, and any transfer with O_DIRECT. Nothing is paid while
 * nobody waits for the worker, and nobody else waits for the disk: then the call is only watched, and the monitor
 * takes the worker when it lasts. So a read from the page cache never leaves the thread, and as many reads are on
 * their way as there are threads that make them.
 * Where others want the worker at once, or very many wait for the disk, a ring reads for them; see ring.c.
 *
 * Considered and dropped: to hand the worker on as for a lock. The next carrier slept in the poller with it, and
 * whoever came back from the disk 100 us later had to wake that one: a quarter of NPTL's reads per second.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/fdwait.h"
#include "linux/msg.h"
#include "linux/ring.h"

/* Somebody else could use our worker now, or when the disk has answered. */
static bool is_wanted(void)
{
	struct wf_worker *w = wf_own_kthread()->worker;

	return w && (wf_runq_nr(&w->rq) || wf_load_relaxed(&w->inbox) ||
		     wf_load_relaxed(&wf_rt.nr_lazy) || lx_ring_has_reads()); /* no worker: bound */
}

/* The rest of a read of which the page cache had the first done bytes, or the file no more. */
static long read_rest(struct wf_frame *f, size_t done)
{
	long args[6] = { (long)WF_ARG0(f), (long)(WF_ARG1(f) + done), (long)(WF_ARG2(f) - done),
			 (long)(WF_ARG3(f) + done) };
	long ret = lx_blocking_rest((long)f->nr, args);

	return ret < 0 ? (long)done : (long)done + ret;
}

/* Many at a time share a kernel thread; what that one did not get, or all of it, is read here. */
static long read_from_disk(struct wf_frame *f, bool is_begun)
{
	long ret = f->nr == __NR_pread64 ? lx_ring_read((int)WF_ARG0(f), (void *)WF_ARG1(f),
							WF_ARG2(f), (int64_t)WF_ARG3(f), is_begun)
					 : -ENOSYS;

	if (ret == -ENOSYS)
		return lx_disk(f);
	return ret > 0 && (size_t)ret < WF_ARG2(f) ? read_rest(f, (size_t)ret) : ret;
}

static long try_page_cache(struct wf_frame *f)
{
	struct iovec_k iov = { (char *)WF_ARG1(f), WF_ARG2(f) };
	int64_t at = f->nr == __NR_pread64 ? (int64_t)WF_ARG3(f) : -1;

	return sys6(__NR_preadv2, WF_ARG0(f), &iov, 1, at, 0, RWF_NOWAIT);
}

long sysc_file_read(struct wf_frame *f)
{
	int fd = (int)WF_ARG0(f);
	long ret;

	if (!is_wanted())
		return lx_blocking(f, false);
	if (wf_fd_is_direct(fd))
		return read_from_disk(f, false);
	/* A vector in parts would have to be taken apart; a negative position is an error of the program's. */
	if ((f->nr != __NR_read && f->nr != __NR_pread64) || wf_fd_lacks_nowait(fd) ||
	    (f->nr == __NR_pread64 && (int64_t)WF_ARG3(f) < 0))
		return lx_blocking(f, false);
	ret = try_page_cache(f);
	if (ret == -EOPNOTSUPP) {
		wf_fd_note_lacks_nowait(fd);
		return lx_blocking(f, false);
	}
	if (ret == -EAGAIN)
		return read_from_disk(f, true);
	return ret > 0 && (size_t)ret < WF_ARG2(f) ? read_rest(f, (size_t)ret) : ret;
}

long sysc_file_write(struct wf_frame *f)
{
	return is_wanted() && wf_fd_is_direct((int)WF_ARG0(f)) ? lx_disk(f) : lx_blocking(f, false);
}

/* fsync, unlink and the like: they wait for the disk more often than not. */
long sysc_disk(struct wf_frame *f)
{
	return is_wanted() ? lx_disk(f) : lx_blocking(f, false);
}
