// SPDX-License-Identifier: Apache-2.0
/*
 * Every call that a signal can end, against every way in which a scope ends one. The table is the kernel's of signal(7),
 * "Interruption of system calls"; what no signal ends is in scope_rules.c.
 */
#include "native.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/scope.h>
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
static char buf[65536];

static long ret_of(long ret)
{
	return ret < 0 ? -errno : ret;
}

static long call_read(void)
{
	return ret_of(read(empty_pipe[0], buf, 1));
}

static long call_readv(void)
{
	struct iovec v = { buf, 1 };

	return ret_of(readv(empty_pipe[0], &v, 1));
}

static long call_write(void)
{
	return ret_of(write(full_pipe[1], buf, 1));
}

static long call_writev(void)
{
	struct iovec v = { buf, 1 };

	return ret_of(writev(full_pipe[1], &v, 1));
}

static long call_read_eventfd(void)
{
	return ret_of(read(event_fd, buf, 8));
}

static long call_read_timerfd(void)
{
	return ret_of(read(timer_fd, buf, 8));
}

static long call_read_inotify(void)
{
	return ret_of(read(inotify_fd, buf, 4096));
}

static long call_read_signalfd(void)
{
	return ret_of(read(signal_fd, buf, 4096));
}

static long call_recv(void)
{
	return ret_of(recv(tcp[0], buf, 1, 0));
}

static long call_recv_all(void)
{
	return ret_of(recv(unix_empty[0], buf, 8, MSG_WAITALL));
}

static long call_recv_peek_all(void)
{
	return ret_of(recv(tcp[0], buf, 8, MSG_WAITALL | MSG_PEEK));
}

static long call_recvmsg(void)
{
	struct iovec v = { buf, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return ret_of(recvmsg(tcp[0], &m, 0));
}

static long call_recvmmsg(void)
{
	struct iovec v = { buf, 1 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &v, .msg_iovlen = 1 } };

	return ret_of(recvmmsg(unix_empty[0], &m, 1, 0, NULL));
}

static long call_send(void)
{
	return ret_of(send(unix_full[1], buf, 1, 0));
}

static long call_send_dgram(void)
{
	return ret_of(send(dgram[1], buf, 1, 0));
}

static long call_sendmsg(void)
{
	struct iovec v = { buf, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };

	return ret_of(sendmsg(unix_full[1], &m, 0));
}

static long call_accept(void)
{
	return ret_of(accept(listener, NULL, NULL));
}

static long call_connect(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	long ret = ret_of(connect(fd, (void *)&full_address, sizeof(full_address)));

	close(fd);
	return ret;
}

static long call_poll(void)
{
	struct pollfd p = { empty_pipe[0], POLLIN, 0 };

	return ret_of(poll(&p, 1, -1));
}

static long call_ppoll(void)
{
	struct pollfd p = { empty_pipe[0], POLLIN, 0 };
	const struct timespec day = { 86400, 0 };
	sigset_t none;

	sigemptyset(&none);
	return ret_of(ppoll(&p, 1, &day, &none));
}

static long call_select(void)
{
	struct timeval day = { 86400, 0 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(empty_pipe[0], &in);
	return ret_of(select(empty_pipe[0] + 1, &in, NULL, NULL, &day));
}

static long call_pselect(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ret_of(pselect(0, NULL, NULL, NULL, NULL, &none));
}

static long call_epoll_wait(void)
{
	struct epoll_event e;

	return ret_of(epoll_wait(set, &e, 1, -1));
}

static long call_epoll_pwait(void)
{
	struct epoll_event e;
	sigset_t none;

	sigemptyset(&none);
	return ret_of(epoll_pwait(set, &e, 1, 86400000, &none));
}

static long call_nanosleep(void)
{
	const struct timespec day = { 86400, 0 };
	struct timespec left = { 0, 0 };
	long ret = ret_of(nanosleep(&day, &left));

	CHECK(left.tv_sec > 86000);
	return ret;
}

static long call_clock_nanosleep(void)
{
	struct timespec day;

	clock_gettime(CLOCK_REALTIME, &day);
	day.tv_sec += 86400;
	return -clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &day, NULL);
}

