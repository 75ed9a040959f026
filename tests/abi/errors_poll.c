// SPDX-License-Identifier: Apache-2.0
/* poll, select and epoll in all forms: what they return for good and bad arguments. */
#include "show.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

static void *calls(void *arg)
{
	struct pollfd p[2] = { { -1, POLLIN, 0 }, { 1000, POLLIN, 0 } };
	struct timespec ts = { 0, 1000 }, bad = { 0, 1000000000 }, neg = { -1, 0 }, zero = { 0, 0 };
	int fds[2];
	sigset_t set;
	sigemptyset(&set);
	fd_set r, w;
	struct timeval tv = { 0, 1000 }, badtv = { -1, 1000000 }, negtv = { -1, 0 };
	SHOW(pipe(fds));
	SHOW(CALL(poll, p, 1, 0));
	SHOW(CALL(poll, p, 2, 0));
	printf("rev %x %x\n", p[0].revents, p[1].revents);
	SHOW(CALL(poll, p, 2, -1));
	SHOW(CALL(poll, BAD, 1, 0));
	SHOW(CALL(poll, NULL, 0, 0));
	SHOW(CALL(poll, NULL, 0, 1));
	SHOW(CALL(poll, p, -1, 0));
	SHOW(CALL(poll, p, 2000000, 0));
	SHOW(CALL(poll, KERNEL, 1, -1));
	SHOW(CALL(poll, NULL, 1, 0));
	p[0].fd = fds[0];
	SHOW(CALL(poll, p, 1, 0));
	SHOW(CALL(poll, p, 1, 1));
	p[0].fd = fds[1];
	p[0].events = POLLOUT;
	SHOW(CALL(poll, p, 1, -1));
	printf("rev %x\n", p[0].revents);
	p[0].events = 0;
	SHOW(CALL(poll, p, 1, 0));
	p[0].fd = fds[0];
	p[0].events = POLLIN | POLLRDNORM | POLLPRI | POLLRDHUP;
	SHOW(CALL(poll, p, 1, 1));
	SHOW(CALL(ppoll, p, 1, &ts, NULL, 8));
	SHOW(CALL(ppoll, p, 1, &bad, NULL, 8));
	SHOW(CALL(ppoll, p, 1, &neg, NULL, 8));
	SHOW(CALL(ppoll, p, 1, BAD, NULL, 8));
	SHOW(CALL(ppoll, p, 1, &ts, BAD, 8));
	SHOW(CALL(ppoll, p, 1, &ts, &set, 4));
	SHOW(CALL(ppoll, p, 1, &ts, &set, 8));
	SHOW(CALL(ppoll, p, 1, &zero, NULL, 77));
	SHOW(CALL(ppoll, p, 1, &ts, NULL, 8));
	printf("left %ld %ld\n", ts.tv_sec, ts.tv_nsec);
	FD_ZERO(&r);
	FD_ZERO(&w);
	SHOW(CALL(select, 0, NULL, NULL, NULL, &tv));
	printf("tv %ld\n", (long)tv.tv_usec);
	tv.tv_usec = 1000;
	SHOW(CALL(select, -1, NULL, NULL, NULL, &tv));
	SHOW(CALL(select, 1, BAD, NULL, NULL, &tv));
	SHOW(CALL(select, 0, BAD, NULL, NULL, &tv));
	tv.tv_usec = 1000;
	SHOW(CALL(select, 0, NULL, NULL, NULL, BAD));
	SHOW(CALL(select, 0, NULL, NULL, NULL, &badtv));
	SHOW(CALL(select, 0, NULL, NULL, NULL, &negtv));
	FD_SET(fds[0], &r);
	FD_SET(fds[1], &w);
	SHOW(CALL(select, fds[1] + 1, &r, &w, NULL, NULL));
	printf("r %d w %d\n", FD_ISSET(fds[0], &r), FD_ISSET(fds[1], &w));
	FD_ZERO(&r);
	FD_SET(900, &r);
	FD_ZERO(&r);
	FD_SET(fds[0], &r);
	tv.tv_usec = 100;
	SHOW(CALL(select, 1 << 30, &r, NULL, NULL, &tv));
	SHOW(CALL(select, 0, NULL, NULL, NULL, &(struct timeval){ -1, 1000001 }));

	struct {
		const void *s;
		size_t n;
	} six = { &set, 8 }, six4 = { &set, 4 }, sixbad = { BAD, 8 };
	ts = (struct timespec){ 0, 1000 };
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &ts, NULL));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &ts, BAD));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &ts, &six));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &ts, &six4));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &ts, &sixbad));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &bad, NULL));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, &neg, NULL));
	SHOW(CALL(pselect6, -1, NULL, NULL, NULL, &ts, NULL));
	SHOW(CALL(pselect6, 0, NULL, NULL, NULL, BAD, NULL));
	struct epoll_event ev[4] = { { 0 } };
	int ep = epoll_create1(0);
	SHOW(CALL(epoll_wait, ep, ev, 4, 0));
	SHOW(CALL(epoll_wait, ep, ev, 0, 0));
	SHOW(CALL(epoll_wait, ep, ev, -1, 0));
	SHOW(CALL(epoll_wait, ep, ev, INT_MAX, 0));
	SHOW(CALL(epoll_wait, ep, BAD, 1, 0));
	SHOW(CALL(epoll_wait, ep, KERNEL, 1, 0));
	SHOW(CALL(epoll_wait, 1000, ev, 1, 0));
	SHOW(CALL(epoll_wait, fds[0], ev, 1, 0));
	SHOW(CALL(epoll_wait, ep, ev, 4, 1));
	SHOW(CALL(epoll_pwait, ep, ev, 4, 0, NULL, 8));
	SHOW(CALL(epoll_pwait, ep, ev, 4, 0, &set, 4));
	SHOW(CALL(epoll_pwait, ep, ev, 4, 0, BAD, 8));
	SHOW(CALL(epoll_pwait, ep, ev, 4, 0, &set, 8));
	SHOW(CALL(epoll_pwait2, ep, ev, 4, &ts, NULL, 8));
	SHOW(CALL(epoll_pwait2, ep, ev, 4, &bad, NULL, 8));
	SHOW(CALL(epoll_pwait2, ep, ev, 4, &neg, NULL, 8));
	SHOW(CALL(epoll_pwait2, ep, ev, 4, BAD, NULL, 8));
	SHOW(CALL(epoll_pwait2, ep, ev, 4, &ts, &set, 4));
	ev[0].events = EPOLLOUT;
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], ev));
	SHOW(CALL(epoll_wait, ep, ev, 4, -1));
	SHOW(CALL(epoll_wait, ep, BAD, 4, -1));
	SHOW(CALL(epoll_wait, ep, BAD, 4, 0));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], ev));
	SHOW(epoll_ctl(ep, EPOLL_CTL_ADD, ep, ev));
	SHOW(epoll_ctl(ep, EPOLL_CTL_DEL, 1000, ev));
	SHOW(epoll_ctl(ep, 9, fds[1], ev));
	SHOW(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], ev));
	SHOW(epoll_create(0));
	SHOW(epoll_create1(77));
	SHOW(eventfd(0, 77));
	SHOW(timerfd_gettime(fds[0], &(struct itimerspec){ 0 }));
	SHOW(timerfd_gettime(1000, &(struct itimerspec){ 0 }));
	SHOW(timerfd_settime(fds[0], 0, &(struct itimerspec){ 0 }, NULL));
	SHOW(timerfd_create(77, 0));
	SHOW(timerfd_create(1, 77));
	SHOW(signalfd(-1, &set, 77));
	SHOW(CALL(signalfd4, -1, &set, 4, 0));
	SHOW(CALL(signalfd4, 77, &set, 8, 0));
	SHOW(CALL(signalfd4, fds[0], &set, 8, 0));
	SHOW(CALL(signalfd4, -1, BAD, 8, 0));
	close(ep);
	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
