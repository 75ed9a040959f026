// SPDX-License-Identifier: Apache-2.0
/* A thread that gives up rights for files by Landlock, and so do those that it makes; the others keep theirs. */
#include "beside.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_lsm_get_self_attr
#define SYS_lsm_get_self_attr 459
#define SYS_lsm_list_modules 461
#endif
#define LANDLOCK 110 /* LSM_ID_LANDLOCK */
#define CURRENT 100  /* LSM_ATTR_CURRENT */
#define ASK_VERSION 1
#define PATH_BENEATH 1
#define WRITE_FILE (1 << 1)
#define READ_FILE (1 << 2)

static char dir[] = "/tmp/weft-rights-XXXXXX";
static char inside[64], outside[64];
static pthread_barrier_t barrier;

struct rule {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

static void opens(const char *path, int flags, int error)
{
	int fd = open(path, flags);

	if (error) {
		CHECK_EQ(fd, -1);
		CHECK_EQ(errno, error);
	} else {
		CHECK_SYS(fd);
	}
	close(fd);
}

static void *may_less(void *arg)
{
	opens(inside, O_RDONLY, 0);
	opens(inside, O_WRONLY, EACCES);
	opens(outside, O_RDONLY, EACCES);
	return arg;
}

static void *gives_up(void *arg)
{
	uint64_t handled = READ_FILE | WRITE_FILE;
	struct rule rule = { READ_FILE, -1 };
	int set = (int)CHECK_SYS(CALL(landlock_create_ruleset, &handled, sizeof(handled), 0));

	rule.parent = (int)CHECK_SYS(open(inside, O_PATH));
	CHECK_SYS(CALL(landlock_add_rule, set, PATH_BENEATH, &rule, 0));
	CHECK_ERRNO(CALL(landlock_add_rule, set, PATH_BENEATH, &rule, 1), EINVAL);
	close(rule.parent);
	CHECK_SYS(CALL(landlock_restrict_self, set, 0));
	close(set);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 5; i++) {
		may_less(NULL);
		sched_yield();
	}
	join(start(may_less, NULL));
	pthread_barrier_wait(&barrier);
	return arg;
}

static void *keeps_rights(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 5; i++) {
		opens(outside, O_RDWR, 0);
		sched_yield();
	}
	pthread_barrier_wait(&barrier);
	opens(inside, O_RDWR, 0);
	return arg;
}

/* The rules that are in force, by number. */
static void *names_modules(void *arg)
{
	uint64_t ids[32] = { 0 };
	uint32_t bytes = sizeof(ids);
	long nr = CALL(lsm_list_modules, ids, &bytes, 0);
	char attr[1024];

	if (is_refused(nr))
		return NULL;
	CHECK_EQ(bytes, (uint32_t)CHECK_SYS(nr) * sizeof(ids[0]));
	for (int i = 0; i < nr; i++)
		if (ids[i] == LANDLOCK)
			arg = NULL;
	CHECK(!arg);
	bytes = sizeof(attr);
	nr = CALL(lsm_get_self_attr, CURRENT, attr, &bytes, 0);
	if (nr == -1)
		CHECK(is_refused(-1)); /* none that says something of a process */
	return NULL;
}

int main(void)
{
	pthread_t t[2];

	if (CALL(landlock_create_ruleset, NULL, 0L, ASK_VERSION) < 1)
		return EXIT_SKIP;
	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); /* here, as it would bind a thread */
	CHECK(mkdtemp(dir) != NULL);
	snprintf(inside, sizeof(inside), "%s/in", dir);
	snprintf(outside, sizeof(outside), "%s/out", dir);
	close((int)CHECK_SYS(creat(inside, 0600)));
	close((int)CHECK_SYS(creat(outside, 0600)));
	pthread_barrier_init(&barrier, NULL, 2);
	t[0] = start(gives_up, NULL);
	t[1] = start(keeps_rights, NULL);
	join(t[0]);
	join(t[1]);
	ok("rights of one thread");
	join(start(names_modules, dir));
	ok("the modules");
	CHECK_SYS(unlink(inside));
	CHECK_SYS(unlink(outside));
	CHECK_SYS(rmdir(dir));
	return finish();
}
