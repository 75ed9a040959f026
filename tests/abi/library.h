// SPDX-License-Identifier: Apache-2.0
/*
 * Opening the libraries that lie next to a program, and lib_syscalls.c in one of its builds.
 *
 * Included by: the dlopen_*.c programs.
 */
#ifndef WEFT_TESTS_ABI_LIBRARY_H
#define WEFT_TESTS_ABI_LIBRARY_H

#include "check.h"

#include <dlfcn.h>
#include <limits.h>

struct lib_syscalls {
	void *handle;
	long (*gettid)(void);
	long (*gettid_bare)(void);
	long (*gettid_at_load)(void);
	long (*call)(long nr, long a, long b, long c, long d);
	long (*futex_wait)(unsigned *word, unsigned expected);
	long (*read)(int fd, void *p, size_t n);
};

/* The path of a file next to this program. */
static inline void library_path(char out[PATH_MAX + 64], const char *name)
{
	ssize_t len = readlink("/proc/self/exe", out, PATH_MAX);

	CHECK_SYS(len);
	while (len > 0 && out[len - 1] != '/')
		len--;
	snprintf(out + len, 64, "%s", name);
}

static inline void library_fill(struct lib_syscalls *lib, void *handle)
{
	lib->handle = handle;
	*(void **)&lib->gettid = dlsym(handle, "lib_gettid");
	*(void **)&lib->gettid_bare = dlsym(handle, "lib_gettid_bare");
	*(void **)&lib->gettid_at_load = dlsym(handle, "lib_gettid_at_load");
	*(void **)&lib->call = dlsym(handle, "lib_call");
	*(void **)&lib->futex_wait = dlsym(handle, "lib_futex_wait");
	*(void **)&lib->read = dlsym(handle, "lib_read");
}

static inline void library_open(struct lib_syscalls *lib, const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		dprintf(2, "%s\n", dlerror());
		_exit(1);
	}
	library_fill(lib, handle);
}

/* A call in the library does what a call of libc does: it is the same thread for both. */
static inline void library_check_identity(const struct lib_syscalls *lib)
{
	CHECK_EQ(lib->gettid(), gettid());
	CHECK_EQ(lib->gettid_bare(), gettid());
	CHECK_EQ(lib->call(SYS_gettid, 0, 0, 0, 0), gettid());
}

#endif
