// SPDX-License-Identifier: Apache-2.0
/*
 * A read from a file of which a part is in the page cache returns all that was asked for, however many signals come
 * meanwhile, and beside threads that want the processor.
 */
#include "check.h"
#include "disturb.h"

#include <fcntl.h>

#define ROUNDS 1500
#define BLOCK 4096
#define LEN (3 * BLOCK)

static int fd;

static void *yields(void *arg)
{
	while (!LOAD(&is_over))
		sched_yield();
	return arg;
}

static void open_file(void)
{
	const char *folder = getenv("TMPDIR");
	char path[4096], block[BLOCK];

	snprintf(path, sizeof(path), "%s/weft-reads-XXXXXX", folder ? folder : "/var/tmp");
	fd = (int)CHECK_SYS(mkstemp(path));
	for (int i = 0; i < LEN / BLOCK; i++) {
		memset(block, 'a' + i, BLOCK);
		CHECK_EQ(write(fd, block, BLOCK), BLOCK);
	}
	CHECK_SYS(fsync(fd));
	(void)posix_fadvise(fd, 0, LEN, POSIX_FADV_RANDOM); /* nothing is read ahead */
	CHECK_SYS(unlink(path));
}

/* The first block stays in the page cache, the others have to be read again. */
static void forget_rest(void)
{
	char c;

	(void)posix_fadvise(fd, BLOCK, LEN - BLOCK, POSIX_FADV_DONTNEED);
	CHECK_EQ(pread(fd, &c, 1, 0), 1);
}

static void check_whole(const char *buffer, ssize_t got)
{
	CHECK_EQ(got, LEN);
	for (int i = 0; i < LEN; i++)
		if (buffer[i] != 'a' + i / BLOCK) {
			CHECK_EQ(buffer[i], 'a' + i / BLOCK);
			break;
		}
}

int main(void)
{
	pthread_t t, others[2];
	static char buffer[LEN];

	open_file();
	t = begin_disturbing();
	for (int i = 0; i < 2; i++)
		others[i] = start(yields, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		forget_rest();
		memset(buffer, 0, LEN);
		check_whole(buffer, pread(fd, buffer, LEN, 0));
		forget_rest();
		memset(buffer, 0, LEN);
		CHECK_SYS(lseek(fd, 0, SEEK_SET));
		check_whole(buffer, read(fd, buffer, LEN));
		CHECK_EQ(lseek(fd, 0, SEEK_CUR), LEN);
	}
	STORE(&is_over, 1);
	join(t);
	for (int i = 0; i < 2; i++)
		join(others[i]);
	ok("reads are whole");
	return finish();
}
