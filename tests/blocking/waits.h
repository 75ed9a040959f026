// SPDX-License-Identifier: Apache-2.0
/*
 * Every call that can wait for ever, each as a function that is named after it and makes one such wait.
 *
 * Included by: waits.c, ends.c, which say what a call that fails means: fails().
 */
#ifndef WEFT_TESTS_BLOCKING_WAITS_H
#define WEFT_TESTS_BLOCKING_WAITS_H

#include <aio.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/weft-waits-XXXXXX";
static char block[1 << 16];
static pid_t child;
static int msg_queue, full_msg_queue, sem_set;

struct msg {
	long type;
	char text[1024];
};

static void fails(const char *what);

static int must(int ret, const char *what)
{
	if (ret < 0)
		fails(what);
	return ret;
}
#define MUST(call) must((int)(call), #call)

static const char *path_of(const char *name)
{
	static __thread char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

/* The end to read from an empty pipe. */
static int empty_pipe(void)
{
	int fds[2];

	MUST(pipe(fds));
	return fds[0];
}

/* The end to write to a full one. */
static int full_pipe(void)
{
	int fds[2];

	MUST(pipe(fds));
	MUST(fcntl(fds[1], F_SETFL, O_NONBLOCK));
	while (write(fds[1], block, sizeof(block)) > 0)
		;
	MUST(fcntl(fds[1], F_SETFL, 0));
	return fds[1];
}

static int empty_socket(int type)
{
	int fds[2];

	MUST(socketpair(AF_UNIX, type, 0, fds));
	return fds[0];
}

static int full_socket(void)
{
	int fd = empty_socket(SOCK_STREAM);

	while (send(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static int bound_socket(int type, struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int fd = MUST(socket(AF_INET, type, 0));

	*addr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	MUST(bind(fd, (struct sockaddr *)addr, sizeof(*addr)));
	MUST(getsockname(fd, (struct sockaddr *)addr, &len));
	return fd;
}

static int tcp_listener(void)
{
	struct sockaddr_in addr;
	int fd = bound_socket(SOCK_STREAM, &addr);

	MUST(listen(fd, 4));
	return fd;
}

static int tcp_connection(void)
{
	struct sockaddr_in addr;
	int listener = bound_socket(SOCK_STREAM, &addr), fd = MUST(socket(AF_INET, SOCK_STREAM, 0));

	MUST(listen(listener, 4));
	MUST(connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	return fd;
}

static int some_file(void)
{
	int fd = MUST(open(path_of("file"), O_RDWR | O_CREAT, 0600));

	MUST(ftruncate(fd, 1 << 24));
	return fd;
}

static void in_read(void)
{
	MUST(read(empty_pipe(), block, 1));
}
static void in_write(void)
{
	MUST(write(full_pipe(), block, 1));
}

static struct iovec vec[2] = { { block, 10 }, { block + 10, 10 } };

static void in_readv(void)
{
	MUST(readv(empty_pipe(), vec, 2));
}
static void in_writev(void)
{
	MUST(writev(full_pipe(), vec, 2));
}
static void in_preadv2(void)
{
	MUST(preadv2(empty_pipe(), vec, 2, -1, 0));
}
static void in_pwritev2(void)
{
	MUST(pwritev2(full_pipe(), vec, 2, -1, 0));
}
static void in_eventfd(void)
{
	MUST(read(eventfd(0, 0), block, 8));
}
static void in_timerfd(void)
{
	MUST(read(timerfd_create(CLOCK_MONOTONIC, 0), block, 8));
}
static void in_inotify(void)
{
	MUST(read(inotify_init(), block, sizeof(block)));
}

static void in_signalfd(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	MUST(read(signalfd(-1, &set, 0), block, 1024));
}

static void in_tty(void)
{
	int master, slave;

	MUST(openpty(&master, &slave, NULL, NULL, NULL));
	MUST(read(slave, block, 1));
}

static void in_pty_master(void)
{
	int master, slave;

	MUST(openpty(&master, &slave, NULL, NULL, NULL));
	MUST(read(master, block, 1));
}

static void in_open_fifo(void)
{
	MUST(mkfifo(path_of("fifo"), 0600));
	MUST(open(path_of("fifo"), O_RDONLY));
}

static void in_recv(void)
{
	MUST(recv(tcp_connection(), block, 10, 0));
}
static void in_recv_dgram(void)
{
	MUST(recv(empty_socket(SOCK_DGRAM), block, 10, 0));
}
static void in_recv_all(void)
{
	MUST(recv(tcp_connection(), block, 10, MSG_WAITALL));
}

static void in_recvmsg(void)
{
	struct msghdr m = { .msg_iov = vec, .msg_iovlen = 2 };

	MUST(recvmsg(empty_socket(SOCK_STREAM), &m, 0));
}

static void in_recvmsg_all(void)
{
	struct msghdr m = { .msg_iov = vec, .msg_iovlen = 2 };

	MUST(recvmsg(empty_socket(SOCK_STREAM), &m, MSG_WAITALL));
}

static void in_recvmmsg(void)
{
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = vec, .msg_iovlen = 2 } },
				{ .msg_hdr = { .msg_iov = vec, .msg_iovlen = 2 } } };
	struct sockaddr_in addr;

	MUST(recvmmsg(bound_socket(SOCK_DGRAM, &addr), m, 2, 0, NULL));
}

static void in_send(void)
{
	MUST(send(full_socket(), block, 10, 0));
}

static void in_sendmsg(void)
{
	struct msghdr m = { .msg_iov = vec, .msg_iovlen = 2 };

	MUST(sendmsg(full_socket(), &m, 0));
}

static void in_sendmmsg(void)
{
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = vec, .msg_iovlen = 2 } },
				{ .msg_hdr = { .msg_iov = vec, .msg_iovlen = 2 } } };

	MUST(sendmmsg(full_socket(), m, 2, 0));
}

