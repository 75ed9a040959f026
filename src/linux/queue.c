// SPDX-License-Identifier: Apache-2.0
/*
 * Message queues and semaphores of POSIX and System V.
 *
 * A POSIX queue is a descriptor: an attempt with a time limit that is over does not wait, and the thread
 * parks until the queue is ready. System V knows no such thing: what cannot be done at once is waited for on
 * a kernel thread that has handed its worker on.
 */
#include "linux/call.h"
#include "linux/calls.h"
#include "linux/deadline.h"
#include "linux/fdwait.h"
#include "linux/procfile.h"
#include "linux/queue.h"
#include "sched/clock.h"

#include <linux/fcntl.h>
#include <linux/stat.h>
#include <sys/epoll.h>

#define CLOCK_REALTIME 0
#define IPC_NOWAIT 04000

/*
 * Notifications (mq_notify). The kernel sends none while it knows of a reader that waits, and one that parks it does not
 * know. So a reader waits for real while somebody has asked for one, which the queue's own text tells; and before a thread
 * of ours asks, those that are parked go over, and it waits until the kernel has them.
 *
 * Nobody is missed: a reader is on the list before it looks at nr_asking, under the lock, and before it looks at the text.
 * The thread that asks has counted itself, under the lock, before it walks the list, and leaves when the text tells of it.
 */
struct reader {
	struct wf_list link;
	struct lx_thread *t;
	int fd;       /* (q) */
	bool is_real; /* (q) */
};

static struct {
	struct wf_spin lock;
	struct wf_list list; /* (q) struct reader; .next NULL: none yet */
	uint32_t nr_asking;  /* (q) */
} readers;

#define TEXT_BYTES 128
#define LOOK_NS (100 * WF_US)
#define LIMIT_NS (500 * WF_MS) /* for all readers; without /proc nobody is ever seen to wait */

static struct wf_list *all_readers(void)
{
	if (!readers.list.next)
		wf_list_init(&readers.list);
	return &readers.list;
}

/* QSIZE:0 NOTIFY:0 SIGNO:0 NOTIFY_PID:0; a process that is not in our namespace has pid 0, but it asked for something. */
static bool has_notification(int fd)
{
	char text[TEXT_BYTES];
	bool is_behind_size = false;
	long n = sys4(__NR_pread64, fd, text, sizeof(text), 0);

	for (long i = 0; i < n; i++) {
		if (text[i] == ' ')
			is_behind_size = true;
		else if (is_behind_size && text[i] >= '1' && text[i] <= '9')
			return true;
	}
	return false;
}

/* True: the call is to be made for real. */
static bool begin_wait(struct reader *r, int fd)
{
	bool is_asked;

	wf_spin_lock(&readers.lock);
	if (!r->t) {
		r->t = lx_self();
		wf_list_push_tail(all_readers(), &r->link);
	}
	r->fd = fd;
	is_asked = readers.nr_asking;
	r->is_real = is_asked;
	wf_spin_unlock(&readers.lock);
	if (is_asked || !has_notification(fd))
		return is_asked;
	wf_spin_lock(&readers.lock);
	r->is_real = true;
	wf_spin_unlock(&readers.lock);
	return true;
}

static void end_wait(struct reader *r)
{
	if (!r->t)
		return;
	wf_spin_lock(&readers.lock);
	wf_list_remove(&r->link);
	wf_spin_unlock(&readers.lock);
}

/* Of the queue's file; 0: there is none. Those of other IPC namespaces are on other devices. */
static uint64_t queue_of(int fd)
{
	struct statx st = { 0 };

	if (sys5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st) < 0)
		return 0;
	return st.stx_ino ^ (uint64_t)st.stx_dev_minor << 40 ^ (uint64_t)st.stx_dev_major << 52;
}

/* The reader behind the first n of the list, or false: there are no more. */
static bool reader_at(uint32_t n, struct reader *out)
{
	bool found = false;

	wf_spin_lock(&readers.lock);
	for (struct wf_list *l = all_readers()->next; l != &readers.list && !found; l = l->next) {
		if (n--)
			continue;
		*out = *container_of(l, struct reader, link);
		found = true;
	}
	wf_spin_unlock(&readers.lock);
	return found;
}

static bool is_in_kernel(const struct reader *r)
{
	return r->is_real && lx_proc_state_in_call(r->t) == 'S';
}

/* Others run meanwhile: the reader may be queued behind us. */
static void nap(void)
{
	wf_park_begin(0, WF_WAIT_SLEEP, 0);
	(void)wf_park(wf_now() + LOOK_NS);
}