static long call_clock_nanosleep_cpu(void)
{
	const struct timespec day = { 86400, 0 };

	return -clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &day, NULL);
}

static long call_weft_sleep(void)
{
	return weft_sleep_until(weft_now() + 86400 * WEFT_SEC);
}

static long call_waitpid(void)
{
	return ret_of(waitpid(child, NULL, 0));
}

static long call_waitid(void)
{
	siginfo_t info;

	return ret_of(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
}

static long call_flock(void)
{
	return ret_of(flock(locked[1], LOCK_EX));
}

static long call_fcntl_lock(void)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return ret_of(fcntl(locked[1], F_OFD_SETLKW, &l));
}

static long call_open_fifo(void)
{
	return ret_of(open(fifo, O_RDONLY));
}

static long call_semop(void)
{
	struct sembuf op = { 0, -1, 0 };

	return ret_of(semop(sem_id, &op, 1));
}

static long call_semtimedop(void)
{
	const struct timespec day = { 86400, 0 };
	struct sembuf op = { 0, -1, 0 };

	return ret_of(semtimedop(sem_id, &op, 1, &day));
}

static long call_msgrcv(void)
{
	return ret_of(msgrcv(msg_id, buf, 8, 0, 0));
}

static long call_msgsnd(void)
{
	struct {
		long type;
		char text[8192];
	} m = { .type = 1 };

	return ret_of(msgsnd(full_msg_id, &m, sizeof(m.text), 0));
}

static long call_mq_receive(void)
{
	return ret_of(mq_receive(empty_queue, buf, sizeof(buf), NULL));
}

static long call_mq_send(void)
{
	return ret_of(mq_send(full_queue, buf, 1, 0));
}

static long call_pause(void)
{
	return ret_of(pause());
}

static long call_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	return ret_of(sigsuspend(&none));
}

static sigset_t usr2(void)
{
	sigset_t set_;

	sigemptyset(&set_);
	sigaddset(&set_, SIGUSR2);
	return set_;
}

static long call_sigwait(void)
{
	sigset_t s = usr2();
	int sig;

	return -sigwait(&s, &sig);
}

static long call_sigtimedwait(void)
{
	const struct timespec day = { 86400, 0 };
	sigset_t s = usr2();

	return ret_of(sigtimedwait(&s, NULL, &day));
}

static long call_splice(void)
{
	return ret_of(splice(empty_pipe[0], NULL, full_pipe[1], NULL, 1, 0));
}

static long call_sendfile(void)
{
	off_t at = 0;

	return ret_of(sendfile(unix_full[1], file_fd, &at, 4096));
}

static long call_cond_wait(void)
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

static long call_cond_timedwait(void)
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

static long call_sem_wait(void)
{
	sem_t sem;
	long ret;

	sem_init(&sem, 0, 0);
	ret = ret_of(sem_wait(&sem));
	sem_destroy(&sem);
	return ret;
}

static long call_join(void)
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
	ONCE(join),
};

#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

static void fill(int fd)
{
	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (write(fd, buf, sizeof(buf)) > 0 || write(fd, buf, 1) > 0)
		;
	fcntl(fd, F_SETFL, 0);
}

static void make_tcp(void)
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

static void *never_ends(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void make_queues(void)
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

static void make_files(void)
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

static void unmake_all(void)
{
	kill(child, SIGKILL);
	unlink(fifo);
	unlink(lock_path);
	semctl(sem_id, 0, IPC_RMID);
	msgctl(msg_id, IPC_RMID, NULL);
	msgctl(full_msg_id, IPC_RMID, NULL);
}

static void make_all(void)
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

static void say(const struct call *c, const char *how, long ret, long wanted)
{
	if (ret != wanted)
		tap_note("%s, %s: %ld instead of %ld", c->name, how, ret, wanted);
	CHECK(ret == wanted);
}

#define IF_REACHED()                                                                               \
	do {                                                                                       \
		if (is_native_run())                                                               \
			SKIP("scopes do not reach into libc in native mode");                      \
		make_all();                                                                        \
	} while (0)

/* Where a kernel lacks it, or a limit of the user's has it. */
static bool is_made(const struct call *c)
{
	if (c->make == call_mq_receive || c->make == call_mq_send)
		return empty_queue >= 0 && full_queue >= 0;
	return true;
}

#define EACH_CALL(c)                                                                               \
	for (const struct call *c = calls; c < calls + NR_CALLS; c++)                              \
		if (is_made(c))

TEST(a_call_that_would_wait_ends_at_once_when_the_deadline_has_passed)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_scope s;

		weft_scope_open(&s, WEFT_NOW, c->name);
		say(c, "deadline before", c->make(), -ETIMEDOUT);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
	}
}

