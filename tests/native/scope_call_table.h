// SPDX-License-Identifier: Apache-2.0
/* Every call that a signal can end: the table of signal(7), "Interruption of system calls". See scope_calls.c. */
#ifndef WEFT_TESTS_NATIVE_SCOPE_CALL_TABLE_H
#define WEFT_TESTS_NATIVE_SCOPE_CALL_TABLE_H

#include "scope_call_ends.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

static inline long call_read(void)
{
	return ret_of(read(empty_pipe[0], buf, 1));
}

static inline long call_readv(void)
{
	struct iovec v = { buf, 1 };

	return ret_of(readv(empty_pipe[0], &v, 1));
}

static inline long call_write(void)
{
	return ret_of(write(full_pipe[1], buf, 1));
}

static inline long call_writev(void)
{
	struct iovec v = { buf, 1 };

	return ret_of(writev(full_pipe[1], &v, 1));
}

static inline long call_read_eventfd(void)
{
	return ret_of(read(event_fd, buf, 8));
}

static inline long call_read_timerfd(void)
{
	return ret_of(read(timer_fd, buf, 8));
}

static inline long call_read_inotify(void)
{
	return ret_of(read(inotify_fd, buf, 4096));
}

static inline long call_read_signalfd(void)
{
	return ret_of(read(signal_fd, buf, 4096));
}

static inline long call_recv(void)
{
	return ret_of(recv(tcp[0], buf, 1, 0));
}

static inline long call_recv_all(void)
{
	return ret_of(recv(unix_empty[0], buf, 8, MSG_WAITALL));
}

static inline long call_recv_peek_all(void)
{
	return ret_of(recv(tcp[0], buf, 8, MSG_WAITALL | MSG_PEEK));
}

static inline long call_recvmsg(void)
{
	struct iovec v = { buf, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return ret_of(recvmsg(tcp[0], &m, 0));
}

static inline long call_recvmmsg(void)
{
	struct iovec v = { buf, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };

	return ret_of(recvmmsg(unix_empty[0], &m, 1, 0, NULL));
}

static inline long call_send(void)
{
	return ret_of(send(unix_full[1], buf, 1, 0));
}

static inline long call_send_dgram(void)
{
	return ret_of(send(dgram[1], buf, 1, 0));
}

static inline long call_sendmsg(void)
{
	struct iovec v = { buf, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return ret_of(sendmsg(unix_full[1], &m, 0));
}

static inline long call_accept(void)
{
	return ret_of(accept(listener, NULL, NULL));
}

static inline long call_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	long ret = ret_of(connect(fd, (void *)&full_address, sizeof(full_address)));

	close(fd);
	return ret;
}

static inline long call_poll(void)
{
	struct pollfd p = { empty_pipe[0], POLLIN, 0 };

	return ret_of(poll(&p, 1, -1));
}

static inline long call_ppoll(void)
{
	struct pollfd p = { empty_pipe[0], POLLIN, 0 };
	const struct timespec day = { 86400, 0 };
	sigset_t none;

	sigemptyset(&none);
	return ret_of(ppoll(&p, 1, &day, &none));
}

static inline long call_select(void)
{
	struct timeval day = { 86400, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(empty_pipe[0], &in);
	return ret_of(select(empty_pipe[0] + 1, &in, NULL, NULL, &day));
}

static inline long call_pselect(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ret_of(pselect(0, NULL, NULL, NULL, NULL, &none));
}

static inline long call_epoll_wait(void)
{
	struct epoll_event e;

	return ret_of(epoll_wait(set, &e, 1, -1));
}

static inline long call_epoll_pwait(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	return ret_of(epoll_pwait(set, &e, 1, 86400000, &none));
}

static inline long call_nanosleep(void)
{
	const struct timespec day = { 86400, 0 };
	struct timespec left = { 0, 0 };
	long ret = ret_of(nanosleep(&day, &left));

	CHECK(left.tv_sec > 86000);
	return ret;
}

static inline long call_clock_nanosleep(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	day.tv_sec += 86400;
	return -clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &day, NULL);
}

static inline long call_clock_nanosleep_cpu(void)
{
	const struct timespec day = { 86400, 0 };

	return -clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &day, NULL);
}

static inline long call_weft_sleep(void)
{
	return weft_sleep_until(weft_now() + 86400 * WEFT_SEC);
}

static inline long call_waitpid(void)
{
	return ret_of(waitpid(child, NULL, 0));
}

