// SPDX-License-Identifier: Apache-2.0
/*
 * The program of test_limits.py:
 *
 *	limits threads N                    makes N threads that are all there at once: "made M, ERROR"
 *	limits later N                      the same by a user who may have no thread at first, and tries until it may
 *	limits reserved                     which memory without access a core file would hold: "dumped KIB"
 *	limits refuse NUMBER COMMAND...     runs it where that system call is refused
 *	limits few N                        the first by a user who may have two kernel threads, and then what weft says
 *	limits retries N                    makes N threads in room for four, trying until it may: "made N, retried M"
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_THREADS 1000
#define USERS_FROM 1800000000u

static sem_t are_there, may_go;

static void *waits(void *arg)
{
	sem_post(&are_there);
	while (sem_wait(&may_go))
		;
	return arg;
}

static void make_threads(int nr, int retries)
{
	static pthread_t t[MAX_THREADS];
	int made = 0, error = 0;

	while (made < nr && made < MAX_THREADS) {
		error = pthread_create(&t[made], NULL, waits, NULL);
		if (error && !retries)
			break;
		made += !error;
		if (error && !--retries) {
			struct rlimit more;

			getrlimit(RLIMIT_NPROC, &more);
			more.rlim_cur = more.rlim_max;
			setrlimit(RLIMIT_NPROC, &more);
			retries = 1;
		}
	}
	for (int i = 0; i < made; i++)
		while (sem_wait(&are_there))
			;
	printf("made %d, %s\n", made, error ? strerror(error) : "no error");
	for (int i = 0; i < made; i++)
		sem_post(&may_go);
	for (int i = 0; i < made; i++)
		pthread_join(t[i], NULL);
}

static void become_somebody(rlim_t soft)
{
	uid_t user = USERS_FROM + (uid_t)getpid();
	struct rlimit limit;

	getrlimit(RLIMIT_NPROC, &limit);
	limit.rlim_cur = soft;
	if (setrlimit(RLIMIT_NPROC, &limit) || setresgid(user, user, user) ||
	    setresuid(user, user, user)) {
		perror("become somebody");
		exit(1);
	}
}

/* Under weft only, which says something: until then we wait. */
static void show_line(int nr)
{
	int ends[2], err = dup(2);
	char line[256] = "";
	ssize_t len;

	if (pipe(ends) || dup2(ends[1], 2) != 2)
		exit(1);
	make_threads(nr, 0);
	len = read(ends[0], line, sizeof(line) - 1);
	if (len < 0 || dup2(err, 2) != 2)
		exit(1);
	fputs(line, stderr);
}

static void *ends(void *arg)
{
	return arg;
}

#define STACK_BYTES (32ul << 20)

/* Those that have ended have the room that the next one needs. */
static void retry(int nr)
{
	unsigned long pages = 0, retries = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	struct rlimit limit;
	pthread_attr_t attr;
	pthread_t t;

	make_threads(1, 0);
	if (!f || fscanf(f, "%lu", &pages) != 1)
		exit(1);
	limit.rlim_cur = limit.rlim_max = pages * 4096 + 4 * STACK_BYTES + STACK_BYTES / 2;
	setrlimit(RLIMIT_AS, &limit);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < nr; i++)
		while (pthread_create(&t, &attr, ends, NULL))
			retries++;
	printf("made %d, retried %lu\n", nr, retries);
}

/* Anonymous memory without access, of which nothing says that it belongs into no core file. */
static void show_reserved(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, inode, bytes = 0, dumped = 0;
	char line[512], access[8];
	int is_reserve = 0;

	make_threads(1, 0);
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &begin, &end, access, &inode) == 4) {
			is_reserve = !strncmp(access, "---p", 4) && !inode;
			bytes = end - begin;
		} else if (!strncmp(line, "VmFlags:", 8) && is_reserve && !strstr(line, " dd")) {
			dumped += bytes >> 10;
		}
	}
	printf("dumped %lu\n", dumped);
}

static void refuse(unsigned int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(77);
}

int main(int argc, char **argv)
{
	int nr = argc > 2 ? atoi(argv[2]) : 0;

	sem_init(&are_there, 0, 0);
	sem_init(&may_go, 0, 0);
	if (argc > 2 && !strcmp(argv[1], "threads")) {
		make_threads(nr, 0);
	} else if (argc > 2 && !strcmp(argv[1], "later")) {
		become_somebody(1);
		make_threads(nr, 20);
	} else if (argc > 2 && !strcmp(argv[1], "few")) {
		become_somebody(2);
		show_line(nr);
	} else if (argc > 2 && !strcmp(argv[1], "retries")) {
		retry(nr);
	} else if (argc > 1 && !strcmp(argv[1], "reserved")) {
		show_reserved();
	} else if (argc > 3 && !strcmp(argv[1], "refuse")) {
		refuse((unsigned int)nr);
		execvp(argv[3], argv + 3);
		perror(argv[3]);
		return 127;
	}
	return 0;
}
