// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries with system calls of their own, opened while threads run: known from their constructor on,
 * blocking like those of libc, waking one another, and closed and opened again.
 */
#include "library.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define NR 8
#define ROUNDS 50
#define MANY 400

static struct lib_syscalls lib;
static unsigned word;
static int nr_waiting;

static void *waits(void *arg)
{
	ADD(&nr_waiting, 1);
	while (LOAD(&word) == 0)
		(void)lib.futex_wait(&word, 0);
	library_check_identity(&lib);
	return arg;
}

/* More waiters than workers: one that held its worker would keep the waker from running. */
static void wakes_across_modules(void)
{
	pthread_t t[NR];

	STORE(&word, 0);
	STORE(&nr_waiting, 0);
	for (int i = 0; i < NR; i++)
		t[i] = start(waits, NULL);
	while (LOAD(&nr_waiting) < NR)
		sched_yield();
	let_others_block();
	STORE(&word, 1);
	CHECK_SYS(syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, NR));
	for (int i = 0; i < NR; i++)
		join(t[i]);
}

static int fds[2];

static void *reads(void *arg)
{
	char c = 0;

	CHECK_EQ(lib.read(fds[0], &c, 1), 1);
	CHECK_EQ(c, 'x');
	return arg;
}

static void reads_block(void)
{
	pthread_t t[NR];

	CHECK_SYS(pipe(fds));
	for (int i = 0; i < NR; i++)
		t[i] = start(reads, NULL);
	let_others_block();
	for (int i = 0; i < NR; i++)
		CHECK_EQ(write(fds[1], "x", 1), 1);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	close(fds[0]);
	close(fds[1]);
}

static void use(const char *what)
{
	CHECK_EQ(lib.gettid_at_load(), gettid());
	library_check_identity(&lib);
	wakes_across_modules();
	reads_block();
	ok(what);
}

static void *nothing(void *arg)
{
	return arg;
}

static void copy_to(int to, const char *path)
{
	char buf[65536];
	ssize_t n;
	int from = open(path, O_RDONLY);

	CHECK_SYS(from);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	close(from);
}

/* A file without a name, and one whose name is gone before anybody looks for it. */
static void from_memory_and_deleted(const char *path)
{
	char name[64], copy[] = "/tmp/weft-abi-XXXXXX";
	int fd = memfd_create("library", 0);

	CHECK_SYS(fd);
	copy_to(fd, path);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	library_open(&lib, name);
	close(fd);
	use("from a memory file");
	dlclose(lib.handle);

	fd = mkstemp(copy);
	CHECK_SYS(fd);
	copy_to(fd, path);
	CHECK_SYS(fchmod(fd, 0755));
	close(fd);
	library_open(&lib, copy);
	unlink(copy);
	use("from a file that was deleted");
	dlclose(lib.handle);
}

/* The same addresses again and again, and other modules in them. */
static void opened_again(const char *path, const char *other)
{
	for (int i = 0; i < ROUNDS; i++) {
		library_open(&lib, i % 3 == 2 ? other : path);
		CHECK_EQ(lib.gettid_at_load(), gettid());
		library_check_identity(&lib);
		if (i % 10 == 0)
			wakes_across_modules();
		dlclose(lib.handle);
	}
	ok("opened again");
}

static int nr_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int nr = 0, c;

	CHECK(f != NULL);
	while (f && (c = getc_unlocked(f)) != EOF)
		nr += c == '\n';
	if (f)
		fclose(f);
	return nr;
}

/* The memory that a library has cost is given back, or serves the next one. */
static void leaves_nothing(const char *path, const char *other)
{
	int before = 0;

	for (int i = 0; i < MANY; i++) {
		library_open(&lib, i % 2 ? other : path);
		CHECK_EQ(lib.gettid(), gettid());
		dlclose(lib.handle);
		if (i == MANY / 4)
			before = nr_mappings();
	}
	CHECK(nr_mappings() <= before + 4); /* of the heap, and of what others do meanwhile */
	ok("nothing is left of what was closed");
}

int main(void)
{
	char path[PATH_MAX + 64], big[PATH_MAX + 64];

	library_path(path, "lib_syscalls.so");
	library_path(big, "lib_syscalls_big.so");
	join(start(nothing, NULL));
	library_open(&lib, path);
	use("opened after the first thread");
	dlclose(lib.handle);
	library_open(&lib, big);
	use("of 3 MiB");
	dlclose(lib.handle);
	from_memory_and_deleted(path);
	opened_again(path, big);
	leaves_nothing(path, big);
	return finish();
}