static void in_accept(void)
{
	MUST(accept(tcp_listener(), NULL, NULL));
}

/* Nobody accepts: what the queue has no room for gets no answer, as from a host that is not there. */
static void in_connect(void)
{
	struct sockaddr_in addr;

	MUST(listen(bound_socket(SOCK_STREAM, &addr), 0));
	for (;;)
		MUST(connect(MUST(socket(AF_INET, SOCK_STREAM, 0)), (struct sockaddr *)&addr,
			     sizeof(addr)));
}

static void in_connect_unix(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int listener = MUST(socket(AF_UNIX, SOCK_STREAM, 0));

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/socket", dir);
	MUST(bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(listen(listener, 0));
	for (;;)
		MUST(connect(MUST(socket(AF_UNIX, SOCK_STREAM, 0)), (struct sockaddr *)&addr,
			     sizeof(addr)));
}

static void in_send_to_unix(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/datagrams", dir);
	MUST(bind(MUST(socket(AF_UNIX, SOCK_DGRAM, 0)), (struct sockaddr *)&addr, sizeof(addr)));
	for (;;)
		MUST(sendto(fd, block, 1, 0, (struct sockaddr *)&addr, sizeof(addr)));
}

static void in_recv_low_mark(void)
{
	int fds[2], mark = 2;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	MUST(setsockopt(fds[0], SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof(mark)));
	MUST(write(fds[1], block, 1));
	MUST(recv(fds[0], block, 2, 0));
}

static void in_splice(void)
{
	MUST(splice(empty_pipe(), NULL, full_pipe(), NULL, 10, 0));
}
static void in_tee(void)
{
	MUST(tee(empty_pipe(), full_pipe(), 10, 0));
}
static void in_vmsplice(void)
{
	MUST(vmsplice(full_pipe(), vec, 2, 0));
}
static void in_sendfile(void)
{
	MUST(sendfile(full_socket(), some_file(), NULL, 1 << 20));
}

static void in_sendfile_part(void)
{
	MUST(sendfile(empty_socket(SOCK_STREAM), some_file(), NULL, 1 << 24));
}

static void in_poll(void)
{
	struct pollfd p = { .fd = empty_pipe(), .events = POLLIN };

	MUST(poll(&p, 1, -1));
}

static void in_select(void)
{
	fd_set set;
	int fd = empty_pipe();

	FD_ZERO(&set);
	FD_SET(fd, &set);
	MUST(select(fd + 1, &set, NULL, NULL, NULL));
}

static void in_epoll(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int set = MUST(epoll_create1(0));

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, empty_pipe(), &ev));
	MUST(epoll_wait(set, &ev, 1, -1));
}

static void in_flock(void)
{
	int mine = MUST(open(path_of("flock"), O_RDWR | O_CREAT, 0600));

	MUST(flock(mine, LOCK_EX));
	MUST(flock(MUST(open(path_of("flock"), O_RDWR)), LOCK_EX));
}

static void in_ofd_lock(void)
{
	struct flock lock = { .l_type = F_WRLCK };

	MUST(fcntl(MUST(open(path_of("ofd"), O_RDWR | O_CREAT, 0600)), F_OFD_SETLK, &lock));
	MUST(fcntl(MUST(open(path_of("ofd"), O_RDWR)), F_OFD_SETLKW, &lock));
}

static void in_wait4(void)
{
	MUST(waitpid(child, NULL, 0));
}

