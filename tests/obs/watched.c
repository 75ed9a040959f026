// SPDX-License-Identifier: Apache-2.0
/*
 * A program to be watched: it does what its arguments say, in the thread that it makes for it.
 *
 * Run by: test_watch.py. "then FILE A B" does A as long as FILE is not there, and makes it; B after that.
 * "line A" does A after a signal, "children A" has children that crash.
 */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t locks[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t both;
static const char *how;
static char **program;

static void say(const char *word)
{
	(void)!write(STDOUT_FILENO, word, strlen(word));
}

static void *lock_both(void *arg)
{
	int first = arg != NULL;

	pthread_mutex_lock(&locks[first]);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&locks[!first]);
	return NULL;
}

static void deadlock(void)
{
	pthread_t t;

	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&t, NULL, lock_both, &both) == 0)
		lock_both(NULL);
}

static void *spin(void *arg)
{
	for (;;)
		*(volatile int *)arg = 1;
	return NULL;
}

static void spin_both(void)
{
	static int word;
	pthread_t t;

	if (pthread_create(&t, NULL, spin, &word) == 0)
		spin(&word);
}

/*
 * Nobody but us runs on this worker any more: the kick that would end a slice is blocked, by an instruction that weft has not
 * seen. Such a stall lasts, however long a look at it takes.
 */
static void hog(void)
{
	static const unsigned char call[] = {
		0x48, 0x89, 0xf8, /* mov %rdi, %rax */
		0x48, 0x89, 0xf7, /* mov %rsi, %rdi */
		0x48, 0x89, 0xd6, /* mov %rdx, %rsi */
		0x48, 0x89, 0xca, /* mov %rcx, %rdx */
		0x4d, 0x89, 0xc2, /* mov %r8, %r10 */
		0x0f, 0x05,       /* syscall */
		0xc3,
	};
	const unsigned long all = ~0ul;
	static int word;
	pthread_t t;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || pthread_create(&t, NULL, spin, &word) != 0)
		return;
	memcpy(page, call, sizeof(call));
	((long (*)(long, long, const void *, void *, long))page)(SYS_rt_sigprocmask, SIG_BLOCK,
								 &all, NULL, sizeof(all));
	spin(&word);
}

static void fault(void)
{
	volatile int *volatile nowhere = (volatile int *)8;

	*nowhere = 1;
}

static sigset_t told;

/* Says each signal that it gets. */
static void tell_signals(void)
{
	char line[16];
	int sig;

	for (say("ready\n"); sigwait(&told, &sig) == 0; say(line))
		snprintf(line, sizeof(line), "%d\n", sig);
}

/* A process whose parent goes at once, and which nobody ends but one who adopts it. */
static void leave_daemon(void)
{
	char line[24];

	if (fork() == 0) {
		setsid();
		if (fork() == 0) {
			signal(SIGTERM, SIG_IGN);
			snprintf(line, sizeof(line), "%d\n", (int)getpid());
			say(line);
			for (;;)
				pause();
		}
		_exit(0);
	}
}

/* A child that faults at once, and one that is another program. */
static void leave_children_to_crash(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			if (i)
				execv(program[0], program);
			fault();
		}
		if (waitpid(pid, NULL, 0) != pid)
			_exit(1);
	}
	_exit(7);
}

/* A call that does not return, of a thread with a mutex that another one waits for. */
static void *lock_it(void *mutex)
{
	pthread_mutex_lock(mutex);
	return NULL;
}

static void block_with_lock(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_t waiter;
	int mine = open("/proc/self/exe", O_RDONLY), other = open("/proc/self/exe", O_RDONLY);

	flock(other, LOCK_EX);
	pthread_mutex_lock(&mutex);
	pthread_create(&waiter, NULL, lock_it, &mutex);
	flock(mine, LOCK_EX);
}

static void *act(void *arg)
{
	int sig;

	(void)arg;
	if (!strcmp(how, "children"))
		leave_children_to_crash();
	if (!strcmp(how, "line")) {
		say("ready\n");
		(void)sigwait(&told, &sig);
		how = program[0];
	}
	if (!strcmp(how, "fault"))
		fault();
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "three")) {
		fputs("three it is\n", stderr);
		_exit(3);
	}
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "deadlock"))
		deadlock();
	if (!strcmp(how, "holds"))
		block_with_lock();
	if (!strcmp(how, "spin"))
		spin_both();
	if (!strcmp(how, "hog"))
		hog();
	if (!strcmp(how, "signals"))
		tell_signals();
	if (!strcmp(how, "stubborn")) {
		signal(SIGTERM, SIG_IGN);
		say("ready\n");
		for (;;)
			pause();
	}
	if (!strcmp(how, "wait")) {
		say("ready\n");
		for (;;)
			pause();
	}
	if (!strcmp(how, "chatty")) {
		for (int i = 0; i < 30000; i++)
			fprintf(stderr, "line %d\n", i);
		_exit(4);
	}
	if (!strcmp(how, "daemon")) {
		leave_daemon();
		sleep(1); /* it says its number meanwhile */
		_exit(5);
	}
	if (!strcmp(how, "exec")) {
		execv(program[0], program);
		_exit(6);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t;
	int fd;

	if (argc < 2)
		return 9;
	program = argv + 2;
	how = argv[1];
	if (!strcmp(how, "then") && argc > 4) {
		fd = open(argv[2], O_CREAT | O_EXCL | O_WRONLY, 0600);
		how = fd >= 0 ? argv[3] : argv[4];
	}
	if (!strcmp(how, "signals") || !strcmp(how, "line")) {
		sigaddset(&told, SIGHUP);
		sigaddset(&told, SIGUSR1);
		sigaddset(&told, SIGUSR2);
		sigprocmask(SIG_BLOCK, &told, NULL);
	}
	if (pthread_create(&t, NULL, act, NULL))
		return 8;
	for (;;)
		pause();
}
