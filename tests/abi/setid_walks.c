// SPDX-License-Identifier: Apache-2.0
/*
 * Users, groups and capabilities on random walks: calls of the family by one thread after the other, through libc (for
 * all threads), through syscall() and by an instruction of the program's own (for the caller alone), from whatever state
 * the last one has left. After each step every thread says who it is, and another process says what it sees of the
 * kernel's tasks: the same as natively, whatever else weft has kernel threads for. Root only.
 */
#include "beside.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define WALKS 64
#define STEPS 10
#define ACTORS 4 /* the first makes calls for all only, so somebody is as the process is */
#define SPARES 3 /* each leaves a kernel thread behind */
#define RING 20  /* more than wait on kernel threads of their own */
#define LINE 512
#define NR_SEEN 64

static sem_t go[ACTORS], done;
static struct step {
	int route, nr, is_over;
	long arg[3];
} todo;
static char said[ACTORS][128];
static int to_parent[2], to_child[2];
static char path[] = "/tmp/weft-walks-XXXXXX";
static sem_t *never; /* of several processes: a thread that waits for it needs the kernel */
static gid_t groups[4];
static int stop;
static uint64_t random_state;

static uint32_t any(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

enum route {
	BY_LIBC,
	BY_FUNCTION,
	BY_INSTRUCTION
};

static const char *const route_names[] = { "libc", "syscall()", "inline" };

enum {
	SET_EUID = 1000, /* of libc only */
	SET_EGID
};

static const struct family {
	int nr, nr_args, is_user;
	const char *name;
} family[] = {
	{ SYS_setuid, 1, 1, "setuid" },       { SYS_setreuid, 2, 1, "setreuid" },
	{ SYS_setresuid, 3, 1, "setresuid" }, { SYS_setresuid, 3, 1, "setresuid" },
	{ SET_EUID, 1, 1, "seteuid" },        { SYS_setgid, 1, 0, "setgid" },
	{ SYS_setregid, 2, 0, "setregid" },   { SYS_setresgid, 3, 0, "setresgid" },
	{ SET_EGID, 1, 0, "setegid" },        { SYS_setgroups, 0, 0, "setgroups" },
	{ SYS_capset, 0, 0, "capset" },
};

static long by_instruction(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	if (ret < 0) {
		errno = (int)-ret;
		return -1;
	}
	return ret;
}

static long by_libc(const struct step *s)
{
	const unsigned int a = (unsigned int)s->arg[0], b = (unsigned int)s->arg[1],
			   c = (unsigned int)s->arg[2];

	switch (s->nr) {
	case SYS_setuid:
		return setuid(a);
	case SYS_setreuid:
		return setreuid(a, b);
	case SYS_setresuid:
		return setresuid(a, b, c);
	case SET_EUID:
		return seteuid(a);
	case SYS_setgid:
		return setgid(a);
	case SYS_setregid:
		return setregid(a, b);
	case SYS_setresgid:
		return setresgid(a, b, c);
	case SET_EGID:
		return setegid(a);
	default:
		return setgroups((size_t)s->arg[0], groups);
	}
}

static long by_kernel(const struct step *s)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { { 0 } };
	long a = s->arg[0], b = s->arg[1], c = s->arg[2];

	if (s->nr == SYS_setgroups)
		b = (long)groups;
	if (s->nr == SYS_capset) {
		caps[0].permitted = (uint32_t)s->arg[0];
		caps[0].effective = (uint32_t)s->arg[1];
		a = (long)&header;
		b = (long)caps;
	}
	return s->route == BY_FUNCTION ? syscall(s->nr, a, b, c) : by_instruction(s->nr, a, b, c);
}

static void take_step(int i)
{
	long ret;

	errno = 0;
	ret = todo.route == BY_LIBC ? by_libc(&todo) : by_kernel(&todo);
	snprintf(said[i], sizeof(said[i]), "%ld %s", ret, errno ? strerror(errno) : "");
}