TEST(a_call_that_waits_ends_when_the_deadline_comes)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time until = weft_now() + SOON;
		weft_scope s;

		weft_scope_open(&s, until, c->name);
		say(c, "deadline during", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= until);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
	}
}

TEST(every_call_ends_not_the_first_alone)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_scope s;

		if (c->is_once)
			continue;
		weft_scope_open(&s, weft_now() + WEFT_MS, c->name);
		for (int i = 0; i < 4; i++)
			say(c, "again", c->make(), -ETIMEDOUT);
		weft_scope_close(&s);
	}
}

TEST(a_call_waits_for_its_own_time_limit_where_that_is_shorter)
{
	struct pollfd p = { -1, 0, 0 };
	const struct timespec ms = { 0, 1000000 };
	sigset_t s2 = usr2();
	weft_scope s;

	IF_REACHED();
	weft_scope_open(&s, weft_now() + 60 * WEFT_SEC, "long");
	CHECK_EQ(poll(&p, 1, 1), 0);
	CHECK_EQ(nanosleep(&ms, NULL), 0);
	CHECK_EQ(ret_of(sigtimedwait(&s2, NULL, &ms)), -EAGAIN);
	CHECK_EQ(weft_scope_close(&s), 0);
}

static void *cancel(void *scope)
{
	weft_scope_cancel(scope);
	return NULL;
}

static void *cancel_later(void *scope)
{
	weft_sleep_until(weft_now() + WEFT_MS);
	weft_scope_cancel(scope);
	return NULL;
}

static void check_cancel(const struct call *c, void *(*canceller)(void *), const char *how)
{
	weft_scope s;
	pthread_t t;

	weft_scope_open(&s, WEFT_NEVER, c->name);
	pthread_create(&t, NULL, canceller, &s);
	say(c, how, c->make(), c->is_once ? -ETIMEDOUT : -ECANCELED);
	if (!c->is_once)
		say(c, how, c->make(), -ECANCELED);
	say(c, "its close", weft_scope_close(&s), -ECANCELED);
	pthread_join(t, NULL);
}

TEST(a_cancelled_call_ends_whenever_that_comes)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		check_cancel(c, cancel, "cancelled about now");
		check_cancel(c, cancel_later, "cancelled in a wait");
	}
}

TEST(a_shield_keeps_the_outer_scope_out)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time until = weft_now() + SOON;
		weft_scope s, shield;

		weft_scope_open(&s, WEFT_NEVER, c->name);
		weft_scope_cancel(&s);
		weft_scope_shield(&shield, until, "shield");
		say(c, "in a shield", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= until);
		say(c, "the shield's close", weft_scope_close(&shield), -ETIMEDOUT);
		say(c, "behind the shield", c->make(), c->is_once ? -ETIMEDOUT : -ECANCELED);
		say(c, "its close", weft_scope_close(&s), -ECANCELED);
	}
}

static int nr_handled;

static void count(int sig)
{
	__atomic_fetch_add(&nr_handled, 1, __ATOMIC_SEQ_CST);
}

struct sender {
	pthread_t to;
	bool is_over;
};

/* As often as it takes: the thread may not be in the call yet. */
static void *send_signals(void *arg)
{
	struct sender *s = arg;

	while (!__atomic_load_n(&s->is_over, __ATOMIC_SEQ_CST)) {
		pthread_kill(s->to, SIGUSR1);
		weft_sleep_until(weft_now() + WEFT_MS);
	}
	return NULL;
}

