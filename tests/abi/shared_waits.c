// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads at once in waits that only the kernel can end: futexes that processes share, and children. Each
 * wake-up ends exactly one wait, whoever sends it; time, signals and cancellation end them as natively.
 */
#include "check.h"
#include "filter.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define NR 48

static uint32_t *word; /* shared */
static int nr_back;

static long futex(uint32_t *at, int op, uint32_t val, const struct timespec *time, uint32_t *at2,
		  uint32_t val3)
{
	long ret = syscall(SYS_futex, at, op, val, time, at2, val3);

	return ret < 0 ? -errno : ret;
}

static long move(uint32_t *from, uint32_t *to)
{
	long ret = syscall(SYS_futex, from, FUTEX_CMP_REQUEUE, 0, (void *)(intptr_t)NR, to, *from);

	return ret < 0 ? -errno : ret;
}

static void start_all(pthread_t *t, void *(*fn)(void *))
{
	STORE(&nr_back, 0);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(fn, (void *)i);
}

static void join_all(pthread_t *t)
{
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

/* Wake until so many were: none of them can be a thread that is not there yet. */
static void wake(uint32_t *at, int nr, uint32_t set)
{
	while (nr > 0) {
		long ret = futex(at, FUTEX_WAKE_BITSET, (uint32_t)(nr < 5 ? nr : 5), NULL, NULL,
				 set);

		CHECK(ret >= 0 && ret <= 5);
		if (ret < 0)
			return;
		nr -= (int)ret;
		if (!ret)
			sched_yield();
	}
	CHECK_EQ(nr, 0);
}

static void *waits_for_own_word(void *arg)
{
	uint32_t *own = &word[(intptr_t)arg];

	while (!LOAD(own)) {
		long ret = futex(own, FUTEX_WAIT, 0, NULL, NULL, 0);

		CHECK(ret == 0 || ret == -EAGAIN);
	}
	return NULL;
}

static void woken_by_another_process(void)
{
	pthread_t t[NR];
	pid_t pid;
	int status;

	start_all(t, waits_for_own_word);
	pid = (pid_t)CHECK_SYS(fork());
	if (!pid) {
		for (int i = 0; i < NR; i++) {
			STORE(&word[i], 1);
			(void)futex(&word[i], FUTEX_WAKE, 1, NULL, NULL, 0);
		}
		_exit(0);
	}
	join_all(t);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	memset(word, 0, 4096);
}

static void *waits_once(void *arg)
{
	uint32_t set = (intptr_t)arg % 2 ? 2 : 1;

	CHECK_EQ(futex(word, FUTEX_WAIT_BITSET, 0, NULL, NULL, set), 0);
	ADD(&nr_back, 1);
	return NULL;
}

static void each_wake_ends_one(void)
{
	pthread_t t[NR];

	start_all(t, waits_once);
	wake(word, NR, ~0u);
	join_all(t);
	CHECK_EQ(LOAD(&nr_back), NR);

	start_all(t, waits_once);
	wake(word, NR / 2, 1);
	for (int i = 0; i < NR; i += 2)
		join(t[i]);
	CHECK_EQ(LOAD(&nr_back), NR / 2);
	wake(word, NR / 2, 2);
	for (int i = 1; i < NR; i += 2)
		join(t[i]);
}

static void moved_waiters_are_woken_elsewhere(void)
{
	pthread_t t[NR];
	int nr = 0;

	start_all(t, waits_once);
	/*
	 * Not before all of them wait: to the kernel a waiter that is moved just as it goes to sleep looks as if it had
	 * been woken for nothing, and waits for its first word again. To the same word nobody is moved, but counted.
	 */
	while (move(word, word) < NR)
		sched_yield();
	while (nr < NR) {
		long ret = move(word, word + 1);

		CHECK(ret >= 0);
		if (ret < 0)
			break;
		nr += (int)ret;
		sched_yield();
	}
	CHECK_EQ(nr, NR);
	CHECK_EQ(futex(word, FUTEX_WAKE, NR, NULL, NULL, 0), 0);
	wake(word + 1, NR, ~0u);
	join_all(t);
}

static void *runs_out_of_time(void *arg)
{
	struct timespec brief = { 0, ((intptr_t)arg % 3) * MS }, past = { 1, 0 };

	CHECK_EQ(futex(word, FUTEX_WAIT, 0, &brief, NULL, 0), -ETIMEDOUT);
	CHECK_EQ(futex(word, FUTEX_WAIT_BITSET, 0, &past, NULL, 1), -ETIMEDOUT);
	CHECK_EQ(futex(word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &past, NULL, 1),
		 -ETIMEDOUT);
	CHECK_EQ(futex(word, FUTEX_WAIT_BITSET, 1, &past, NULL, 1), -EAGAIN);
	CHECK_EQ(futex(word, FUTEX_WAIT_BITSET, 0, &brief, NULL, 0), -EINVAL);
	return NULL;
}

/* All wake-ups come while the waits run out: what was woken is not late, and what was late was not woken. */
static void *is_woken_or_late(void *arg)
{
	struct timespec brief = { 0, 500000 };
	intptr_t nr = 0;

	for (int i = 0; i < 20; i++) {
		long ret = futex(word, FUTEX_WAIT, 0, &brief, NULL, 0);

		CHECK(ret == 0 || ret == -ETIMEDOUT);
		nr += ret == 0;
	}
	ADD(&nr_back, 1);
	(void)arg;
	return (void *)nr;
}

static void no_wake_is_lost_to_time(void)
{
	pthread_t t[NR];
	intptr_t sent = 0, got = 0;

	start_all(t, is_woken_or_late);
	while (LOAD(&nr_back) < NR) {
		sent += futex(word, FUTEX_WAKE, 3, NULL, NULL, 0);
		sched_yield();
	}
	for (int i = 0; i < NR; i++)
		got += (intptr_t)join(t[i]);
	CHECK_EQ(got, sent);
}

static int nr_handled;

static void count(int sig)
{
	(void)sig;
	ADD(&nr_handled, 1);
}

static void *is_interrupted(void *arg)
{
	(void)arg;
	CHECK_EQ(futex(word, FUTEX_WAIT, 0, NULL, NULL, 0), -EINTR);
	STORE(&nr_back, 1);
	return NULL;
}

static void *is_restarted(void *arg)
{
	(void)arg;
	CHECK_EQ(futex(word + 1, FUTEX_WAIT, 0, NULL, NULL, 0), 0);
	return NULL;
}

static void signals_end_or_restart(void)
{
	struct sigaction act = { .sa_handler = count };
	pthread_t t[NR], one;

	start_all(t, waits_once);
	CHECK_SYS(sigaction(SIGUSR1, &act, NULL));
	one = start(is_interrupted, NULL);
	while (!LOAD(&nr_back)) {
		CHECK_PT(pthread_kill(one, SIGUSR1));
		sleep_ns(MS / 10);
	}
	join(one);
	act.sa_flags = SA_RESTART;
	CHECK_SYS(sigaction(SIGUSR1, &act, NULL));
	STORE(&nr_handled, 0);
	one = start(is_restarted, NULL);
	for (int i = 1; i <= 5; i++) {
		CHECK_PT(pthread_kill(one, SIGUSR1));
		while (LOAD(&nr_handled) < i)
			sched_yield();
	}
	wake(word + 1, 1, ~0u);
	join(one);
	wake(word, NR, ~0u);
	join_all(t);
}

static sem_t *sem;

static void *waits_for_post(void *arg)
{
	(void)arg;
	while (sem_wait(sem))
		CHECK_EQ(errno, EINTR);
	return NULL;
}

static void cancelled_or_posted(void)
{
	pthread_t t[NR];

	sem = (sem_t *)(word + 64);
	CHECK_SYS(sem_init(sem, 1, 0));
	start_all(t, waits_for_post);
	for (int i = 0; i < NR; i += 2)
		CHECK_PT(pthread_cancel(t[i]));
	for (int i = 0; i < NR; i += 2)
		CHECK(join(t[i]) == PTHREAD_CANCELED);
	for (int i = 1; i < NR; i += 2)
		CHECK_SYS(sem_post(sem));
	for (int i = 1; i < NR; i += 2)
		join(t[i]);
	memset(word, 0, 4096);
}

static int gate[2];

static pid_t make_child(int status)
{
	pid_t pid = (pid_t)CHECK_SYS(fork());
	char c;

	if (pid)
		return pid;
	close(gate[1]);
	if (read(gate[0], &c, 1) < 0)
		_exit(99);
	_exit(status);
}

static void *waits_for_child(void *arg)
{
	int want = (int)(intptr_t)arg, status = -1;
	struct rusage usage = { .ru_maxrss = -1 };
	pid_t pid = make_child(want);
	siginfo_t info = { .si_pid = -1 };

	ADD(&nr_back, 1);
	if (want % 3 == 0) {
		CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
		CHECK_EQ(info.si_pid, pid);
		CHECK_EQ(info.si_status, want);
		CHECK_EQ(info.si_signo, SIGCHLD);
		return NULL;
	}
	CHECK_EQ(wait4(pid, &status, 0, want % 3 == 1 ? &usage : NULL), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == want);
	CHECK(want % 3 != 1 || usage.ru_maxrss > 0);
	CHECK_EQ(wait4(pid, &status, 0, NULL), -1);
	CHECK_EQ(errno, ECHILD);
	return NULL;
}

static void each_has_its_child(void)
{
	pthread_t t[NR];

	CHECK_SYS(pipe(gate));
	start_all(t, waits_for_child);
	while (LOAD(&nr_back) < NR)
		sleep_ns(MS);
	close(gate[1]); /* the children hold none, so they all end now */
	join_all(t);
	close(gate[0]);
}

static void *sees_every_change(void *arg)
{
	int status;
	pid_t pid = (pid_t)(intptr_t)arg;

	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_SYS(kill(pid, SIGCONT));
	CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
	CHECK(WIFCONTINUED(status));
	CHECK_SYS(kill(pid, SIGKILL));
	CHECK_EQ(waitpid(-1, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	return NULL;
}

static void stops_and_goes_on(void)
{
	pthread_t t[NR], one;
	pid_t pid;

	start_all(t, waits_once);
	pid = (pid_t)CHECK_SYS(fork());
	if (!pid) {
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	one = start(sees_every_change, (void *)(intptr_t)pid);
	join(one);
	wake(word, NR, ~0u);
	join_all(t);
}

static void a_child_has_waits_of_its_own(void)
{
	pthread_t t[NR];
	pid_t pid;
	int status;

	start_all(t, waits_once);
	pid = (pid_t)CHECK_SYS(fork());
	if (!pid) {
		pthread_t mine[NR];

		word += 128;
		start_all(mine, waits_once);
		wake(word, NR, ~0u);
		join_all(mine);
		_exit(abi_failures != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	wake(word, NR, ~0u);
	join_all(t);
}

static void a_filter_for_all_threads(void)
{
	pthread_t t[NR];

	start_all(t, waits_for_own_word);
	forbid_io_uring_enter();
	for (int i = 0; i < NR; i++) {
		STORE(&word[i], 1);
		(void)futex(&word[i], FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	join_all(t);
	memset(word, 0, 4096);
	start_all(t, waits_once);
	wake(word, NR, ~0u);
	join_all(t);
}

int main(void)
{
	pthread_t t[NR];

	word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	woken_by_another_process();
	ok("woken by another process");
	each_wake_ends_one();
	ok("each wake-up ends one wait, of the right set");
	moved_waiters_are_woken_elsewhere();
	ok("requeue");
	start_all(t, runs_out_of_time);
	join_all(t);
	ok("time");
	no_wake_is_lost_to_time();
	ok("wake-ups while time runs out");
	signals_end_or_restart();
	ok("signals");
	cancelled_or_posted();
	ok("cancellation");
	each_has_its_child();
	ok("children");
	stops_and_goes_on();
	ok("a child that is stopped");
	a_child_has_waits_of_its_own();
	ok("fork");
	a_filter_for_all_threads();
	ok("a filter");
	return finish();
}
