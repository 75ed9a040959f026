// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that waits in a loop that ends where its page does, or that may be run and not read, is preempted like all others.
 */
#include "check.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

/* pause; cmpl $0, (%rdi); je to the pause; ret */
static const unsigned char loop[] = { 0xf3, 0x90, 0x83, 0x3f, 0x00, 0x74, 0xf9, 0xc3 };

static int is_over;
static void (*code)(int *);

static void *waits(void *arg)
{
	code(&is_over);
	return arg;
}

/* main computes meanwhile, for some slices. */
static void run(const char *what)
{
	struct timespec until, now;
	pthread_t t[2];

	STORE(&is_over, 0);
	for (int i = 0; i < 2; i++)
		t[i] = start(waits, NULL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - until.tv_sec) * 1000 + (now.tv_nsec - until.tv_nsec) / MS < 60);
	STORE(&is_over, 1);
	for (int i = 0; i < 2; i++)
		join(t[i]);
	ok(what);
}

int main(void)
{
	unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	memcpy(pages + PAGE - sizeof(loop), loop, sizeof(loop));
	code = (void (*)(int *))(void *)(pages + PAGE - sizeof(loop));
	CHECK_EQ(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
	CHECK_EQ(mprotect(pages, PAGE, PROT_READ | PROT_EXEC), 0);
	run("at the end of a page");
	CHECK_EQ(mprotect(pages, PAGE, PROT_EXEC), 0);
	run("in a page that is not to be read");
	return finish();
}
