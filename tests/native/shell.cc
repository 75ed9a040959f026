// SPDX-License-Identifier: Apache-2.0
/*
 * A thread finds nothing that another one has left, whether or not it runs on that one's pthread; and pthreads that rest for
 * the next one are nobody's business.
 */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <climits>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <semaphore.h>
#include <string>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool reuses()
{
	return !is_native_run();
}

static pthread_t last; /* of the thread that ran last */

static int run(weft_fn *fn, void *arg = nullptr, unsigned flags = 0, size_t stack_bytes = 0)
{
	struct weft_thread_opts opts = {};
	weft_thread *t;
	int result = INT_MIN;

	opts.size = sizeof(opts);
	opts.flags = flags;
	opts.stack_bytes = stack_bytes;
	if (!CHECK_EQ(weft_thread_spawn(fn, arg, &opts, &t), 0))
		return INT_MIN;
	last = weft_thread_pthread(t);
	CHECK_EQ(weft_thread_join(t, &result, WEFT_NEVER), 0);
	return result;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* The traces that fn leaves make its thread end for real: the next one is another, or libc has cleaned up behind it. */
static bool ends(weft_fn *fn, void *arg = nullptr)
{
	pthread_t first, mine;

	run(nothing);
	first = last;
	run(fn, arg);
	mine = last;
	CHECK(!reuses() || pthread_equal(first, mine));
	run(nothing);
	/* libc may make the next one at the same place, but it does not rest there. */
	return true;
}

TEST(a_thread_that_leaves_nothing_runs_the_next_function)
{
	for (size_t stack : { (size_t)0, (size_t)(60 << 10), (size_t)(200 << 10) }) {
		pthread_t first;

		run(nothing, nullptr, 0, stack);
		first = last;
		for (int i = 0; i < 10; i++) {
			run(nothing, nullptr, 0, stack);
			CHECK(!reuses() || pthread_equal(first, last));
		}
	}
}

static thread_local int five = 5, zero;
static thread_local char text[100] = "as it was";

static int finds_variables_new(void *arg)
{
	int ok = five == 5 && zero == 0 && std::string(text) == "as it was";

	(void)arg;
	five = zero = 77;
	text[0] = 'X';
	return ok;
}

TEST(thread_local_variables_are_as_in_a_new_thread)
{
	for (int i = 0; i < 20; i++)
		CHECK_EQ(run(finds_variables_new), 1);
}

TEST(a_pooled_thread_keeps_them)
{
	int ok = run(finds_variables_new, nullptr, WEFT_THREAD_POOLED);

	CHECK_EQ(ok, 1);
	if (reuses()) {
		CHECK_EQ(run(finds_variables_new, nullptr, WEFT_THREAD_POOLED), 0);
		CHECK_EQ(run(finds_variables_new), 1);
	}
}

static int finds_libc_new(void *arg)
{
	static locale_t other = newlocale(LC_ALL_MASK, "C", nullptr);
	char name[16];
	int state, type, ok;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, nullptr, &mask);
	pthread_getname_np(pthread_self(), name, sizeof(name));
	ok = errno == 0 && uselocale(nullptr) == LC_GLOBAL_LOCALE && !dlerror() && h_errno == 0 &&
	     fegetround() == FE_TONEAREST && !sigismember(&mask, SIGUSR1) &&
	     std::string(name) != "left behind" && getpriority(PRIO_PROCESS, 0) == *(int *)arg;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ok = ok && state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_DEFERRED;
	uselocale(other);
	dlopen("/no/such/library", RTLD_NOW);
	fesetround(FE_UPWARD);
	sigaddset(&mask, SIGUSR1);
	pthread_sigmask(SIG_SETMASK, &mask, nullptr);
	pthread_setname_np(pthread_self(), "left behind");
	setpriority(PRIO_PROCESS, 0, 11);
	h_errno = 3;
	errno = EXDEV;
	return ok;
}