static void say_ids(int i)
{
	uid_t r, e, s, gr, ge, gs;

	getresuid(&r, &e, &s);
	getresgid(&gr, &ge, &gs);
	snprintf(said[i], sizeof(said[i]), "%u/%u/%u:%u/%u/%u", r, e, s, gr, ge, gs);
}

static void *acts(void *arg)
{
	int i = (int)(intptr_t)arg;

	for (;;) {
		while (sem_wait(&go[i]))
			;
		if (todo.is_over)
			return NULL;
		if (todo.nr)
			take_step(i);
		else
			say_ids(i);
		sem_post(&done);
	}
}

static void ask(int i)
{
	sem_post(&go[i]);
	while (sem_wait(&done))
		;
}

/* In a call that holds its kernel thread. */
static void *locks(void *arg)
{
	int fd = (int)(intptr_t)arg;

	CHECK_SYS(flock(fd, LOCK_EX));
	close(fd);
	return NULL;
}

static void *bound_sleeps(void *arg)
{
	CHECK_SYS(unshare(CLONE_FS));
	sem_post(&done);
	for (;;)
		pause();
	return arg;
}

static void *waits_for_others(void *arg)
{
	for (;;)
		while (sem_wait(never))
			;
	return arg;
}

static void *computes(void *arg)
{
	while (!LOAD(&stop))
		;
	return arg;
}

static void *reads_nothing(void *arg)
{
	int fds[2];
	char c;

	CHECK_SYS(pipe(fds));
	while (read(fds[0], &c, 1) < 0)
		;
	return arg;
}

/* The file is opened here: whoever runs later may not be allowed to. */
static pthread_t start_locking(void)
{
	int fd = open(path, O_RDWR);

	CHECK_SYS(fd);
	return start(locks, (void *)(intptr_t)fd);
}

static void make_company(int walk)
{
	pthread_t t[SPARES];
	int fd = open(path, O_RDWR);

	CHECK_SYS(flock(fd, LOCK_EX));
	for (int i = 0; i < SPARES; i++)
		t[i] = start_locking();
	sleep_ns(MS);
	CHECK_SYS(flock(fd, LOCK_UN));
	for (int i = 0; i < SPARES; i++)
		join(t[i]);
	CHECK_SYS(flock(fd, LOCK_EX)); /* until the end */
	(void)start_locking();
	start(bound_sleeps, NULL);
	while (sem_wait(&done))
		;
	if (walk % 8 == 0)
		for (int i = 0; i < RING; i++)
			start(waits_for_others, NULL);
	if (walk % 32 == 1) {
		start(reads_nothing, NULL);
		for (int i = 0; i < 4; i++)
			start(computes, NULL);
		sleep_ns(
			30 *
			MS); /* all workers compute: weft polls beside them, it may or may not have begun */
	}
}

static long pick_id(int is_user, int may_stay)
{
	static const long users[] = { 0, 4321, 4322, -1 }, all_groups[] = { 0, 8765, 8766, -1 };
	uint32_t i = any(may_stay ? 4 : 3);

	return is_user ? users[i] : all_groups[i];
}

/* The thread that takes it. One step in four is the last one for all once more, from what has become of it since. */
static int plan(void)
{
	static struct step for_all;
	static const struct family *its_call;
	const uint32_t set_ids = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL;
	const struct family *call = &family[any(sizeof(family) / sizeof(family[0]))];
	int actor = (int)any(ACTORS);

	todo.route = actor && any(3) == 0 ? 1 + (int)any(2) : BY_LIBC;
	while ((call->nr == SYS_capset && todo.route == BY_LIBC) ||
	       (call->nr >= SET_EUID && todo.route != BY_LIBC))
		call = &family[any(sizeof(family) / sizeof(family[0]))];
	todo.nr = call->nr;
	for (int i = 0; i < 3; i++)
		todo.arg[i] = i < call->nr_args ? pick_id(call->is_user, call->nr_args > 1) : 0;
	if (call->nr == SYS_setgroups) {
		todo.arg[0] = any(5);
		for (int i = 0; i < 4; i++)
			groups[i] = 100 + any(20);
	}
	if (call->nr == SYS_capset) {
		todo.arg[0] = set_ids;
		todo.arg[1] = any(2) ? set_ids : 0;
	}
	if (its_call && any(4) == 0) {
		todo = for_all;
		call = its_call;
	} else if (todo.route == BY_LIBC) {
		for_all = todo;
		its_call = call;
	}
	dprintf(1, "%s(%ld, %ld, %ld) by %s of %d: ", call->name, todo.arg[0], todo.arg[1],
		todo.arg[2], route_names[todo.route], actor);
	return actor;
}

