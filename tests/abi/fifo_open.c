// SPDX-License-Identifier: Apache-2.0
/*
 * A FIFO opened from two threads: each open blocks until the other side comes.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include "check.h"

static char dir[] = "/tmp/weft-abi-XXXXXX";
static char path[64];

static void *reads(void *arg)
{
	int fd = (int)CHECK_SYS(open(path, O_RDONLY));
	char buf[16];
	long sum = 0;
	ssize_t len;

	while ((len = read(fd, buf, sizeof(buf))) > 0)
		sum += len;
	CHECK_EQ(len, 0);
	close(fd);
	(void)arg;
	return (void *)sum;
}

static void *writes(void *arg)
{
	int fd = (int)CHECK_SYS(open(path, O_WRONLY));

	for (int i = 0; i < 10; i++)
		CHECK_EQ(write(fd, "0123456789", 10), 10);
	close(fd);
	return arg;
}

int main(void)
{
	CHECK(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/fifo", dir);
	CHECK_SYS(mkfifo(path, 0600));
	CHECK_ERRNO(open(path, O_WRONLY | O_NONBLOCK), ENXIO);

	for (int i = 0; i < 20; i++) {
		int reader_first = i % 2;
		pthread_t a = start(reader_first ? reads : writes, NULL);

		if (i < 4)
			let_others_block();
		pthread_t b = start(reader_first ? writes : reads, NULL);
		void *first = join(a), *second = join(b);

		CHECK_EQ((intptr_t)(reader_first ? first : second), 100);
	}
	ok("20 meetings on a FIFO");
	CHECK_SYS(unlink(path));
	CHECK_SYS(rmdir(dir));
	return finish();
}