static void in_waitid(void)
{
	siginfo_t info;

	MUST(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

/* As unique as the folder: other programs of this header may run beside this one. */
static mqd_t queue(const char *suffix)
{
	struct mq_attr attr = { .mq_maxmsg = 1, .mq_msgsize = 16 };
	char name[sizeof(dir) + 8];
	mqd_t mq;

	snprintf(name, sizeof(name), "%s%s", strrchr(dir, '/'), suffix);
	mq = MUST(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr));
	mq_unlink(name);
	return mq;
}

static void in_mq_receive(void)
{
	MUST(mq_receive(queue("-r"), block, 16, NULL));
}

static void in_mq_send(void)
{
	mqd_t mq = queue("-s");

	MUST(mq_send(mq, block, 1, 0));
	MUST(mq_send(mq, block, 1, 0));
}

static void in_msgrcv(void)
{
	struct msg m;

	MUST(msgrcv(msg_queue, &m, sizeof(m.text), 0, 0));
}

static void in_msgsnd(void)
{
	struct msg m = { .type = 1 };

	for (;;)
		MUST(msgsnd(full_msg_queue, &m, sizeof(m.text), 0));
}

static void in_semop(void)
{
	struct sembuf op = { .sem_op = -1 };

	MUST(semop(sem_set, &op, 1));
}

static void in_sleep(void)
{
	sleep(1000);
}

static void in_sigwait(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &sig);
}

static void in_pause(void)
{
	pause();
}

static void in_mutex(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&m);
	pthread_mutex_lock(&m);
}

static void in_shared_futex(void)
{
	uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);

	syscall(SYS_futex, word, 0 /* FUTEX_WAIT */, 0, NULL, NULL, 0);
}

static void in_shared_vector(void)
{
	uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			      0);
	struct {
		uint64_t val, addr;
		uint32_t flags, reserved;
	} item = { .addr = (uintptr_t)word, .flags = 2 /* 32 bits */ };

	if (syscall(449 /* futex_waitv */, &item, 1, 0, NULL, 0) == -1 && errno == ENOSYS)
		in_shared_futex(); /* before Linux 5.16 */
}

static void in_aio_suspend(void)
{
	struct aiocb cb = { .aio_fildes = empty_pipe(), .aio_buf = block, .aio_nbytes = 1 };
	const struct aiocb *list[] = { &cb };

	MUST(aio_read(&cb));
	MUST(aio_suspend(list, 1, NULL));
}

static const struct {
	const char *name;
	void (*fn)(void);
} calls[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, in_##name                                                                   \
	}
	CALL(read),         CALL(write),         CALL(readv),        CALL(writev),
	CALL(preadv2),      CALL(pwritev2),      CALL(eventfd),      CALL(timerfd),
	CALL(inotify),      CALL(signalfd),      CALL(tty),          CALL(pty_master),
	CALL(open_fifo),    CALL(recv),          CALL(recv_dgram),   CALL(recv_all),
	CALL(recvmsg),      CALL(recvmsg_all),   CALL(recvmmsg),     CALL(send),
	CALL(sendmsg),      CALL(sendmmsg),      CALL(accept),       CALL(connect),
	CALL(connect_unix), CALL(splice),        CALL(tee),          CALL(vmsplice),
	CALL(sendfile),     CALL(sendfile_part), CALL(poll),         CALL(select),
	CALL(epoll),        CALL(flock),         CALL(ofd_lock),     CALL(wait4),
	CALL(waitid),       CALL(mq_receive),    CALL(mq_send),      CALL(msgrcv),
	CALL(msgsnd),       CALL(semop),         CALL(sleep),        CALL(sigwait),
	CALL(pause),        CALL(mutex),         CALL(send_to_unix), CALL(recv_low_mark),
	CALL(shared_futex), CALL(shared_vector), CALL(aio_suspend),
};
#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* SIGUSR1 and SIGUSR2 are blocked for all threads to come. */
static void prepare(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	memcpy(dir, "/tmp/weft-waits-XXXXXX", sizeof(dir));
	if (!mkdtemp(dir))
		fails("mkdtemp");
	child = MUST(fork());
	if (!child)
		for (;;)
			pause();
	msg_queue = MUST(msgget(IPC_PRIVATE, 0600));
	full_msg_queue = MUST(msgget(IPC_PRIVATE, 0600));
	sem_set = MUST(semget(IPC_PRIVATE, 1, 0600));
}

static void clean_up(void)
{
	static const char *const files[] = {
		"file", "fifo", "socket", "datagrams", "flock", "ofd"
	};

	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	msgctl(msg_queue, IPC_RMID, NULL);
	msgctl(full_msg_queue, IPC_RMID, NULL);
	semctl(sem_set, 0, IPC_RMID);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		unlink(path_of(files[i]));
	rmdir(dir);
}

#endif
