// SPDX-License-Identifier: Apache-2.0
/*
 * Message queues of POSIX and System V, and System V semaphores, between threads.
 */
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include "check.h"

#define NR 2000

static mqd_t mq;
static int queue, sems;
static int is_over;

struct message {
	long type;
	int number;
};

static void on_signal(int sig)
{
	(void)sig;
}

static void *receives(void *arg)
{
	char buf[64];
	unsigned priority;
	long sum = 0;

	for (int i = 0; i < NR; i++) {
		int number;

		CHECK_EQ(mq_receive(mq, buf, sizeof(buf), &priority), sizeof(number));
		memcpy(&number, buf, sizeof(number));
		CHECK_EQ(priority, number % 3);
		sum += number;
	}
	(void)arg;
	return (void *)sum;
}

static void *sends(void *arg)
{
	for (int i = 0; i < NR; i++)
		CHECK_SYS(mq_send(mq, (char *)&i, sizeof(i), (unsigned)i % 3));
	return arg;
}

static struct timespec in(int64_t ns)
{
	return timespec_of(clock_ns(CLOCK_REALTIME) + ns);
}

static void *times_out(void *arg)
{
	char buf[64];
	struct timespec at = in(40 * MS);
	int64_t before = now_ns();

	CHECK_ERRNO(mq_timedreceive(mq, buf, sizeof(buf), NULL, &at), ETIMEDOUT);
	CHECK(now_ns() - before >= 39 * MS);
	at.tv_nsec = SEC;
	CHECK_ERRNO(mq_timedreceive(mq, buf, sizeof(buf), NULL, &at), EINVAL);
	CHECK_ERRNO(mq_receive(mq, buf, 1, NULL), EMSGSIZE);
	for (int i = 0; i < 4; i++)
		CHECK_SYS(mq_send(mq, "x", 1, 0));
	at = in(40 * MS);
	before = now_ns();
	CHECK_ERRNO(mq_timedsend(mq, "x", 1, 0, &at), ETIMEDOUT);
	CHECK(now_ns() - before >= 39 * MS);
	struct mq_attr attr = { .mq_flags = O_NONBLOCK };
	CHECK_SYS(mq_setattr(mq, &attr, NULL));
	CHECK_ERRNO(mq_send(mq, "x", 1, 0), EAGAIN);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(mq_receive(mq, buf, sizeof(buf), NULL), 1);
	CHECK_ERRNO(mq_receive(mq, buf, sizeof(buf), NULL), EAGAIN);
	attr.mq_flags = 0;
	CHECK_SYS(mq_setattr(mq, &attr, NULL));
	return arg;
}

static void *is_interrupted(void *arg)
{
	char buf[64];
	struct message m;
	struct sembuf op = { .sem_op = -1 };

	switch ((intptr_t)arg) {
	case 0:
		CHECK_ERRNO(mq_receive(mq, buf, sizeof(buf), NULL), EINTR);
		break;
	case 1:
		CHECK_ERRNO(msgrcv(queue, &m, sizeof(int), 0, 0), EINTR);
		break;
	case 2:
		CHECK_ERRNO(semop(sems, &op, 1), EINTR);
		break;
	}
	STORE(&is_over, 1);
	return NULL;
}

static void interrupt_all(void)
{
	for (intptr_t kind = 0; kind < 3; kind++) {
		pthread_t t = start(is_interrupted, (void *)kind);

		while (!LOAD(&is_over)) {
			let_others_block();
			pthread_kill(t, SIGUSR1);
		}
		join(t);
		STORE(&is_over, 0);
	}
}

static void *answers(void *arg)
{
	struct message m;

	for (int i = 0; i < NR; i++) {
		CHECK_EQ(msgrcv(queue, &m, sizeof(m.number), 1, 0), sizeof(m.number));
		CHECK_EQ(m.number, i);
		m.type = 2;
		CHECK_SYS(msgsnd(queue, &m, sizeof(m.number), 0));
	}
	return arg;
}

static void *fills_queue(void *arg)
{
	static struct {
		long type;
		char text[4000];
	} big = { .type = 3 };

	for (int i = 0; i < 40; i++)
		CHECK_SYS(msgsnd(queue, &big, sizeof(big.text), 0));
	return arg;
}