/* One that ends meanwhile moves the others up: who is missed so was behind it, and one that the kernel has is enough. */
static void send_readers_over(uint64_t queue)
{
	int64_t until = wf_now() + LIMIT_NS;
	struct reader r;

	for (uint32_t n = 0; reader_at(n, &r); n++)
		if (queue_of(r.fd) == queue && wf_fd_touch(r.fd))
			wf_fd_pass_on(r.fd, EPOLLIN);
	for (uint32_t n = 0; reader_at(n, &r); n++)
		while (queue_of(r.fd) == queue && !is_in_kernel(&r) && wf_now() < until) {
			nap();
			if (!reader_at(n, &r))
				return;
		}
}

long sysc_mq_notify(struct wf_frame *f)
{
	long ret;

	if (!WF_ARG1(f))
		return lx_blocking(f, false);
	wf_spin_lock(&readers.lock);
	readers.nr_asking++;
	wf_spin_unlock(&readers.lock);
	send_readers_over(queue_of((int)WF_ARG0(f)));
	ret = lx_blocking(f, false);
	wf_spin_lock(&readers.lock);
	readers.nr_asking--;
	wf_spin_unlock(&readers.lock);
	return ret;
}

void lx_queue_forget(void)
{
	__builtin_memset(&readers, 0, sizeof(readers));
}

static long wait_for_real(struct wf_frame *f, int fd)
{
	long args[6] = { fd, (long)WF_ARG1(f), (long)WF_ARG2(f), (long)WF_ARG3(f),
			 (long)WF_ARG4(f) };

	return lx_blocking_call((long)f->nr, args, true, LX_RESTART_SYS);
}

/* reader: NULL for who sends. */
static long wait_for_queue(struct wf_frame *f, uint32_t events, struct reader *reader)
{
	const struct __kernel_timespec past = { 0, 0 };
	struct lx_fdwait w;
	long ret;

	lx_fdwait_init(&w, (int)WF_ARG0(f), events);
	if (WF_ARG4(f)) {
		ret = lx_deadline_absolute((const void *)WF_ARG4(f), CLOCK_REALTIME, &w.deadline);
		if (ret < 0)
			return ret;
	}
	w.has_deadline = true; /* a queue that is O_NONBLOCK says EAGAIN itself */
	for (;;) {
		ret = LX_TRY(&w, sys5(f->nr, w.use.fd, WF_ARG1(f), WF_ARG2(f), WF_ARG3(f), &past));
		if (ret != -ETIMEDOUT || w.is_late)
			return lx_fdwait_done(&w, ret);
		if (reader && begin_wait(reader, w.use.fd))
			return lx_fdwait_done(&w, wait_for_real(f, w.use.fd));
		ret = lx_fdwait_park(&w);
		if (ret == -EINTR)
			ret = -ERESTARTSYS; /* the time limit is a point in time */
		if (ret == -EPERM)
			ret = wait_for_real(f, w.use.fd);
		if (ret)
			return lx_fdwait_done(&w, ret);
	}
}

long sysc_mq_timedsend(struct wf_frame *f)
{
	return wait_for_queue(f, EPOLLOUT, NULL);
}

long sysc_mq_timedreceive(struct wf_frame *f)
{
	struct reader reader = { 0 };
	long ret = wait_for_queue(f, EPOLLIN, &reader);

	end_wait(&reader);
	return ret;
}

long sysc_msgsnd(struct wf_frame *f)
{
	long ret = sys4(__NR_msgsnd, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), WF_ARG3(f) | IPC_NOWAIT);

	return ret == -EAGAIN && !(WF_ARG3(f) & IPC_NOWAIT) ? lx_blocking(f, true) : ret;
}

long sysc_msgrcv(struct wf_frame *f)
{
	long ret = sys5(__NR_msgrcv, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), WF_ARG3(f),
			WF_ARG4(f) | IPC_NOWAIT);

	return ret == -ENOMSG && !(WF_ARG4(f) & IPC_NOWAIT) ? lx_blocking(f, true) : ret;
}

/* IPC_NOWAIT is said per operation; no time at all says the same for all of them. */
long sysc_semop(struct wf_frame *f)
{
	const struct __kernel_timespec none = { 0, 0 };
	int64_t deadline;
	long ret = 0;

	if (f->nr == __NR_semtimedop && WF_ARG3(f))
		ret = lx_deadline_relative((const void *)WF_ARG3(f), &deadline);
	if (ret < 0)
		return ret;
	do
		ret = sys4(__NR_semtimedop, WF_ARG0(f), WF_ARG1(f), WF_ARG2(f), &none);
	while (ret == -EINTR); /* a kick: never restarted by the kernel */
	return ret == -EAGAIN ? lx_blocking(f, true) : ret;
}
