// SPDX-License-Identifier: Apache-2.0
/* The ends that the calls of scope_calls.c and scope_partial.c wait for: a process makes them once. */
#ifndef WEFT_TESTS_NATIVE_SCOPE_CALL_ENDS_H
#define WEFT_TESTS_NATIVE_SCOPE_CALL_ENDS_H

#include "native.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weft/weft.h>

#define SOON (5 * WEFT_MS)

/* The calls wait for these, made once. Nothing ever comes. */
static int empty_pipe[2], full_pipe[2], tcp[2], unix_empty[2], unix_full[2], dgram[2];
static int listener, full_listener, set;
static int event_fd, timer_fd, inotify_fd, signal_fd, locked[2], file_fd;
static int sem_id, msg_id, full_msg_id;
static struct sockaddr_in full_address;
static mqd_t empty_queue, full_queue;
static char fifo[64], lock_path[64];
static pid_t child;
static pthread_t endless;
static sem_t *shared_sem;
static char buf[65536];

static inline long ret_of(long ret)
{
	return ret < 0 ? -errno : ret;
}

static inline sigset_t usr2(void)
{
	sigset_t set_;

	sigemptyset(&set_);
	sigaddset(&set_, SIGUSR2);
	return set_;
}

static inline void fill(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, buf, sizeof(buf)) > 0 || write(fd, buf, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static inline void make_tcp(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int extra;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	bind(listener, (void *)&at, sizeof(at));
	listen(listener, 4);
	getsockname(listener, (void *)&at, &len);
	tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
	connect(tcp[0], (void *)&at, sizeof(at));
	tcp[1] = accept(listener, NULL, NULL);
	/* As many connections as a listener keeps, and more of them wait. */
	full_address = (struct sockaddr_in){ .sin_family = AF_INET,
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	full_listener = socket(AF_INET, SOCK_STREAM, 0);
	bind(full_listener, (void *)&full_address, sizeof(full_address));
	listen(full_listener, 0);
	getsockname(full_listener, (void *)&full_address, &len);
	for (int i = 0; i < 4; i++) {
		extra = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(extra, (void *)&full_address, sizeof(full_address));
	}
}

static inline void *never_ends(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static inline void make_queues(void)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 8 };
	struct {
		long type;
		char text[8192];
	} m = { .type = 1 };
	char name[64];

	snprintf(name, sizeof(name), "/weft-scope-%d", getpid());
	empty_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	mq_unlink(name);
	full_queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	mq_unlink(name);
	if (full_queue >= 0)
		mq_send(full_queue, buf, 1, 0);
	sem_id = semget(IPC_PRIVATE, 1, 0600);
	msg_id = msgget(IPC_PRIVATE, 0600);
	full_msg_id = msgget(IPC_PRIVATE, 0600);
	while (msgsnd(full_msg_id, &m, sizeof(m.text), IPC_NOWAIT) == 0)
		;
}

static inline void make_files(void)
{
	snprintf(fifo, sizeof(fifo), "/tmp/weft-scope-fifo-%d", getpid());
	mkfifo(fifo, 0600);
	snprintf(lock_path, sizeof(lock_path), "/tmp/weft-scope-lock-%d", getpid());
	for (int i = 0; i < 2; i++)
		locked[i] = open(lock_path, O_RDWR | O_CREAT, 0600);
	flock(locked[0], LOCK_EX);
	fcntl(locked[0], F_OFD_SETLKW, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET });
	file_fd = memfd_create("file", 0);
	(void)!write(file_fd, buf, sizeof(buf));
}

static inline void unmake_all(void)
{
	kill(child, SIGKILL);
	unlink(fifo);
	unlink(lock_path);
	semctl(sem_id, 0, IPC_RMID);
	msgctl(msg_id, IPC_RMID, NULL);
	msgctl(full_msg_id, IPC_RMID, NULL);
}

static inline void make_all(void)
{
	static bool is_made;
	sigset_t s = usr2();

	if (is_made)
		return;
	is_made = true;
	pthread_sigmask(SIG_BLOCK, &s, NULL);
	(void)!pipe(empty_pipe);
	(void)!pipe(full_pipe);
	fill(full_pipe[1]);
	socketpair(AF_UNIX, SOCK_STREAM, 0, unix_empty);
	socketpair(AF_UNIX, SOCK_STREAM, 0, unix_full);
	fill(unix_full[1]);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, dgram);
	fcntl(dgram[1], F_SETFL, O_NONBLOCK);
	while (send(dgram[1], buf, 1, 0) > 0)
		;
	fcntl(dgram[1], F_SETFL, 0);
	make_tcp();
	shared_sem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sem_init(shared_sem, 1, 0);
	make_files();
	make_queues();
	set = epoll_create1(0);
	epoll_ctl(set, EPOLL_CTL_ADD, empty_pipe[0], &(struct epoll_event){ .events = EPOLLIN });
	event_fd = eventfd(0, 0);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, 0);
	inotify_fd = inotify_init();
	signal_fd = signalfd(-1, &s, 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	atexit(unmake_all);
	pthread_create(&endless, NULL, never_ends, NULL);
}

#define IF_REACHED()                                                                               \
	do {                                                                                       \
		if (is_native_run())                                                               \
			SKIP("scopes do not reach into libc in native mode");                      \
		make_all();                                                                        \
	} while (0)

#endif