TEST(what_libc_and_the_kernel_keep_is_as_in_a_new_thread)
{
	int nice = getpriority(PRIO_PROCESS, 0);

	if (nice > 11)
		SKIP("the test itself runs at a higher nice value");
	for (int i = 0; i < 5; i++)
		CHECK_EQ(run(finds_libc_new, &nice), 1);
	fesetround(FE_DOWNWARD);
	CHECK_EQ(run([](void *) { return (int)(fegetround() == FE_DOWNWARD); }), 1);
	fesetround(FE_TONEAREST);
}

static std::atomic<int> nr_made, nr_gone;

struct counted {
	int value = 1;
	counted()
	{
		nr_made++;
	}
	~counted()
	{
		nr_gone++;
	}
};
static thread_local counted object;

static int uses_object(void *arg)
{
	(void)arg;
	return object.value++;
}

TEST(destructors_of_thread_local_objects_run_before_the_join_returns)
{
	enum {
		TIMES = 20000
	};

	nr_made = nr_gone = 0;
	for (int i = 1; i <= TIMES; i++) {
		weft_thread *t;
		int value = 0;

		if (weft_thread_spawn(uses_object, nullptr, nullptr, &t) ||
		    weft_thread_join(t, &value, WEFT_NEVER) || value != 1 || nr_gone != i) {
			CHECK_EQ(value, 1);
			CHECK_EQ(nr_gone, i);
			break;
		}
	}
	CHECK_EQ(nr_made, TIMES);
}

static pthread_key_t key;
static std::atomic<int> nr_values;

static int uses_key(void *arg)
{
	int ok = pthread_getspecific(key) == nullptr;

	pthread_setspecific(key, &key);
	return arg ? ok : 0;
}

TEST(values_of_keys_are_gone)
{
	pthread_key_create(&key, [](void *) { nr_values++; });
	for (int i = 1; i <= 50; i++) {
		CHECK_EQ(run(uses_key, &key), 1);
		CHECK_EQ(nr_values, i);
	}
}

static int asks_resolver(void *arg)
{
	struct __res_state *state = &_res;
	int ok = !(state->options & RES_INIT);

	res_init();
	state->options |= RES_DEBUG;
	return arg ? ok : 0;
}

TEST(a_resolver_that_was_set_up_is_gone)
{
	for (int i = 0; i < 5; i++)
		CHECK_EQ(run(asks_resolver, &key), 1);
}

static char alternate[65536];

static int leaves_alternate_stack(void *arg)
{
	stack_t mine = {}, before;

	mine.ss_sp = alternate;
	mine.ss_size = sizeof(alternate);
	sigaltstack(&mine, &before);
	return arg ? before.ss_flags == SS_DISABLE : 0;
}

static int leaves_affinity(void *arg)
{
	cpu_set_t set, one;
	int n;

	pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
	n = CPU_COUNT(&set);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set)) {
			CPU_SET(i, &one);
			break;
		}
	pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
	return n == (int)(long)arg;
}

static int leaves_signal(void *arg)
{
	sigset_t set, pending;

	sigpending(&pending);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	pthread_kill(pthread_self(), SIGUSR2);
	return arg ? !sigismember(&pending, SIGUSR2) : 0;
}

TEST(what_linux_keeps_of_a_thread_is_gone)
{
#ifdef __SANITIZE_ADDRESS__
	SKIP("AddressSanitizer frees the alternate stack of each thread, whoever has set it");
#endif
	cpu_set_t set;

	pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(run(leaves_alternate_stack, &key), 1);
		CHECK_EQ(run(leaves_alternate_stack, &key), 1);
		CHECK_EQ(run(leaves_affinity, (void *)(long)CPU_COUNT(&set)), 1);
		CHECK_EQ(run(leaves_signal, &key), 1);
	}
	CHECK(ends(leaves_alternate_stack));
}

static pthread_mutex_t robust;

static int locks_robust(void *arg)
{
	int error = pthread_mutex_lock(&robust);

	(void)arg;
	if (error == EOWNERDEAD)
		pthread_mutex_consistent(&robust);
	return error;
}

TEST(a_robust_lock_tells_that_its_owner_has_ended)
{
	pthread_mutexattr_t attr;

	SKIP_IF_EMULATED("qemu has no robust locks");
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	CHECK_EQ(run(locks_robust), 0);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(run(locks_robust), EOWNERDEAD);
}

