// SPDX-License-Identifier: Apache-2.0
/*
 * Keys: what a thread puts on its thread and process key rings is there when it looks again, on whatever kernel thread
 * it runs then, and is seen by those that it makes; not by those that were there before, which Linux gives their own.
 */
#include "beside.h"

#include <linux/keyctl.h>

#define NR 4

static pthread_barrier_t barrier;

static long search(int32_t ring, const char *name)
{
	return CALL(keyctl, (long)KEYCTL_SEARCH, (long)ring, "user", name, 0L);
}

static void check_key(long key, const char *want)
{
	char value[16] = "";

	CHECK_EQ(CALL(keyctl, (long)KEYCTL_READ, CHECK_SYS(key), value, (long)sizeof(value)),
		 strlen(want));
	CHECK_STR(value, want);
}

static void *inherits(void *arg)
{
	check_key(search(KEY_SPEC_PROCESS_KEYRING, arg), arg);
	CHECK_ERRNO(search(KEY_SPEC_THREAD_KEYRING, arg), ENOKEY);
	return arg;
}

/* Names of its own, and the one that all of them use with another value each. */
static void *has_keys(void *arg)
{
	int me = (int)(intptr_t)arg, other = (me + 1) % NR;
	char name[16], others[16];

	snprintf(name, sizeof(name), "weft:%d", me);
	snprintf(others, sizeof(others), "weft:%d", other);
	CHECK_SYS(CALL(add_key, "user", name, name, strlen(name), (long)KEY_SPEC_PROCESS_KEYRING));
	CHECK_SYS(CALL(add_key, "user", "all", name, strlen(name), (long)KEY_SPEC_THREAD_KEYRING));
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++) {
		check_key(search(KEY_SPEC_PROCESS_KEYRING, name), name);
		check_key(search(KEY_SPEC_THREAD_KEYRING, "all"), name);
		check_key(CALL(request_key, "user", name, NULL, 0L), name);
		CHECK_ERRNO(search(KEY_SPEC_PROCESS_KEYRING, others), ENOKEY);
		sched_yield();
	}
	join(start(inherits, name));
	pthread_barrier_wait(&barrier);
	return NULL;
}

static int may_have_keys;

static void *tries(void *arg)
{
	may_have_keys = CALL(keyctl, (long)KEYCTL_GET_KEYRING_ID, (long)KEY_SPEC_THREAD_KEYRING,
			     1L) != -1;
	if (!may_have_keys)
		CHECK(is_refused(-1) || errno == EDQUOT);
	return arg;
}

/* Without one, the first key that is put there makes one. */
static void *has_session(void *joins)
{
	if (joins)
		CHECK_SYS(CALL(keyctl, (long)KEYCTL_JOIN_SESSION_KEYRING, NULL));
	CHECK_SYS(CALL(add_key, "user", "weft", "session", 7L, (long)KEY_SPEC_SESSION_KEYRING));
	pthread_barrier_wait(&barrier);
	check_key(search(KEY_SPEC_SESSION_KEYRING, "weft"), "session");
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void *has_another_session(void *arg)
{
	pthread_barrier_wait(&barrier);
	CHECK(search(KEY_SPEC_SESSION_KEYRING, "weft") == -1);
	pthread_barrier_wait(&barrier);
	return arg;
}

static void sessions(void *joins)
{
	pthread_t a = start(has_session, joins), b = start(has_another_session, NULL);

	join(a);
	join(b);
}

static long ring(int32_t which)
{
	return CALL(keyctl, (long)KEYCTL_GET_KEYRING_ID, (long)which, 0L);
}

int main(void)
{
	pthread_t t[NR];

	join(start(tries, NULL));
	if (!may_have_keys)
		return EXIT_SKIP;
	pthread_barrier_init(&barrier, NULL, NR);
	for (intptr_t i = 0; i < NR; i++)
		t[i] = start(has_keys, (void *)i);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("rings of threads and of the process");
	pthread_barrier_destroy(&barrier);
	pthread_barrier_init(&barrier, NULL, 2);
	sessions(&barrier);
	if (ring(KEY_SPEC_SESSION_KEYRING) == ring(KEY_SPEC_USER_SESSION_KEYRING))
		sessions(NULL); /* else it would be put into the one of who started this */
	ok("a session of a thread's own");
	return finish();
}
