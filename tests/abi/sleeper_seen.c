// SPDX-License-Identifier: Apache-2.0
/*
 * A process that sees in /proc that a thread sleeps may rely on it that it waits: the wake-up that comes then finds it. With a word
 * of the process and one that is shared with others.
 */
#include "check.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>

#define ROUNDS 300

static struct shared {
	int word, tid, is_woken;
} * shared;
static int flag; /* FUTEX_PRIVATE_FLAG or 0 */

static void *sleeper(void *arg)
{
	STORE(&shared->tid, (int)gettid());
	for (int i = 0; i < ROUNDS; i++) {
		while (LOAD(&shared->word) == i)
			syscall(SYS_futex, &shared->word, FUTEX_WAIT | flag, i, NULL, NULL, 0);
		STORE(&shared->is_woken, i + 1);
	}
	return arg;
}

static char state_of(int tid)
{
	char path[64], text[256];
	const char *p = NULL;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n > 0) {
		text[n] = 0;
		p = strrchr(text, ')');
	}
	return p ? p[2] : '?';
}

static void check(int flag_)
{
	pthread_t t;

	flag = flag_;
	*shared = (struct shared){ 0 };
	t = start(sleeper, NULL);
	while (!LOAD(&shared->tid))
		sched_yield();
	for (int i = 0; i < ROUNDS; i++) {
		while (LOAD(&shared->is_woken) != i || state_of(LOAD(&shared->tid)) != 'S')
			sched_yield();
		CHECK_EQ(syscall(SYS_futex, &shared->word, FUTEX_WAKE | flag, 1), 1);
		ADD(&shared->word, 1);
		syscall(SYS_futex, &shared->word, FUTEX_WAKE | flag, 1);
	}
	join(t);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK(shared != MAP_FAILED);
	check(FUTEX_PRIVATE_FLAG);
	ok("a word of the process");
	check(0);
	ok("a word that others share");
	return finish();
}
