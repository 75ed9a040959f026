// SPDX-License-Identifier: Apache-2.0
/* A program whose library writes the GS base, and is opened when there are threads: some compute, some wait. */
#if defined(__x86_64__)
#include "own_base.h"

#include "library.h"

static int may_end;

static void *computes(void *arg)
{
	while (!LOAD(&may_end))
		;
	/* It has been nowhere but in its own code since before the library was there. */
	take(arg);
	CHECK(has(arg));
	return calls(NULL);
}

static void *waits(void *arg)
{
	pthread_mutex_t *lock = arg;
	struct block b;

	CHECK_PT(pthread_mutex_lock(lock));
	take(&b);
	CHECK(has(&b));
	CHECK_PT(pthread_mutex_unlock(lock));
	return NULL;
}

int main(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct block blocks[2];
	char path[PATH_MAX + 64];
	pthread_t t[4];
	void *handle;

	if (!has_base_insns()) {
		dprintf(2, "no WRGSBASE\n");
		return EXIT_SKIP;
	}
	CHECK_PT(pthread_mutex_lock(&lock));
	for (int i = 0; i < 2; i++) {
		t[i] = start(computes, &blocks[i]);
		t[i + 2] = start(waits, &lock);
	}
	let_others_block();
	library_path(path, "lib_own_base.so");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		dprintf(2, "%s\n", dlerror());
		return 1;
	}
	*(void **)&set_base = dlsym(handle, "lib_set_base");
	*(void **)&get_base = dlsym(handle, "lib_get_base");
	end_ns = now_ns() + RUN_NS;
	STORE(&may_end, 1);
	CHECK_PT(pthread_mutex_unlock(&lock));
	for (int i = 0; i < 4; i++)
		join(t[i]);
	ok("from when it is opened");
	run_all();
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
