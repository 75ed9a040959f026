// SPDX-License-Identifier: Apache-2.0
/*
 * A second libc, in a namespace of its own (dlmopen): its calls block and are the thread's own, like those of
 * the first.
 */
#include "library.h"

#define NR 6

static pid_t (*other_gettid)(void);
static ssize_t (*other_read)(int fd, void *p, size_t n);
static int fds[2];

static void *reads(void *arg)
{
	char c = 0;

	CHECK_EQ(other_read(fds[0], &c, 1), 1);
	CHECK_EQ(other_gettid(), gettid());
	return arg;
}

static void *open_space(const char *name)
{
	void *handle = dlmopen(LM_ID_NEWLM, name, RTLD_NOW);

	if (!handle) {
		dprintf(2, "%s\n", dlerror());
		_exit(1);
	}
	return handle;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	char path[PATH_MAX + 64];
	struct lib_syscalls lib;
	pthread_t t[NR];

	join(start(nothing, NULL));
	for (int round = 0; round < 3; round++) {
		void *libc = open_space("libc.so.6");

		*(void **)&other_gettid = dlsym(libc, "gettid");
		*(void **)&other_read = dlsym(libc, "read");
		CHECK(other_gettid != gettid);
		CHECK_SYS(pipe(fds));
		for (int i = 0; i < NR; i++)
			t[i] = start(reads, NULL);
		let_others_block();
		CHECK_EQ(write(fds[1], "123456", NR), NR);
		for (int i = 0; i < NR; i++)
			join(t[i]);
		close(fds[0]);
		close(fds[1]);
		dlclose(libc);
	}
	ok("a second libc");
	library_path(path, "lib_syscalls.so");
	library_fill(&lib, open_space(path));
	CHECK_EQ(lib.gettid_at_load(), gettid());
	library_check_identity(&lib);
	ok("a library with the libc of its namespace");
	dlclose(lib.handle);
	return finish();
}