/* Some are never restarted: then it says EINTR, and the program would make it again. */
TEST(a_handler_with_SA_RESTART_runs_and_the_call_still_ends)
{
	struct sigaction act = { .sa_handler = count, .sa_flags = SA_RESTART };

	IF_REACHED();
	sigaction(SIGUSR1, &act, NULL);
	EACH_CALL(c)
	{
		struct sender sender = { .to = pthread_self() };
		weft_scope s;
		pthread_t t;
		long ret;

		nr_handled = 0;
		weft_scope_open(&s, weft_now() + 2 * SOON, c->name);
		pthread_create(&t, NULL, send_signals, &sender);
		do
			ret = c->make();
		while (ret == -EINTR || (c->is_once && ret == 0));
		say(c, "with a handler", ret, -ETIMEDOUT);
		say(c, "its close", weft_scope_close(&s), -ETIMEDOUT);
		__atomic_store_n(&sender.is_over, true, __ATOMIC_SEQ_CST);
		pthread_join(t, NULL);
		if (!nr_handled)
			tap_note("%s: no handler ran", c->name);
		CHECK(nr_handled > 0);
	}
}

TEST(a_wait_that_a_scope_ends_once_waits_the_second_time)
{
	IF_REACHED();
	EACH_CALL(c)
	{
		weft_time until;
		weft_scope outer, s;

		if (!c->is_once)
			continue;
		weft_scope_open(&outer, weft_now() + 4 * SOON, "outer");
		until = outer.deadline;
		weft_scope_open(&s, WEFT_NOW, c->name);
		say(c, "first", c->make(), -ETIMEDOUT);
		/* The inner one has done it; only the outer one can now. */
		say(c, "second", c->make(), -ETIMEDOUT);
		CHECK(weft_now() >= until);
		say(c, "close", weft_scope_close(&s), -ETIMEDOUT);
		say(c, "outer close", weft_scope_close(&outer), -ETIMEDOUT);
	}
}

/* A stream that takes and has a little: the count of that is what the call returns, and the next one fails. */
static long push(int kind, int fd, size_t bytes)
{
	static char much[1 << 21];
	struct iovec v = { much, bytes };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	off_t at = 0;

	switch (kind) {
	case 0:
		return ret_of(write(fd, much, bytes));
	case 1:
		return ret_of(writev(fd, &v, 1));
	case 2:
		return ret_of(send(fd, much, bytes, MSG_NOSIGNAL));
	case 3:
		return ret_of(sendmsg(fd, &m, MSG_NOSIGNAL));
	default:
		return ret_of(sendfile(fd, file_fd, &at, bytes));
	}
}

TEST(what_was_transferred_is_counted)
{
	IF_REACHED();
	(void)!ftruncate(file_fd, 1 << 21);
	for (int kind = 0; kind < 5; kind++) {
		for (int is_tcp = 0; is_tcp < 3; is_tcp++) {
			const size_t all = 1 << 21;
			int ends[2];
			weft_scope s;
			long ret;

			if (is_tcp == 2 && (kind == 2 || kind == 3))
				continue;
			if (is_tcp == 2)
				(void)!pipe(ends);
			else if (is_tcp == 1)
				socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
			else {
				struct sockaddr_in at;
				socklen_t len = sizeof(at);
				int few = 4096;

				getsockname(listener, (void *)&at, &len);
				ends[1] = socket(AF_INET, SOCK_STREAM, 0);
				setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &few, sizeof(few));
				connect(ends[1], (void *)&at, sizeof(at));
				ends[0] = accept(listener, NULL, NULL);
			}
			weft_scope_open(&s, weft_now() + SOON, "partial");
			ret = push(kind, ends[1], all);
			if (ret <= 0 || ret >= (long)all)
				tap_note("kind %d of %d: %ld", kind, is_tcp, ret);
			CHECK(ret > 0 && ret < (long)all);
			weft_scope_close(&s);
			close(ends[0]);
			close(ends[1]);
		}
	}
}

TEST(a_part_of_MSG_WAITALL_is_returned)
{
	weft_scope s;

	IF_REACHED();
	CHECK_EQ(send(unix_empty[1], "abc", 3, 0), 3);
	weft_scope_open(&s, weft_now() + SOON, "partial");
	CHECK_EQ(call_recv_all(), 3);
	CHECK_EQ(call_recv_all(), -ETIMEDOUT);
	CHECK_EQ(weft_scope_close(&s), -ETIMEDOUT);
}
