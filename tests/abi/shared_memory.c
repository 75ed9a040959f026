// SPDX-License-Identifier: Apache-2.0
/* System V shared memory between processes, from threads; and POSIX message queues as objects. */
#include <fcntl.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "check.h"

static void *shares(void *arg)
{
	int id = (int)CHECK_SYS(shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0600));
	struct shmid_ds info;
	int *p = shmat(id, NULL, 0);
	pid_t pid;

	CHECK(p != (void *)-1);
	pid = fork();
	if (pid == 0) {
		p[0] = 42;
		_exit(shmdt(p));
	}
	reap(pid);
	CHECK_EQ(p[0], 42);
	CHECK_SYS(shmctl(id, IPC_STAT, &info));
	CHECK_EQ(info.shm_nattch, 1);
	CHECK_EQ(info.shm_cpid, getpid());
	CHECK_SYS(shmdt(p));
	CHECK_ERRNO(shmdt(p), EINVAL);
	CHECK_SYS(shmctl(id, IPC_RMID, NULL));
	CHECK_ERRNO(shmctl(id, IPC_STAT, &info), EINVAL);
	CHECK(shmat(id, NULL, 0) == (void *)-1 && errno == EINVAL);
	return arg;
}

static void *uses_queues(void *arg)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 16 }, got, old;
	char name[64], buf[16];
	mqd_t q;

	snprintf(name, sizeof(name), "/weft-%d-%d", getpid(), (int)syscall(SYS_gettid));
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (q == (mqd_t)-1) /* no such file system here */
		return arg;
	CHECK_SYS(mq_getattr(q, &got));
	CHECK_EQ(got.mq_maxmsg, 4);
	CHECK_EQ(got.mq_msgsize, 16);
	got.mq_flags = O_NONBLOCK;
	CHECK_SYS(mq_setattr(q, &got, &old));
	CHECK_EQ(old.mq_flags, 0);
	CHECK_ERRNO(mq_receive(q, buf, sizeof(buf), NULL), EAGAIN);
	CHECK_ERRNO(mq_receive(q, buf, 1, NULL), EMSGSIZE);
	CHECK_ERRNO(mq_send(q, buf, 17, 0), EMSGSIZE);
	CHECK_SYS(mq_send(q, buf, 16, 0));
	CHECK_ERRNO(mq_notify(-1, NULL), EBADF);
	CHECK_SYS(mq_close(q));
	CHECK_ERRNO(mq_close(q), EBADF);
	CHECK_SYS(mq_unlink(name));
	CHECK_ERRNO(mq_unlink(name), ENOENT);
	return arg;
}

int main(void)
{
	shares(NULL);
	join(start(shares, NULL));
	ok("System V shared memory");
	join(start(uses_queues, NULL));
	ok("message queues");
	CHECK_ERRNO(mlockall(0), EINVAL);
	CHECK_SYS(munlockall());
	ok("no locked memory");
	return finish();
}
