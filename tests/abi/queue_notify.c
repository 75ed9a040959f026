// SPDX-License-Identifier: Apache-2.0
/*
 * A message that a thread waits for notifies nobody, whoever asked for it, before or while the thread waits; the next one,
 * that nobody waits for, does.
 */
#include "check.h"

#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>

#define NR_READERS 3
#define NR_ROUNDS 20

static mqd_t mq, again; /* of one queue */
static int nr_waiting;
static sigset_t set;

static int is_notified(void)
{
	sigset_t pending;

	CHECK_SYS(sigpending(&pending));
	return sigismember(&pending, SIGUSR1);
}

static void take_notice(void)
{
	siginfo_t info;

	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_EQ(info.si_code, SI_MESGQ);
}

static void ask(mqd_t q)
{
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };

	CHECK_SYS(mq_notify(q, &e));
}

static void *reads(void *arg)
{
	mqd_t q = *(mqd_t *)arg;
	char buf[16];

	ADD(&nr_waiting, 1);
	CHECK_EQ(mq_receive(q, buf, sizeof(buf), NULL), 1);
	ADD(&nr_waiting, -1);
	return arg;
}

/* As many of them as there are wait when this returns. */
static void start_readers(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++)
		t[i] = start(reads, i % 2 ? &again : &mq);
	while (LOAD(&nr_waiting) < n)
		sleep_ns(MS);
	let_others_block();
}

static void send_one(void)
{
	CHECK_SYS(mq_send(mq, "x", 1, 0));
}

static void drain(void)
{
	char buf[16];

	CHECK_EQ(mq_receive(mq, buf, sizeof(buf), NULL), 1);
}

/* One thread after the other gets its message, and then there is none. */
static void feed(pthread_t *t, int n)
{
	for (int i = 0; i < n; i++) {
		int left = n - 1 - i;

		send_one();
		while (LOAD(&nr_waiting) > left)
			sleep_ns(MS);
		CHECK(!is_notified());
	}
	for (int i = 0; i < n; i++)
		join(t[i]);
	send_one();
	take_notice();
	drain();
}

static void asked_while_they_wait(void)
{
	pthread_t t[NR_READERS];

	start_readers(t, NR_READERS);
	ask(mq);
	feed(t, NR_READERS);
}

static void asked_by_another_number(void)
{
	pthread_t t[NR_READERS];

	start_readers(t, 1);
	ask(again);
	feed(t, 1);
}

static void asked_before(void)
{
	pthread_t t[NR_READERS];

	ask(mq);
	start_readers(t, NR_READERS);
	feed(t, NR_READERS);
}

/* At once, so that a wait which begins anew is not taken for none. */
static void asked_and_sent(void)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		pthread_t t;

		start_readers(&t, 1);
		ask(mq);
		send_one();
		join(t);
		CHECK(!is_notified());
		CHECK_SYS(mq_notify(mq, NULL));
		while (is_notified())
			take_notice();
	}
}

/* Another process has asked, and is told by a pipe when to look. */
static void asked_by_another_process(void)
{
	int to_child[2], to_us[2];
	pthread_t t;
	char c = 'x';
	pid_t pid;

	CHECK_SYS(pipe(to_child));
	CHECK_SYS(pipe(to_us));
	pid = fork();
	if (!pid) {
		ask(mq);
		if (write(to_us[1], &c, 1) != 1 || read(to_child[0], &c, 1) != 1)
			_exit(1);
		_exit(is_notified());
	}
	CHECK_EQ(read(to_us[0], &c, 1), 1);
	start_readers(&t, 1);
	send_one();
	join(t);
	CHECK_EQ(write(to_child[1], &c, 1), 1);
	reap(pid);
	for (int i = 0; i < 2; i++) {
		close(to_child[i]);
		close(to_us[i]);
	}
}

int main(void)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 16 };
	char name[64];

	snprintf(name, sizeof(name), "/queue_notify.%d", getpid());
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (mq == -1) {
		printf("no message queues: %s\n", strerror(errno));
		return EXIT_SKIP;
	}
	again = mq_open(name, O_RDWR);
	mq_unlink(name);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_PT(pthread_sigmask(SIG_BLOCK, &set, NULL));
	asked_by_another_process();
	ok("asked by another process");
	asked_while_they_wait();
	ok("asked while they wait");
	asked_by_another_number();
	ok("asked by another number");
	asked_before();
	ok("asked before");
	asked_and_sent();
	ok("asked, and sent at once");
	return finish();
}
