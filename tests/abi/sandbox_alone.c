// SPDX-License-Identifier: Apache-2.0
/*
 * A program that has one thread left gives up rights: natively that holds for the whole process, and for the threads that it
 * makes afterwards. Another process looks at all of the kernel's tasks, of which weft has more than one; for Landlock, which
 * shows nothing, it has each of them try to open a file. One that has other threads gives up its own only. Root only.
 */
#include "beside.h"
#include "sandbox_look.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

#define NR_HELD 6
#define RING 20 /* more than wait on kernel threads of their own */
#define READ_FILE (1 << 2)

static int to_parent[2], to_child[2];
static sem_t *shared;
static int stop, pipe_of_reader[2];
static pthread_barrier_t barrier;

/* --- threads that come and go, so that kernel threads of all kinds are there --- */

static void *locks(void *arg)
{
	int fd = open(path, O_RDWR);

	CHECK_SYS(flock(fd, LOCK_EX));
	close(fd);
	return arg;
}

static void *computes(void *arg)
{
	while (!LOAD(&stop))
		;
	return arg;
}

static void *reads(void *arg)
{
	char c;

	CHECK_EQ(read(pipe_of_reader[0], &c, 1), 1);
	return arg;
}

static void *waits_shared(void *arg)
{
	while (sem_wait(shared))
		;
	return arg;
}

static void *own_filter(void *arg);

static void come_and_go(void)
{
	pthread_t held[NR_HELD], hogs[5], ring[RING];
	int fd = open(path, O_RDWR);

	CHECK_SYS(flock(fd, LOCK_EX));
	for (int i = 0; i < NR_HELD; i++)
		held[i] = start(locks, NULL);
	for (int i = 0; i < RING; i++)
		ring[i] = start(waits_shared, NULL);
	sleep_ns(5 * MS);
	close(fd);
	CHECK_SYS(pipe(pipe_of_reader));
	hogs[0] = start(reads, NULL);
	for (int i = 1; i < 5; i++)
		hogs[i] = start(computes, NULL);
	sleep_ns(30 * MS); /* weft polls beside those that compute, if they are enough */
	STORE(&stop, 1);
	CHECK_EQ(write(pipe_of_reader[1], "x", 1), 1);
	for (int i = 0; i < RING; i++)
		sem_post(shared);
	for (int i = 0; i < NR_HELD; i++)
		join(held[i]);
	for (int i = 0; i < 5; i++)
		join(hogs[i]);
	for (int i = 0; i < RING; i++)
		join(ring[i]);
	join(start(own_filter,
		   NULL)); /* its kernel thread ends, with a filter that nobody else has */
}

/* --- the ways to give up --- */

static long by_instruction(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static struct sock_filter getppid_fails[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static const struct sock_fprog getppid_filter = { 4, getppid_fails };

static void no_new_privs(void)
{
	CHECK_SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static void filter(void)
{
	no_new_privs();
	CHECK_SYS(CALL(seccomp, SECCOMP_SET_MODE_FILTER, 0L, &getppid_filter));
}

static void filter_by_prctl(void)
{
	CHECK_SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &getppid_filter));
}

static void filter_with_listener(void)
{
	long fd = CALL(seccomp, SECCOMP_SET_MODE_FILTER, (long)SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &getppid_filter);

	CHECK_SYS(fd);
	CHECK_SYS(close((int)fd));
}

static void *own_filter(void *arg)
{
	filter();
	return arg;
}

static void set_caps(uint32_t permitted, uint32_t inheritable)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2] = { { permitted, permitted, inheritable },
						  { 0, 0, 0 } };

	CHECK_SYS(CALL(capset, &header, caps));
}

#define FEW (1u << CAP_SETUID | 1u << CAP_SETPCAP | 1u << CAP_KILL)

static void fewer_caps(void)
{
	set_caps(FEW, 0);
}

static void smaller_bound(void)
{
	CHECK_SYS(prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0));
	CHECK_SYS(prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0));
}

static void ambient(void)
{
	set_caps(FEW, FEW);
	CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0), 0);
	CHECK_SYS(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0));
	CHECK_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0), 1);
}

