// SPDX-License-Identifier: Apache-2.0
/*
 * Many threads that read from the disk at once, beside the page cache and through it: each gets what lies at its place,
 * whole, whatever signals come, and fails as natively.
 */
#include "check.h"
#include "filter.h"

#include <fcntl.h>
#include <sys/mman.h>

#define NR 120
#define ROUNDS 12
#define BYTES (4 << 20)
#define BLOCK 4096
#define LONGEST (5 * BLOCK)

static int direct_fd, cached_fd; /* one file: the word at each place is the place */
static int is_over;
static long nr_signals;

static void open_file(void)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	uint64_t *words = malloc(BYTES);

	snprintf(path, sizeof(path), "%s/weft-disk-XXXXXX", folder ? folder : "/var/tmp");
	cached_fd = (int)CHECK_SYS(mkstemp(path));
	for (uint64_t i = 0; i < BYTES / sizeof(*words); i++)
		words[i] = i * sizeof(*words);
	CHECK_EQ(write(cached_fd, words, BYTES), BYTES);
	free(words);
	(void)CHECK_SYS(fsync(cached_fd));
	direct_fd = open(path, O_RDONLY | O_DIRECT);
	if (direct_fd < 0) /* not on every file system */
		direct_fd = (int)CHECK_SYS(open(path, O_RDONLY));
	(void)CHECK_SYS(unlink(path));
}

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Not inlined: a caller has pthread_cleanup_push(), which is a setjmp() to the compiler. */
__attribute__((noinline)) static void *aligned(size_t bytes)
{
	void *p = NULL;

	CHECK_PT(posix_memalign(&p, BLOCK, bytes));
	memset(p, 0xff, bytes);
	return p;
}

static int holds(const char *buffer, off_t at, ssize_t len)
{
	for (ssize_t i = 0; i < len; i++) {
		uint64_t word = (uint64_t)(at + i) & ~7ul;

		if ((unsigned char)buffer[i] != (unsigned char)(word >> (at + i) % 8 * 8))
			return 0;
	}
	return 1;
}

/* One at any place, of any length, up to beyond the end. */
static void read_cached(char *buffer, uint64_t *seed)
{
	off_t at = (off_t)(next_random(seed) % (BYTES + BLOCK));
	ssize_t len = (ssize_t)(next_random(seed) % LONGEST), want = BYTES - at;

	(void)posix_fadvise(cached_fd, at & ~(off_t)(BLOCK - 1), LONGEST, POSIX_FADV_DONTNEED);
	want = want < 0 ? 0 : want < len ? want : len;
	CHECK_EQ(pread(cached_fd, buffer, (size_t)len, at), want);
	CHECK(holds(buffer, at, want));
}

static void read_direct(char *buffer, uint64_t *seed)
{
	off_t at = (off_t)(next_random(seed) % (BYTES / BLOCK)) * BLOCK;
	ssize_t len = (ssize_t)(next_random(seed) % (LONGEST / BLOCK) + 1) * BLOCK;
	ssize_t want = BYTES - at < len ? BYTES - at : len;

	CHECK_EQ(pread(direct_fd, buffer, (size_t)len, at), want);
	CHECK(holds(buffer, at, want));
}

static void *reads(void *arg)
{
	uint64_t seed = 0x9e3779b97f4a7c15u * ((uint64_t)(uintptr_t)arg + 1);
	char *buffer = aligned(LONGEST);

	for (int i = 0; i < ROUNDS; i++) {
		read_direct(buffer, &seed);
		read_cached(buffer, &seed);
	}
	free(buffer);
	return NULL;
}

static void all_read(int nr)
{
	pthread_t t[NR];

	for (intptr_t i = 0; i < nr; i++)
		t[i] = start(reads, (void *)i);
	for (int i = 0; i < nr; i++)
		join(t[i]);
}

static void *fails(void *arg)
{
	char *buffer = aligned(BLOCK), *forbidden;
	int pipe_fds[2], write_only = (int)CHECK_SYS(open("/dev/null", O_WRONLY));
	int folder = (int)CHECK_SYS(open("/", O_RDONLY | O_DIRECTORY));

	(void)arg;
	forbidden = mmap(NULL, BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	(void)CHECK_SYS(pipe2(pipe_fds, O_CLOEXEC));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_ERRNO(pread(direct_fd, forbidden, BLOCK, 0), EFAULT);
		(void)posix_fadvise(cached_fd, 0, BYTES, POSIX_FADV_DONTNEED);
		CHECK_ERRNO(pread(cached_fd, forbidden, BLOCK, 0), EFAULT);
		CHECK_ERRNO(pread(direct_fd, buffer, BLOCK, -1), EINVAL);
		CHECK_ERRNO(pread(cached_fd, buffer, BLOCK, -1), EINVAL);
		CHECK_ERRNO(pread(-1, buffer, BLOCK, 0), EBADF);
		CHECK_ERRNO(pread(write_only, buffer, BLOCK, 0), EBADF);
		CHECK_ERRNO(pread(folder, buffer, BLOCK, 0), EISDIR);
		CHECK_ERRNO(pread(pipe_fds[0], buffer, BLOCK, 0), ESPIPE);
		CHECK_EQ(pread(direct_fd, buffer, BLOCK, BYTES), 0);
		CHECK_EQ(pread(cached_fd, buffer, 0, 0), 0);
	}
	munmap(forbidden, BLOCK);
	close(write_only);
	close(folder);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	free(buffer);
	return NULL;
}

