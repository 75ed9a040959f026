// SPDX-License-Identifier: Apache-2.0
/*
 * Every system call number, known to this kernel or not, called from a thread with arguments that are mostly
 * wrong: the same errors, results and changes of memory as on the plain kernel.
 *
 * Each number gets a process of its own, as some calls leave traces. The output is compared by run.py; of
 * a result only the sign is shown, since descriptors, addresses and IDs differ from run to run.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "check.h"

#define NR_CALLS 480 /* beyond the last number of Linux 6.18 */
#define NR_PATTERNS 11
#define BUF_BYTES 512
#define TEXT_BYTES 4096
/* A place of its own, since calls may take the address for a number; and never the beginning of a page. */
#define MEMORY ((char *)0x10001008)

static const int left_out[] = {
	/* end the process, or never return with these arguments */
	SYS_rt_sigreturn,
	SYS_pause,
	SYS_clone,
	SYS_fork,
	SYS_vfork,
	SYS_execve,
	SYS_exit,
	SYS_ptrace,
	SYS_exit_group,
	SYS_seccomp,
	SYS_clone3,
	SYS_execveat,
	SYS_set_tid_address,
	/* may mean somebody else's process or IPC object, or leave one behind */
	SYS_kill,
	SYS_tkill,
	SYS_tgkill,
	SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo,
	SYS_setpriority,
	SYS_ioprio_set,
	SYS_msgget,
	SYS_msgsnd,
	SYS_msgrcv,
	SYS_msgctl,
	SYS_semget,
	SYS_semop,
	SYS_semctl,
	SYS_semtimedop,
	SYS_shmget,
	SYS_shmat,
	SYS_shmctl,
	SYS_mq_unlink,
	/* take long, or depend on how much memory is in use */
	SYS_sync,
	SYS_mlockall,
};

/* Could change the machine: made by nobody, who may not. */
static const int privileged[] = {
	SYS_syslog,        SYS_vhangup,       SYS_pivot_root, SYS_acct,         SYS_settimeofday,
	SYS_mount,         SYS_umount2,       SYS_swapon,     SYS_swapoff,      SYS_reboot,
	SYS_sethostname,   SYS_setdomainname, SYS_iopl,       SYS_ioperm,       SYS_init_module,
	SYS_delete_module, SYS_clock_settime, SYS_kexec_load, SYS_finit_module, SYS_kexec_file_load,
	SYS_chroot,        SYS_quotactl,      SYS_uselib,     SYS_nfsservctl,   SYS_adjtimex,
	SYS_clock_adjtime, SYS_bpf,           SYS_syncfs,
};

/* These wait for ever when all their arguments are zero. */
static const int waits_on_zero[] = { SYS_select, SYS_pselect6, SYS_ppoll };

/* A tid as a command, an address or a port: which error it is depends on the number. */
static const int takes_no_tid[] = { SYS_quotactl, SYS_futex, SYS_ioperm };

/* They may write zero: a CPU's number, the ticks that the process used. */
static const int results_vary[] = { SYS_getcpu, SYS_times };

struct shared {
	char text[TEXT_BYTES];
	size_t len;
};

static struct shared *shared;
static int nr;
static int file_fd, sock_fd;
static char *const memory = MEMORY;

static int is_in(const int *list, size_t n, int value)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == value)
			return 1;
	return 0;
}
#define IS_IN(list, value) is_in(list, sizeof(list) / sizeof(list[0]), value)

static const char *make_pattern(int which, long a[6])
{
	static const char *const names[NR_PATTERNS] = {
		"zeros",         "minus ones", "ones", "kernel addresses", "memory",
		"large numbers", "bad fd",     "file", "file, bad memory", "socket",
		"own tid",
	};
	/* Taken for an ID, no value but the third is one of a process or thread: they end below 1 << 28. */
	static const long first[NR_PATTERNS] = { 0, -1, 1, (long)0xffff800070001000ul };

	for (int i = 0; i < 6; i++)
		a[i] = which < 4 ? first[which] : (long)memory + i * BUF_BYTES;
	switch (which) {
	case 5:
		for (int i = 0; i < 6; i++)
			a[i] = 0x7fffffff;
		break;
	case 6:
		a[0] = 0x10000000 + 1000;
		a[2] = 8;
		a[3] = 0;
		break;
	case 7:
	case 8:
	case 9:
		a[0] = which == 9 ? sock_fd : file_fd;
		a[1] = which == 8 ? 1 : a[1];
		a[2] = 8;
		a[3] = which == 8 ? 1 : 0;
		a[4] = a[5] = 0;
		break;
	case 10:
		a[0] = syscall(SYS_gettid);
		a[1] = 8;
		break;
	}
	return names[which];
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	shared->len += (size_t)vsnprintf(shared->text + shared->len, TEXT_BYTES - shared->len,
					 format, args);
	va_end(args);
}

static void *call_all(void *arg)
{
	(void)arg;
	for (int which = 0; which < NR_PATTERNS; which++) {
		long a[6], ret;
		const char *name = make_pattern(which, a);

		if (which == 10 && IS_IN(takes_no_tid, nr))
			continue;
		if (which == 0 && IS_IN(waits_on_zero, nr))
			continue;
		if (which == 10 && nr == SYS_setgroups) /* a tid of weft is too large for a count */
			continue;
		memset(memory, 0, 6 * BUF_BYTES);
		say("call %d, %s: ", nr, name);
		errno = 0;
		ret = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (ret == -1)
			say("%s", strerrorname_np(errno));
		else
			say("%s", ret == 0 ? "0" : ret > 0 ? "positive" : "negative");
		for (int i = 0; i < 6 && !IS_IN(results_vary, nr); i++)
			for (int k = 0; k < BUF_BYTES; k++)
				if (memory[i * BUF_BYTES + k]) {
					say(", changes %d", i);
					break;
				}
		say("\n");
	}
	return NULL;
}

/* False: no right to give up rights, as in some containers. */
static int become_nobody(void)
{
	return syscall(SYS_setresgid, 65534, 65534, 65534) == 0 &&
	       syscall(SYS_setresuid, 65534, 65534, 65534) == 0;
}

static void child(void)
{
	int pair[2];

	alarm(10);
	/* Numbers 0 and 1 are descriptors, too: nothing that others use, since fchmod(1, 1) succeeds for root. */
	for (int fd = 0; fd < 2; fd++)
		CHECK_EQ(dup2(memfd_create("stdio", MFD_CLOEXEC), fd), fd);
	file_fd = memfd_create("file", 0);
	CHECK_SYS(write(file_fd, "0123456789abcdef", 16));
	lseek(file_fd, 0, SEEK_SET);
	CHECK_SYS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
	CHECK_SYS(write(pair[1], "0123", 4));
	sock_fd = pair[0];
	if (IS_IN(privileged, nr) && geteuid() == 0 && !become_nobody())
		_exit(0);
	join(start(call_all, NULL));
	syscall(SYS_exit_group, 0);
}

int main(int argc, char **argv)
{
	int from = argc > 1 ? atoi(argv[1]) : 0, to = argc > 1 ? from + 1 : NR_CALLS;

	CHECK_SYS((long)mmap(MEMORY - 8, 8192, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	for (nr = from; nr < to; nr++) {
		int status = -1;
		pid_t pid;

		if (IS_IN(left_out, nr))
			continue;
		shared->len = 0;
		shared->text[0] = '\0';
		fflush(stdout);
		pid = fork();
		if (pid == 0)
			child();
		CHECK_SYS(pid);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		fputs(shared->text, stdout);
		if (status)
			printf("call %d: status %#x\n", nr, status);
	}
	return finish();
}
