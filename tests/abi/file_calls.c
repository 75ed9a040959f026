// SPDX-License-Identifier: Apache-2.0
/*
 * Files by many threads at once: reads and writes of every kind, copies inside the kernel, and what waits for the disk.
 */
#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define NR 8
#define BYTES 300000

static char dir[] = "/tmp/weft-files-XXXXXX";

static int make_file(const char *name, int nr)
{
	char path[100];
	int fd;

	snprintf(path, sizeof(path), "%s/%s-%d", dir, name, nr);
	fd = (int)CHECK_SYS(open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
	CHECK_SYS(unlink(path));
	return fd;
}

static char byte_at(int seed, size_t i)
{
	return (char)(i * 31 + i / 997 + (size_t)seed);
}

static void check_bytes(const char *buf, size_t from, size_t len, int seed)
{
	size_t nr_wrong = 0;

	for (size_t i = 0; i < len; i++)
		nr_wrong += buf[i] != byte_at(seed, from + i);
	CHECK_EQ(nr_wrong, 0);
}

static void fill(int fd, char *buf, int seed)
{
	struct iovec iov[3] = { { buf, 1000 },
				{ buf + 1000, 0 },
				{ buf + 1000, BYTES / 2 - 1000 } };

	for (size_t i = 0; i < BYTES; i++)
		buf[i] = byte_at(seed, i);
	CHECK_EQ(writev(fd, iov, 3), BYTES / 2);
	CHECK_EQ(pwrite(fd, buf + BYTES / 2, 1000, BYTES / 2), 1000);
	iov[0] = (struct iovec){ buf + BYTES / 2 + 1000, BYTES / 2 - 1000 };
	CHECK_EQ(pwritev2(fd, iov, 1, BYTES / 2 + 1000, RWF_DSYNC), BYTES / 2 - 1000);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), BYTES / 2);
}

static void read_back(int fd, char *buf, int seed)
{
	struct iovec iov[2] = { { buf, 4096 }, { buf + 4096, BYTES } };

	memset(buf, 0, BYTES);
	CHECK_EQ(pread(fd, buf, 5000, 70000), 5000);
	check_bytes(buf, 70000, 5000, seed);
	CHECK_EQ(preadv(fd, iov, 2, 1), BYTES - 1);
	check_bytes(buf, 1, BYTES - 1, seed);
	CHECK_EQ(preadv2(fd, iov, 2, 2, 0), BYTES - 2);
	check_bytes(buf, 2, BYTES - 2, seed);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(read(fd, buf, BYTES + 1), BYTES);
	check_bytes(buf, 0, BYTES, seed);
	CHECK_EQ(read(fd, buf, 1), 0);
	CHECK_EQ(readv(fd, iov, 2), 0);
	CHECK_EQ(pread(fd, buf, 1, BYTES), 0);
}

static void copy(int from, int to)
{
	loff_t in = 0, out = 0;

	while (in < BYTES)
		if (CHECK_SYS(copy_file_range(from, &in, to, &out, (size_t)(BYTES - in), 0)) <= 0)
			break;
	CHECK_EQ(in, BYTES);
	CHECK_EQ(out, BYTES);
	CHECK_EQ(copy_file_range(from, &in, to, &out, 1, 0), 0);
}

/* All but syncfs() and sync(), which wait for what others have written as well. */
static void to_disk(int fd, int seed)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	char c;

	CHECK(map != MAP_FAILED);
	check_bytes(map, 0, BYTES, seed);
	map[5] ^= 1;
	CHECK_SYS(msync(map, page, MS_SYNC));
	CHECK_SYS(msync(map, page, MS_ASYNC));
	CHECK_EQ(pread(fd, &c, 1, 5), 1);
	CHECK_EQ(c, map[5]);
	CHECK_EQ(munmap(map, BYTES), 0);
	CHECK_SYS(fsync(fd));
	CHECK_SYS(fdatasync(fd));
	CHECK_SYS(sync_file_range(fd, 0, 4096,
				  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					  SYNC_FILE_RANGE_WAIT_AFTER));
	CHECK_SYS(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	CHECK_SYS(readahead(fd, 0, 4096));
	CHECK_EQ(pread(fd, &c, 1, 6), 1);
	CHECK_EQ(c, byte_at(seed, 6));
}

static void lengths(int fd)
{
	struct stat st;

	CHECK_EQ(posix_fallocate(fd, 0, BYTES + 5), 0);
	CHECK_SYS(fstat(fd, &st));
	CHECK_EQ(st.st_size, BYTES + 5);
	CHECK_SYS(ftruncate(fd, 10));
	CHECK_SYS(fstat(fd, &st));
	CHECK_EQ(st.st_size, 10);
}

static void *uses_files(void *arg)
{
	int seed = (int)(intptr_t)arg, a = make_file("a", seed), b = make_file("b", seed);
	char *buf = malloc(BYTES + 4096);

	fill(a, buf, seed);
	read_back(a, buf, seed);
	copy(a, b);
	read_back(b, buf, seed);
	to_disk(b, seed);
	lengths(b);
	free(buf);
	close(a);
	close(b);
	return NULL;
}

static int shared_file;

static void *appends(void *arg)
{
	char line[32];

	for (int i = 0; i < 200; i++) {
		int len = snprintf(line, sizeof(line), "%d %d\n", (int)(intptr_t)arg, i);

		CHECK_EQ(write(shared_file, line, (size_t)len), len);
	}
	return NULL;
}

/* The lines of each thread are whole and in order. */
static void check_lines(void)
{
	FILE *f = fdopen(dup(shared_file), "r");
	int next[NR] = { 0 }, who, nr, sum = 0;

	rewind(f);
	while (fscanf(f, "%d %d\n", &who, &nr) == 2 && who >= 0 && who < NR) {
		CHECK_EQ(nr, next[who]);
		next[who]++;
		sum++;
	}
	CHECK_EQ(sum, NR * 200);
	fclose(f);
}

int main(void)
{
	pthread_t t[NR];

	CHECK(mkdtemp(dir) != NULL);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(uses_files, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("each thread with files of its own");
	shared_file = make_file("lines", 0);
	CHECK_SYS(fcntl(shared_file, F_SETFL, O_APPEND));
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(appends, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	check_lines();
	ok("many append to one");
	CHECK_SYS(rmdir(dir));
	return finish();
}