static void walk_along(int walk)
{
	const struct rlimit no_core = { 0, 0 };
	char c = 0;

	setrlimit(RLIMIT_CORE, &no_core);
	random_state = (uint64_t)walk + 1;
	sem_init(&done, 0, 0);
	for (int i = 0; i < ACTORS; i++) {
		sem_init(&go[i], 0, 0);
		start(acts, (void *)(intptr_t)i);
	}
	make_company(walk);
	for (int step = 0; step < STEPS; step++) {
		int actor = plan();

		ask(actor);
		dprintf(1, "%s", said[actor]);
		todo.nr = 0;
		for (int i = 0; i < ACTORS; i++) {
			ask(i);
			dprintf(1, " %s", said[i]);
		}
		CHECK_EQ(write(to_parent[1], &c, 1), 1);
		CHECK_EQ(read(to_child[0], &c, 1), 1);
	}
	_exit(finish());
}

/* --- the one who looks --- */

static char seen[NR_SEEN][LINE];
static int nr_seen;

static void note(const char *file)
{
	static const char *const fields[] = { "Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:" };
	char line[LINE], all[LINE] = "";
	FILE *f = fopen(file, "r");
	int at = 0;

	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (!strncmp(line, fields[i], strlen(fields[i])) &&
			    strlen(all) + strlen(line) < LINE)
				strcat(all, line);
	fclose(f);
	for (char *p = all; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	while (at < nr_seen && strcmp(seen[at], all) < 0)
		at++;
	if (!*all || nr_seen == NR_SEEN || (at < nr_seen && !strcmp(seen[at], all)))
		return;
	memmove(seen[at + 1], seen[at], (size_t)(nr_seen - at) * LINE);
	strcpy(seen[at], all);
	nr_seen++;
}

/* Each state that some task of the process has, once. */
static void look(pid_t pid)
{
	char name[300];
	struct dirent *entry;
	DIR *dir;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	dir = opendir(name);
	nr_seen = 0;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "/proc/%d/task/%s/status", pid, entry->d_name);
		note(name);
	}
	if (dir)
		closedir(dir);
	dprintf(1, "\n");
	for (int i = 0; i < nr_seen; i++)
		dprintf(1, "    %s\n", seen[i]);
}

static void walk(int i)
{
	int status;
	pid_t pid;
	char c;

	CHECK_SYS(pipe(to_parent));
	CHECK_SYS(pipe(to_child));
	dprintf(1, "walk %d\n", i);
	pid = fork();
	if (pid == 0) {
		close(to_parent[0]);
		close(to_child[1]);
		walk_along(i);
	}
	close(to_parent[1]);
	close(to_child[0]);
	while (read(to_parent[0], &c, 1) == 1) {
		look(pid);
		CHECK_EQ(write(to_child[1], &c, 1), 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	/* libc ends a process whose threads do not agree. */
	if (WIFSIGNALED(status))
		dprintf(1, "ended by signal %d\n", WTERMSIG(status));
	else
		CHECK_EQ(WEXITSTATUS(status), 0);
	close(to_parent[0]);
	close(to_child[1]);
}

int main(void)
{
	int fd;

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return EXIT_SKIP;
	}
	fd = mkstemp(path);
	CHECK_SYS(fd);
	never = mmap(NULL, sizeof(*never), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(never != MAP_FAILED);
	CHECK_SYS(sem_init(never, 1, 0));
	for (int i = 0; i < WALKS; i++)
		walk(i);
	close(fd);
	unlink(path);
	return finish();
}
