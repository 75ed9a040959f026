// SPDX-License-Identifier: Apache-2.0
/* Memory: its end, moving, locking, looking, sealing and protecting it, and policies of nodes. */
#include "beside.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
#ifndef SYS_map_shadow_stack
#define SYS_map_shadow_stack 453
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif

static size_t page;

static char *map_pages(size_t nr)
{
	char *p = mmap(NULL, nr * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* Nobody else here moves the end: small blocks only, and those are there. */
static void end_of_heap(void)
{
	char *end = (char *)CALL(brk, 0);

	CHECK_EQ(CALL(brk, end + 2 * page), (long)(end + 2 * page));
	end[page] = 1;
	CHECK_EQ(CALL(brk, 0), (long)(end + 2 * page));
	CHECK_EQ(CALL(brk, end), (long)end);
}

static void move(void)
{
	char *p = map_pages(2), *q = map_pages(8);

	p[0] = 'a';
	p[page] = 'b';
	p = (char *)CALL(mremap, p, 2 * page, 4 * page, MREMAP_MAYMOVE);
	CHECK_EQ(p[page], 'b');
	p[3 * page] = 'd';
	CHECK_EQ(CALL(mremap, p, 4 * page, 4 * page, MREMAP_MAYMOVE | MREMAP_FIXED, q), (long)q);
	CHECK_EQ(q[0], 'a');
	CHECK_EQ(q[3 * page], 'd');
	CHECK_EQ(CALL(mremap, q, 4 * page, page, 0), (long)q);
	CHECK_SYS(munmap(q, page)); /* what lies behind may be somebody else's now */
	CHECK_SYS(munmap(q + 4 * page, 4 * page));
}

static void presence(void)
{
	char *p = map_pages(3);
	unsigned char in[3];

	p[page] = 1;
	in[1] = 0;
	if (CALL(mlock, p + page, page) == 0) {
		CHECK_SYS(CALL(mincore, p, 3 * page, in));
		CHECK_EQ(in[1] & 1, 1);
		CHECK_SYS(CALL(munlock, p + page, page));
	} else {
		CHECK(errno == ENOMEM || errno == EPERM || errno == EAGAIN); /* the limit */
		CHECK_SYS(CALL(mincore, p, 3 * page, in));
	}
	if (CALL(mlock2, p, 2 * page, MLOCK_ONFAULT) == 0)
		CHECK_SYS(CALL(munlock, p, 2 * page));
	else
		CHECK(errno == ENOMEM || errno == EAGAIN || is_refused(-1));
	CHECK_SYS(munmap(p, 3 * page));
	CHECK_ERRNO(CALL(mincore, p + 1, page, in), EINVAL);
}

static void files_in_memory(void)
{
	int fd = (int)CHECK_SYS(CALL(memfd_create, "pages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	struct {
		uint64_t from, bytes;
	} range = { 0, 0 };
	struct {
		uint64_t cache, dirty, writeback, evicted, recently;
	} stat = { 0 };
	char *p;

	CHECK_SYS(ftruncate(fd, (off_t)(2 * page)));
	CHECK_EQ(pwrite(fd, "0", 1, 0), 1);
	CHECK_EQ(pwrite(fd, "1", 1, (off_t)page), 1);
	if (!is_refused(CALL(cachestat, fd, &range, &stat, 0)))
		CHECK(stat.cache + stat.evicted >= 2);

	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(p != MAP_FAILED);
	CHECK_EQ(p[0], '0');
	if (!is_refused(CALL(remap_file_pages, p, page, 0, 1, 0)))
		CHECK_EQ(p[0], '1');
	CHECK_EQ(p[page], '1');
	CHECK_SYS(munmap(p, 2 * page));
	CHECK_SYS(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK_ERRNO(pwrite(fd, "2", 1, 0), EPERM);
	close(fd);
}

static void secret(void)
{
	long fd = CALL(memfd_secret, O_CLOEXEC);
	char *p;

	if (is_refused(fd))
		return;
	CHECK_SYS(ftruncate((int)CHECK_SYS(fd), (off_t)page));
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	if (p == MAP_FAILED) {
		CHECK_EQ(errno, EAGAIN); /* the limit of locked memory */
	} else {
		p[5] = 'x';
		CHECK_EQ(p[5], 'x');
		CHECK_EQ(pread((int)fd, p, 1, 0), -1);
		CHECK_SYS(munmap(p, page));
	}
	close((int)fd);
}

/* Cannot be taken back, so only once. */
static void seal(void)
{
	static char *sealed;

	if (!sealed) {
		sealed = map_pages(1);
		sealed[0] = 's';
	}
	if (is_refused(CALL(mseal, sealed, page, 0)))
		return;
	CHECK_SYS(CALL(mseal, sealed, page, 0));
	CHECK_ERRNO(munmap(sealed, page), EPERM);
	CHECK_ERRNO(mprotect(sealed, page, PROT_READ), EPERM);
	sealed[0]++;
}

/* A processor without such keys has none to give. */
static void keys(void)
{
	char *p = map_pages(1);
	long key = CALL(pkey_alloc, 0, 0);

	if (key == -1) {
		CHECK(errno == ENOSPC || errno == EINVAL || is_refused(-1));
		if (!is_refused(CALL(pkey_mprotect, p, page, PROT_READ, -1)))
			CHECK_EQ(p[0], 0);
		CHECK(CALL(pkey_free, 1) == -1);
	} else {
		/* Not touched meanwhile: rights are a kernel thread's. */
		CHECK_SYS(CALL(pkey_mprotect, p, page, PROT_READ | PROT_WRITE, key));
		CHECK_SYS(CALL(pkey_mprotect, p, page, PROT_READ | PROT_WRITE, 0));
		p[0] = 1;
		CHECK_SYS(CALL(pkey_free, key));
		CHECK_ERRNO(CALL(pkey_free, key), EINVAL);
	}
	CHECK_SYS(munmap(p, page));
}

static void shadow_stack(void)
{
	long p = CALL(map_shadow_stack, 0L, page, 0);

	if (is_refused(p))
		return;
	CHECK_EQ(*(volatile long *)CHECK_SYS(p), 0);
	CHECK_SYS(munmap((void *)p, page));
}

static int mode_of_memory(char *p)
{
	int mode = -1;

	CHECK_SYS(CALL(get_mempolicy, &mode, NULL, 0L, p, p ? (long)MPOL_F_ADDR : 0L));
	return mode;
}

static pthread_barrier_t barrier;
static int first_mode;

/* Until the other one has looked as well. */
static void *prefers_a_node(void *arg)
{
	unsigned long node = 1;

	CHECK_SYS(CALL(set_mempolicy, MPOL_PREFERRED, &node, 8L * sizeof(node)));
	CHECK_EQ(mode_of_memory(NULL), MPOL_PREFERRED);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	CHECK_EQ(mode_of_memory(NULL), MPOL_PREFERRED);
	CHECK_SYS(CALL(set_mempolicy, first_mode, NULL, 0L));
	CHECK_EQ(mode_of_memory(NULL), first_mode);
	return arg;
}

/* A thread's policy is its own; that of a piece of memory is everybody's. */
static void policies(void)
{
	unsigned long node = 1;
	char *p = map_pages(1);

	if (first_mode == MPOL_DEFAULT &&
	    !is_refused(CALL(mbind, p, page, MPOL_BIND, &node, 8L * sizeof(node), 0))) {
		pthread_t t = start(prefers_a_node, NULL);

		CHECK_EQ(mode_of_memory(p), MPOL_BIND);
		if (!is_refused(CALL(set_mempolicy_home_node, p, page, 0L, 0L)))
			p[0] = 1;
		pthread_barrier_wait(&barrier);
		CHECK_EQ(mode_of_memory(NULL), first_mode);
		pthread_barrier_wait(&barrier);
		join(t);
	}
	CHECK_SYS(munmap(p, page));
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	pthread_barrier_init(&barrier, NULL, 2);
	if (CALL(get_mempolicy, &first_mode, NULL, 0L, NULL, 0L))
		first_mode = -1;
	start_beside();
	calls(end_of_heap, "the end of the heap");
	calls(move, "moving");
	calls(presence, "what is there, and locked");
	calls(files_in_memory, "files in memory");
	calls(secret, "secret memory");
	calls(seal, "sealed memory");
	calls(keys, "protection keys");
	calls(shadow_stack, "shadow stacks");
	calls(policies, "policies of nodes");
	stop_beside();
	return finish();
}
