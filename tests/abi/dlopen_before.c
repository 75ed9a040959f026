// SPDX-License-Identifier: Apache-2.0
/*
 * Libraries with system calls of their own that are there before the first thread: from a file that was
 * deleted or replaced, with text relocations, with an executable stack.
 */
#include "library.h"

#include <fcntl.h>
#include <sys/stat.h>

#define NR 4

static struct lib_syscalls lib[NR];

static void *uses(void *arg)
{
	struct lib_syscalls *l = arg;

	library_check_identity(l);
	return arg;
}

/* A copy of the library, opened; then its name is gone, or that of a FIFO that nobody writes to. */
static void open_copy(struct lib_syscalls *l, const char *path, int is_replaced)
{
	char buf[65536], copy[] = "/tmp/weft-abi-XXXXXX";
	int from = open(path, O_RDONLY), to = mkstemp(copy);
	ssize_t n;

	CHECK_SYS(from);
	CHECK_SYS(to);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		CHECK_EQ(write(to, buf, (size_t)n), n);
	close(from);
	close(to);
	library_open(l, copy);
	unlink(copy);
	if (is_replaced)
		CHECK_SYS(mkfifo(copy, 0600));
	join(start(uses, l));
	unlink(copy);
}

/* Some systems refuse such libraries: then there is nothing to compare. */
static void open_if_possible(struct lib_syscalls *l, const char *name, const char *what)
{
	char path[PATH_MAX + 64];
	void *handle;

	library_path(path, name);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle) {
		long (*address)(void);

		library_fill(l, handle);
		CHECK_EQ(l->gettid_at_load(), gettid());
		library_check_identity(l);
		join(start(uses, l));
		*(void **)&address = dlsym(handle, "lib_address");
		if (address)
			CHECK_EQ(address(), (long)address);
	}
	ok(what);
}

static void in_child(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		run();
		exit(finish());
	}
	CHECK_SYS(pid);
	reap(pid);
}

static void deleted(void)
{
	char path[PATH_MAX + 64];

	library_path(path, "lib_syscalls.so");
	open_copy(&lib[0], path, 0);
	ok("from a file that is deleted");
}

static void replaced(void)
{
	char path[PATH_MAX + 64];

	library_path(path, "lib_syscalls.so");
	open_copy(&lib[0], path, 1);
	ok("from a file that is now a FIFO");
}

static void text_relocations(void)
{
	open_if_possible(&lib[0], "lib_syscalls_textrel.so", "with text relocations");
}

static void executable_stack(void)
{
	open_if_possible(&lib[0], "lib_syscalls_execstack.so", "with an executable stack");
}

static void *nothing(void *arg)
{
	return arg;
}

/* Relocations may be written after weft saw the text: that it works is all that is promised. */
static void text_relocations_later(void)
{
	char path[PATH_MAX + 64];
	long (*address)(void);
	void *handle;

	join(start(nothing, NULL));
	library_path(path, "lib_syscalls_textrel.so");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle) {
		*(void **)&address = dlsym(handle, "lib_address");
		CHECK_EQ(address(), (long)address);
	}
	ok("with text relocations, opened later");
}

int main(void)
{
	in_child(deleted);
	in_child(replaced);
	in_child(text_relocations);
	in_child(executable_stack);
	in_child(text_relocations_later);
	return finish();
}
