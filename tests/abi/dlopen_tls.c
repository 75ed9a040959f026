// SPDX-License-Identifier: Apache-2.0
/*
 * dlopen of libraries with thread variables while 8 threads live: each has its own, initialised.
 */
#include <dlfcn.h>
#include <limits.h>
#include "check.h"

#define NR 8

static pthread_barrier_t opened;
static long (*add)(long);
static long initial;

static void *library(const char *name)
{
	char path[PATH_MAX + 64];
	ssize_t len = readlink("/proc/self/exe", path, PATH_MAX);

	CHECK_SYS(len);
	while (len > 0 && path[len - 1] != '/')
		len--;
	snprintf(path + len, 64, "%s", name);
	void *handle = dlopen(path, RTLD_NOW);

	if (!handle) {
		dprintf(2, "%s\n", dlerror());
		_exit(1);
	}
	return handle;
}

static void *uses(void *arg)
{
	long mine = (long)(intptr_t)arg;

	pthread_barrier_wait(&opened);
	for (int i = 1; i <= 200; i++) {
		CHECK_EQ(add(mine), initial + i * mine);
		sched_yield();
	}
	return NULL;
}

static void try_library(const char *name, const char *function, long value)
{
	pthread_t t[NR];
	long (*fn)(long);

	pthread_barrier_init(&opened, NULL, NR + 1);
	initial = value;
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(uses, (void *)(i + 1));
	void *handle = library(name);

	*(void **)&fn = dlsym(handle, function);
	CHECK(fn != NULL);
	add = fn;
	pthread_barrier_wait(&opened);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	CHECK_EQ(add(1), value + 1);
	/* Threads made after the dlopen start from the initial values too. */
	pthread_barrier_destroy(&opened);
	pthread_barrier_init(&opened, NULL, 1);
	join(start(uses, (void *)9));
	pthread_barrier_destroy(&opened);
	ok(function);
	dlclose(handle);
}

int main(void)
{
	try_library("lib_initial_exec.so", "lib_initial_exec_add", 1000);
	try_library("lib_dynamic_tls.so", "lib_dynamic_tls_add", 500);
	return finish();
}