static int cancels_itself_late(void *arg)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_cancel(pthread_self());
	return arg ? 8 : 9;
}

TEST(one_that_was_asked_to_end_does_not_run_the_next_function)
{
	for (int i = 0; i < 5; i++) {
		CHECK_EQ(run(cancels_itself_late, &key), 8);
		CHECK_EQ(run([](void *) {
				 pthread_testcancel();
				 return 4;
			 }),
			 4);
	}
}

/* The module's variable begins with 1000; it returns what it was, and changes it. */
static int uses_module(void *module)
{
	int (*touch)(void) = (int (*)(void))dlsym(module, "native_touch");

	return touch ? touch() : -1;
}

TEST(variables_of_a_module_that_was_opened_later_are_new)
{
	for (int i = 0; i < 3; i++) {
		void *module = dlopen(getenv("NATIVE_MODULE"), RTLD_NOW);

		if (!CHECK(module)) {
			tap_note("%s", dlerror());
			return;
		}
		for (int j = 0; j < 5; j++) {
			CHECK_EQ(run(uses_module, module), 1000);
			CHECK_EQ(run(nothing), 0);
		}
		dlclose(module);
		for (int j = 0; j < 3; j++)
			CHECK_EQ(run(finds_variables_new), 1);
	}
}

static std::atomic<int> nr_run;

static int counts(void *arg)
{
	(void)arg;
	nr_run++;
	return 0;
}

static int spawns_many(void *arg)
{
	long n = (long)arg;

	for (long i = 0; i < n; i++) {
		weft_thread *t[3];
		int nr = 0;

		for (int j = 0; j < 3; j++)
			nr += weft_thread_spawn(counts, nullptr, nullptr, &t[nr]) == 0;
		while (weft_thread_spawn(counts, nullptr, nullptr, nullptr))
			weft_thread_yield();
		for (int j = 0; j < nr; j++)
			weft_thread_join(t[j], nullptr, WEFT_NEVER);
		nr_run += 3 - nr;
	}
	return 0;
}

TEST(many_spawn_and_join_at_once)
{
	enum {
		SPAWNERS = 6
	};
	const long times = reuses() ? 1000 : 100;
	weft_thread *t[SPAWNERS];

	nr_run = 0;
	for (int i = 0; i < SPAWNERS; i++)
		CHECK_EQ(weft_thread_spawn(spawns_many, (void *)times, nullptr, &t[i]), 0);
	for (int i = 0; i < SPAWNERS; i++)
		CHECK_EQ(weft_thread_join(t[i], nullptr, WEFT_NEVER), 0);
	while (nr_run <
	       SPAWNERS * times * 4) /* nobody joins them; the harness ends a test that hangs */
		weft_thread_yield();
	CHECK_EQ(nr_run, SPAWNERS * times * 4);
}

static weft_event all_there;

static int notes_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	nr_run++;
	return weft_event_wait(&all_there, WEFT_NEVER) ? 0 : 7;
}

TEST(of_many_that_nobody_joins_most_have_ended)
{
	enum {
		MANY = 18000,
		MOST = 17000 /* rest, or have not ended yet */
	};
	static weft_thread *t[MANY];
	static pid_t tids[MANY];
	const int many = reuses() ? MANY : 200, most = reuses() ? MOST : 0;
	int nr_there = many, result = 0, sum = 0;

#ifdef __SANITIZE_THREAD__
	SKIP("ThreadSanitizer has room for 8,128 threads");
#endif
	nr_run = 0;
	weft_event_clear(&all_there);
	for (int i = 0; i < many; i++)
		while (weft_thread_spawn(notes_tid, &tids[i], nullptr, &t[i]))
			weft_thread_yield();
	/* The harness ends a test that hangs. */
	while (nr_run < many)
		weft_thread_yield();
	weft_event_set(&all_there);
	while (nr_there > most) {
		weft_thread_yield();
		nr_there = 0;
		for (int i = 0; i < many; i++)
			nr_there += syscall(SYS_tgkill, getpid(), tids[i], 0) == 0;
	}
	for (int i = 0; i < many; i++) {
		CHECK_EQ(weft_thread_join(t[i], &result, WEFT_NEVER), 0);
		sum += result;
	}
	CHECK_EQ(sum, 7 * many);
}