static void *empties_queue(void *arg)
{
	static struct {
		long type;
		char text[4000];
	} big;

	let_others_block();
	for (int i = 0; i < 40; i++)
		CHECK_EQ(msgrcv(queue, &big, sizeof(big.text), 3, 0), sizeof(big.text));
	return arg;
}

static void *swaps(void *arg)
{
	struct sembuf take = { .sem_num = (unsigned short)(intptr_t)arg, .sem_op = -1 },
		      give = { .sem_num = !(intptr_t)arg, .sem_op = 1 };

	for (int i = 0; i < NR; i++) {
		CHECK_SYS(semop(sems, &take, 1));
		CHECK_SYS(semop(sems, &give, 1));
	}
	return NULL;
}

static void *sees_removal(void *arg)
{
	struct sembuf op = { .sem_op = -100 };
	struct message m;

	if (arg)
		CHECK(semop(sems, &op, 1) == -1 && (errno == EIDRM || errno == EINVAL));
	else
		CHECK(msgrcv(queue, &m, sizeof(m.number), 0, 0) == -1 &&
		      (errno == EIDRM || errno == EINVAL));
	return NULL;
}

int main(void)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 64 };
	struct sigaction sa = { .sa_handler = on_signal };
	char name[64];
	pthread_t t[4];

	CHECK_SYS(sigaction(SIGUSR1, &sa, NULL));
	snprintf(name, sizeof(name), "/weft-abi-%d", (int)getpid());
	mq = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (mq < 0) {
		fprintf(stderr, "no message queues here\n");
		return EXIT_SKIP;
	}
	mq_unlink(name);
	queue = (int)CHECK_SYS(msgget(IPC_PRIVATE, 0600));
	sems = (int)CHECK_SYS(semget(IPC_PRIVATE, 2, 0600));

	t[0] = start(receives, NULL);
	t[1] = start(sends, NULL);
	t[2] = start(receives, NULL);
	t[3] = start(sends, NULL);
	join(t[1]);
	join(t[3]);
	CHECK_EQ((intptr_t)join(t[0]) + (intptr_t)join(t[2]), (long)NR * (NR - 1));
	ok("4,000 messages through a queue of four");
	join(start(times_out, NULL));
	ok("time limits and O_NONBLOCK");
	interrupt_all();
	ok("EINTR");

	t[0] = start(answers, NULL);
	for (int i = 0; i < NR; i++) {
		struct message m = { .type = 1, .number = i };

		CHECK_SYS(msgsnd(queue, &m, sizeof(m.number), 0));
		CHECK_EQ(msgrcv(queue, &m, sizeof(m.number), 2, 0), sizeof(m.number));
		CHECK_EQ(m.number, i);
	}
	join(t[0]);
	t[0] = start(fills_queue, NULL);
	t[1] = start(empties_queue, NULL);
	join(t[0]);
	join(t[1]);
	struct message none;
	CHECK_ERRNO(msgrcv(queue, &none, sizeof(none.number), 0, IPC_NOWAIT), ENOMSG);
	ok("a System V queue");

	struct sembuf give = { .sem_op = 1 };
	t[0] = start(swaps, (void *)0);
	t[1] = start(swaps, (void *)1);
	CHECK_SYS(semop(sems, &give, 1));
	join(t[0]);
	join(t[1]);
	struct sembuf take = { .sem_op = -2, .sem_flg = IPC_NOWAIT };
	CHECK_ERRNO(semop(sems, &take, 1), EAGAIN);
	take.sem_flg = 0;
	struct timespec limit = timespec_of(30 * MS);
	int64_t before = now_ns();
	CHECK_ERRNO(semtimedop(sems, &take, 1, &limit), EAGAIN);
	CHECK(now_ns() - before >= 30 * MS);
	limit.tv_nsec = SEC;
	CHECK_ERRNO(semtimedop(sems, &take, 1, &limit), EINVAL);
	ok("System V semaphores");

	t[0] = start(sees_removal, NULL);
	t[1] = start(sees_removal, (void *)1);
	let_others_block();
	CHECK_SYS(msgctl(queue, IPC_RMID, NULL));
	CHECK_SYS(semctl(sems, 0, IPC_RMID));
	/* A thread that came too late finds nothing to wait for, which says EINVAL or EIDRM. */
	join(t[0]);
	join(t[1]);
	ok("EIDRM");
	return finish();
}