static inline long call_waitid(void)
{
	siginfo_t info;

	return ret_of(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

static inline long call_flock(void)
{
	return ret_of(flock(locked[1], LOCK_EX));
}

static inline long call_fcntl_lock(void)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return ret_of(fcntl(locked[1], F_OFD_SETLKW, &l));
}

static inline long call_open_fifo(void)
{
	return ret_of(open(fifo, O_RDONLY));
}

static inline long call_semop(void)
{
	struct sembuf op = { 0, -1, 0 };

	return ret_of(semop(sem_id, &op, 1));
}

static inline long call_semtimedop(void)
{
	const struct timespec day = { 86400, 0 };
	struct sembuf op = { 0, -1, 0 };

	return ret_of(semtimedop(sem_id, &op, 1, &day));
}

static inline long call_msgrcv(void)
{
	return ret_of(msgrcv(msg_id, buf, 8, 0, 0));
}

static inline long call_msgsnd(void)
{
	struct {
		long type;
		char text[8192];
	} m = { .type = 1 };

	return ret_of(msgsnd(full_msg_id, &m, sizeof(m.text), 0));
}

static inline long call_mq_receive(void)
{
	return ret_of(mq_receive(empty_queue, buf, sizeof(buf), NULL));
}

static inline long call_mq_send(void)
{
	return ret_of(mq_send(full_queue, buf, 1, 0));
}

static inline long call_pause(void)
{
	return ret_of(pause());
}

static inline long call_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ret_of(sigsuspend(&none));
}

static inline long call_sigwait(void)
{
	sigset_t s = usr2();
	int sig;

	return -sigwait(&s, &sig);
}

static inline long call_sigtimedwait(void)
{
	const struct timespec day = { 86400, 0 };
	sigset_t s = usr2();

	return ret_of(sigtimedwait(&s, NULL, &day));
}

static inline long call_splice(void)
{
	return ret_of(splice(empty_pipe[0], NULL, full_pipe[1], NULL, 1, 0));
}

static inline long call_sendfile(void)
{
	off_t at = 0;

	return ret_of(sendfile(unix_full[1], file_fd, &at, 4096));
}

static inline long call_cond_wait(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	long ret;

	pthread_mutex_lock(&lock);
	ret = -pthread_cond_wait(&cond, &lock);
	CHECK_EQ(pthread_mutex_trylock(&lock), EBUSY);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&cond);
	return ret;
}

static inline long call_cond_timedwait(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	struct timespec day;
	long ret;

	clock_gettime(CLOCK_REALTIME, &day);
	day.tv_sec += 86400;
	pthread_mutex_lock(&lock);
	ret = -pthread_cond_timedwait(&cond, &lock, &day);
	pthread_mutex_unlock(&lock);
	return ret;
}

static inline long call_sem_wait(void)
{
	sem_t sem;
	long ret;

	sem_init(&sem, 0, 0);
	ret = ret_of(sem_wait(&sem));
	sem_destroy(&sem);
	return ret;
}

/* Those that processes share wait in the kernel. */
static inline long call_cond_wait_shared(void)
{
	pthread_mutexattr_t lock_attr;
	pthread_condattr_t attr;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	long ret;

	pthread_mutexattr_init(&lock_attr);
	pthread_mutexattr_setpshared(&lock_attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&lock, &lock_attr);
	pthread_condattr_init(&attr);
	pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&cond, &attr);
	pthread_mutex_lock(&lock);
	ret = -pthread_cond_wait(&cond, &lock);
	CHECK_EQ(pthread_mutex_trylock(&lock), EBUSY);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&cond);
	pthread_mutex_destroy(&lock);
	return ret;
}

static inline long call_sem_wait_shared(void)
{
	return ret_of(sem_wait(shared_sem));
}

static inline long call_sem_timedwait_shared(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	day.tv_sec += 86400;
	return ret_of(sem_timedwait(shared_sem, &day));
}

static inline long call_join(void)
{
	return -pthread_join(endless, NULL);
}

static const struct call {
	const char *name;
	long (*make)(void);
	bool is_once; /* ETIMEDOUT whatever ended it, and no scope ends a second one */
} calls[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, call_##name, false                                                          \
	}
#define ONCE(name)                                                                                 \
	{                                                                                          \
#name, call_##name, true                                                           \
	}
	CALL(read),
	CALL(readv),
	CALL(write),
	CALL(writev),
	CALL(read_eventfd),
	CALL(read_timerfd),
	CALL(read_inotify),
	CALL(read_signalfd),
	CALL(recv),
	CALL(recv_all),
	CALL(recv_peek_all),
	CALL(recvmsg),
	CALL(recvmmsg),
	CALL(send),
	CALL(send_dgram),
	CALL(sendmsg),
	CALL(accept),
	CALL(connect),
	CALL(poll),
	CALL(ppoll),
	CALL(select),
	CALL(pselect),
	CALL(epoll_wait),
	CALL(epoll_pwait),
	CALL(nanosleep),
	CALL(clock_nanosleep),
	CALL(clock_nanosleep_cpu),
	CALL(weft_sleep),
	CALL(waitpid),
	CALL(waitid),
	CALL(flock),
	CALL(fcntl_lock),
	CALL(open_fifo),
	CALL(semop),
	CALL(semtimedop),
	CALL(msgrcv),
	CALL(msgsnd),
	CALL(mq_receive),
	CALL(mq_send),
	CALL(pause),
	CALL(sigsuspend),
	CALL(sigwait),
	CALL(sigtimedwait),
	CALL(splice),
	CALL(sendfile),
	ONCE(cond_wait),
	ONCE(cond_timedwait),
	ONCE(sem_wait),
	ONCE(cond_wait_shared),
	ONCE(sem_wait_shared),
	ONCE(sem_timedwait_shared),
	ONCE(join),
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

#endif