/* So many rest afterwards. */
static bool run_at_once()
{
	enum {
		AT_ONCE = 10
	};
	weft_thread *t[AT_ONCE];
	pthread_barrier_t all;
	int nr = 0;

	pthread_barrier_init(&all, nullptr, AT_ONCE);
	for (auto &one : t)
		nr += weft_thread_spawn(
			      [](void *barrier) {
				      pthread_barrier_wait((pthread_barrier_t *)barrier);
				      return 0;
			      },
			      &all, nullptr, &one) == 0;
	if (nr < AT_ONCE)
		return false;
	for (auto &one : t)
		nr -= weft_thread_join(one, nullptr, WEFT_NEVER) == 0;
	return nr == 0;
}

static int forks(void *arg)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		int ok = (alarm(20), run_at_once()) && run(finds_variables_new) == 1 &&
			 run(nothing) == 0 && run(uses_object) == 1;

		_exit(ok ? 7 : 1);
	}
	waitpid(pid, &status, 0);
	return arg ? WIFEXITED(status) && WEXITSTATUS(status) == 7 : 0;
}

TEST(a_fork_child_has_shells_of_its_own)
{
	for (int i = 0; i < 3; i++) {
		CHECK(run_at_once());
		CHECK_EQ(forks(&key), 1);
		CHECK_EQ(run(forks, &key), 1);
	}
}

/* Its main thread is the one that forked, and ends as threads end. */
TEST(a_thread_that_is_all_of_a_fork_child_returns)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		run(nothing);
		run([](void *) {
			pid_t child = fork();
			int inner = -1;

			if (child == 0)
				return 0;
			waitpid(child, &inner, 0);
			_exit(inner == 0 ? 3 : 4);
		});
		_exit(5);
	}
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 3);
}

static int said[2];

TEST(threads_that_rest_do_not_keep_the_process)
{
	for (int ended_before = 0; ended_before < 2; ended_before++) {
		int status = -1;
		char c = 0;
		pid_t pid;

		CHECK_EQ(pipe(said), 0);
		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			alarm(30);
			atexit([] { (void)!write(said[1], "x", 1); });
			for (int i = 0; i < 3; i++)
				run(nothing);
			(void)run_at_once(); /* nor does the maker */
			/* One ends after main has, as a rule; the other order is right, too. */
			if (ended_before)
				weft_thread_spawn([](void *) { return (int)usleep(20000); },
						  nullptr, nullptr, nullptr);
			pthread_exit(nullptr);
		}
		close(said[1]);
		waitpid(pid, &status, 0);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		CHECK_EQ(read(said[0], &c, 1), 1);
		close(said[0]);
	}
}

static int recurses(void *arg)
{
	volatile char room[4096];

	room[0] = (char)(long)arg;
	return arg ? room[0] + recurses((char *)arg + 1) + room[0] : 0;
}

TEST(an_overflow_of_a_reused_stack_is_reported)
{
	char text_said[4096] = "";
	size_t len = 0;
	int fds[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (!reuses())
		SKIP("natively nobody reports it");
	CHECK_EQ(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		dup2(fds[1], STDERR_FILENO);
		run(nothing, nullptr, 0, 60 << 10);
		run(recurses, &key, 0, 60 << 10);
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], text_said + len, sizeof(text_said) - 1 - len)) > 0)
		len += (size_t)n;
	close(fds[0]);
	waitpid(pid, &status, 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	if (!CHECK(std::string(text_said).find("has overflowed its stack of 64 KiB") !=
		   std::string::npos))
		tap_note("it said: %s", text_said);
}

static int has_used_no_time(void *arg)
{
	struct timespec used;
	weft_time until = weft_now() + 3 * WEFT_MS;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	while (weft_now() < until)
		;
	return arg ? used.tv_sec == 0 && used.tv_nsec < 2000000 : 0;
}

TEST(a_threads_cpu_clock_begins_with_it)
{
	for (int i = 0; i < 4; i++)
		CHECK_EQ(run(has_used_no_time, &key), 1);
}