static void errors_beside_reads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		t[i] = start(fails, NULL);
	all_read(NR / 2);
	for (int i = 0; i < 4; i++)
		join(t[i]);
}

static void handle(int sig)
{
	(void)sig;
	ADD(&nr_signals, 1);
}

/* Signals come as fast as they can: no read from a disk ends with EINTR, or in part. */
static void *sends_signals(void *arg)
{
	while (!LOAD(&is_over)) {
		(void)kill(getpid(), SIGUSR1);
		sched_yield();
	}
	return arg;
}

static void signals_do_not_end_reads(void)
{
	struct sigaction action = { .sa_handler = handle };
	pthread_t sender;

	(void)CHECK_SYS(sigaction(SIGUSR1, &action, NULL));
	STORE(&is_over, 0);
	sender = start(sends_signals, NULL);
	all_read(NR);
	STORE(&is_over, 1);
	join(sender);
	CHECK(LOAD(&nr_signals) > 0);
}

static void is_cleaned(void *arg)
{
	ADD((int *)arg, 1);
}

static int nr_cleaned;

static void *reads_for_ever(void *arg)
{
	uint64_t seed = (uint64_t)(uintptr_t)arg + 1;
	char *buffer = aligned(LONGEST);

	pthread_cleanup_push(free, buffer);
	pthread_cleanup_push(is_cleaned, &nr_cleaned);
	for (;;)
		read_direct(buffer, &seed);
	pthread_cleanup_pop(1);
	pthread_cleanup_pop(1);
	return NULL;
}

static void reads_are_cancelled(void)
{
	pthread_t t[NR];

	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(reads_for_ever, (void *)i);
	for (int i = 0; i < NR; i++)
		CHECK_PT(pthread_cancel(t[i]));
	for (int i = 0; i < NR; i++)
		CHECK(join(t[i]) == PTHREAD_CANCELED);
	CHECK_EQ(LOAD(&nr_cleaned), NR);
}

static int closing_fd, nr_reading;

static void *reads_until_closed(void *arg)
{
	char *buffer = aligned(BLOCK);
	uint64_t seed = (uint64_t)(uintptr_t)arg + 1;
	ssize_t got;

	ADD(&nr_reading, 1);
	do {
		off_t at = (off_t)(next_random(&seed) % (BYTES / BLOCK)) * BLOCK;

		got = pread(closing_fd, buffer, BLOCK, at);
		CHECK(got < 0 ? errno == EBADF : got == BLOCK && holds(buffer, at, got));
	} while (got > 0);
	free(buffer);
	return NULL;
}

static void closed_meanwhile(void)
{
	pthread_t t[NR];

	closing_fd = (int)CHECK_SYS(dup(direct_fd));
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(reads_until_closed, (void *)i);
	while (LOAD(&nr_reading) < NR)
		sched_yield();
	(void)CHECK_SYS(close(closing_fd));
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

static void *forks(void *arg)
{
	for (int i = 0; i < 4; i++) {
		pid_t pid = (pid_t)CHECK_SYS(fork());
		int status = -1;

		if (!pid) {
			all_read(8);
			_exit(finish());
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	return arg;
}

static void fork_beside_reads(void)
{
	pthread_t forker = start(forks, NULL);

	all_read(NR);
	join(forker);
}

static void filter_beside_reads(void)
{
	pthread_t t[NR / 2];

	for (intptr_t i = 0; i < NR / 2; i++)
		t[i] = start(reads, (void *)i);
	forbid_io_uring_enter();
	for (int i = 0; i < NR / 2; i++)
		join(t[i]);
	all_read(NR / 2);
}

int main(void)
{
	open_file();
	all_read(NR);
	ok("what lies there");
	errors_beside_reads();
	ok("errors");
	signals_do_not_end_reads();
	ok("signals");
	reads_are_cancelled();
	ok("cancellation");
	closed_meanwhile();
	ok("a descriptor that is closed");
	fork_beside_reads();
	ok("fork");
	filter_beside_reads();
	ok("a filter");
	return finish();
}