static void ambient_dropped(void)
{
	ambient();
	CHECK_SYS(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
}

/* Their effect shows when the user changes. */
static void keeps_caps(void)
{
	CHECK_SYS(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	CHECK_SYS(setresuid(4321, 4321, 4321));
}

static void no_fixup(void)
{
	CHECK_SYS(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0));
	CHECK_SYS(setresuid(-1, 4321, -1));
}

static void user_by_function(void)
{
	CHECK_SYS(CALL(setresgid, 8765, 8765, 8765));
	CHECK_SYS(CALL(setresuid, 4321, 4321, 0));
	CHECK_SYS(CALL(setresuid, -1, 0, 4321)); /* made twice it would fail */
}

static void user_by_instruction(void)
{
	static gid_t groups[] = { 1, 2, 3 };

	CHECK_EQ(by_instruction(SYS_setgroups, 3, (long)groups, 0), 0);
	CHECK_EQ(by_instruction(SYS_setresuid, 4321, 4322, 4323), 0);
}

static void file_user(void)
{
	CHECK_EQ(setfsuid(4321), 0);
	CHECK_EQ(setfsgid(8765), 0);
	CHECK_EQ(setfsuid(-1), 4321);
}

static void landlock(void)
{
	const uint64_t handled = READ_FILE;
	int set = (int)CHECK_SYS(CALL(landlock_create_ruleset, &handled, sizeof(handled), 0));

	no_new_privs();
	CHECK_SYS(CALL(landlock_restrict_self, set, 0));
	close(set);
}

static void *meets(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return arg;
}

/* It gave up what it needs for that when it was one of two. */
static void landlock_later(void)
{
	const uint64_t handled = READ_FILE;
	int set = (int)CHECK_SYS(CALL(landlock_create_ruleset, &handled, sizeof(handled), 0));
	pthread_t t;

	pthread_barrier_init(&barrier, NULL, 2);
	t = start(meets, NULL);
	pthread_barrier_wait(&barrier);
	no_new_privs();
	pthread_barrier_wait(&barrier);
	join(t);
	CHECK_SYS(setresuid(4321, 4321, 4321));
	CHECK_SYS(CALL(landlock_restrict_self, set, 0));
	close(set);
}

/* Of their own: the caller makes nothing outside of it. */
static void namespaces(void)
{
	CHECK_SYS(unshare(CLONE_NEWUTS | CLONE_NEWIPC));
	CHECK_SYS(unshare(CLONE_NEWNET));
}

static int outer_net;

static void namespace_entered(void)
{
	CHECK_SYS(setns(outer_net, CLONE_NEWNET));
}

static void namespace_of_any_kind(void)
{
	CHECK_SYS(setns(outer_net, 0));
}

static void all_at_once(void)
{
	landlock();
	smaller_bound();
	CHECK_SYS(setresgid(8765, 8765, 8765));
	CHECK_SYS(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
	CHECK_SYS(setresuid(4321, 4321, 4321));
	fewer_caps();
	filter();
	filter(); /* and another one */
}

/* --- what a thread sees of it, a later one too --- */

static void *says(void *arg)
{
	long parent, filtered;
	int fd = open("/etc/shadow", O_RDONLY);

	printf("  shadow %s", fd < 0 ? strerror(errno) : "opened");
	close(fd);
	errno = 0;
	parent = CALL(getppid);
	filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
	printf(", getppid %s, seccomp %ld, nnp %d, uid %d, fsuid %d\n",
	       parent < 0 ? strerror(errno) : "ok", filtered,
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), geteuid(), setfsuid(-1));
	fflush(stdout);
	return arg;
}

static void tell(void)
{
	char c = 0;

	CHECK_EQ(write(to_parent[1], &c, 1), 1);
	CHECK_EQ(read(to_child[0], &c, 1), 1);
}

static void reply(void)
{
	CHECK_EQ(write(to_child[1], "", 1), 1);
}

static int is_told(void)
{
	char c;

	return read(to_parent[0], &c, 1) == 1;
}

static void *waits(void *arg)
{
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	says(NULL);
	return arg;
}

static void gives_up(void (*how)(void), int has_others)
{
	pthread_t t = 0;

	if (has_others) {
		pthread_barrier_init(&barrier, NULL, 2);
		t = start(waits, NULL);
		pthread_barrier_wait(&barrier);
	} else {
		come_and_go();
	}
	how();
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	tell();
	says(NULL);
	if (has_others) {
		pthread_barrier_wait(&barrier);
		join(t);
		_exit(finish());
	}
	join(start(says, NULL));
	tell();
	tell();
	_exit(finish());
}

static void run(const char *what, void (*how)(void), int has_others)
{
	int status;
	pid_t pid, ended;

	printf("%s%s\n", what, has_others ? ", by one of two" : "");
	fflush(stdout);
	CHECK_SYS(pipe(to_parent));
	CHECK_SYS(pipe(to_child));
	pid = fork();
	if (pid == 0) {
		close(to_parent[0]);
		close(to_child[1]);
		gives_up(how, has_others);
	}
	close(to_parent[1]);
	close(to_child[0]);
	for (int i = 0; i < (has_others ? 1 : 2) && is_told(); i++) {
		look(pid, has_others ? 2 : 1);
		look_once(pid, note_namespaces);
		dprintf(1, "    in %d sets of namespaces\n", nr_seen);
		reply();
	}
	if (!has_others && is_told()) {
		look_once(pid, note_try);
		for (int i = 0; i < nr_seen; i++)
			printf("    all tasks: %s\n", seen[i]);
		kill(pid, SIGKILL);
	}
	/* Tasks that are traced end before it. */
	while ((ended = waitpid(-1, &status, __WALL)) > 0 && (ended != pid || WIFSTOPPED(status)))
		;
	CHECK_EQ(ended, pid);
	CHECK(has_others ? WIFEXITED(status) && !WEXITSTATUS(status) : WIFSIGNALED(status));
	if (!has_others)
		CHECK_EQ(WTERMSIG(status), SIGKILL);
	close(to_parent[0]);
	close(to_child[1]);
	ok(what);
}

static const struct {
	const char *what;
	void (*how)(void);
} ways[] = {
	{ "no new privileges", no_new_privs },
	{ "a filter", filter },
	{ "a filter by prctl()", filter_by_prctl },
	{ "a filter with a listener", filter_with_listener },
	{ "fewer capabilities", fewer_caps },
	{ "a smaller bounding set", smaller_bound },
	{ "ambient capabilities", ambient },
	{ "ambient capabilities, dropped again", ambient_dropped },
	{ "capabilities kept", keeps_caps },
	{ "secure bits", no_fixup },
	{ "users by syscall()", user_by_function },
	{ "users by an instruction", user_by_instruction },
	{ "the user for files", file_user },
	{ "landlock", landlock },
	{ "landlock, after others", landlock_later },
	{ "namespaces of its own", namespaces },
	{ "a namespace that is there", namespace_entered },
	{ "a namespace of whatever kind", namespace_of_any_kind },
	{ "all at once", all_at_once },
};

/* A network beside ours, or -1 where none may be made. */
static int other_network(void)
{
	char name[64], c = 0;
	int fds[2], fd = -1;
	pid_t pid;

	CHECK_SYS(pipe(fds));
	pid = fork();
	if (pid == 0) {
		close(fds[0]);
		c = unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) == 0;
		CHECK_EQ(write(fds[1], &c, 1), 1);
		for (;;)
			pause();
	}
	close(fds[1]);
	if (read(fds[0], &c, 1) == 1 && c) {
		snprintf(name, sizeof(name), "/proc/%d/ns/net", pid);
		fd = open(name, O_RDONLY);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	close(fds[0]);
	return fd;
}

int main(void)
{
	static const unsigned char syscall_int3[] = { 0x0f, 0x05, 0xcc };
	int has_landlock = CALL(landlock_create_ruleset, NULL, 0L, 1) >= 1, fd;

	if (geteuid() != 0) {
		fprintf(stderr, "needs root\n");
		return EXIT_SKIP;
	}
	fd = mkstemp(path);
	CHECK_SYS(fd);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(code, syscall_int3, sizeof(syscall_int3));
	CHECK_SYS(mprotect(code, 4096, PROT_READ | PROT_EXEC));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	CHECK_SYS(sem_init(shared, 1, 0));
	outer_net = other_network();
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (!has_landlock && (ways[i].how == landlock || ways[i].how == all_at_once))
			continue;
		if (ways[i].how == landlock_later) {
			if (has_landlock)
				run(ways[i].what, ways[i].how, 0);
			continue;
		}
		if (outer_net < 0 &&
		    (ways[i].how == namespaces || ways[i].how == namespace_entered ||
		     ways[i].how == namespace_of_any_kind))
			continue;
		run(ways[i].what, ways[i].how, 0);
		run(ways[i].what, ways[i].how, 1);
	}
	close(fd);
	unlink(path);
	return finish();
}
