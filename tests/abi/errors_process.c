// SPDX-License-Identifier: Apache-2.0
/* Processes, threads by tid, names, credentials: what the calls return for good and bad arguments. */
#include "show.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void *calls(void *arg)
{
	siginfo_t si;
	int st;
	struct rusage ru;
	char name[32] = "";
	SHOW(CALL(wait4, -1, &st, 0, NULL));
	SHOW(CALL(wait4, -1, &st, 0xff00, NULL));
	SHOW(CALL(wait4, -1, BAD, WNOHANG, NULL));
	SHOW(CALL(wait4, other_tid, &st, 0, NULL));
	SHOW(CALL(wait4, INT_MIN, &st, 0, NULL));
	SHOW(CALL(waitid, P_ALL, 0, &si, 0, NULL));
	SHOW(CALL(waitid, P_ALL, 0, &si, WEXITED, NULL));
	SHOW(CALL(waitid, 77, 0, &si, WEXITED, NULL));
	SHOW(CALL(waitid, P_PID, 0, &si, WEXITED, NULL));
	SHOW(CALL(waitid, P_PID, -1, &si, WEXITED, NULL));
	SHOW(CALL(waitid, P_PIDFD, -1, &si, WEXITED, NULL));
	SHOW(CALL(waitid, P_PIDFD, 1000, &si, WEXITED, NULL));
	SHOW(CALL(waitid, P_PGID, 0, &si, WEXITED | WNOHANG, NULL));
	pid_t c = fork();
	if (!c)
		_exit(3);
	SHOW(CALL(waitid, P_PID, c, BAD, WEXITED | WNOWAIT, NULL));
	SHOW(CALL(waitid, P_PID, c, &si, WEXITED | WNOWAIT, &ru));
	printf("code %d status %d\n", si.si_code, si.si_status);
	SHOW(CALL(wait4, c, BAD, 0, NULL));
	SHOW(CALL(wait4, c, &st, 0, NULL));
	SHOW(CALL(execve, BAD, NULL, NULL));
	SHOW(CALL(execve, "/nonexistent", NULL, NULL));
	SHOW(CALL(execve, "/etc/passwd", NULL, NULL));
	SHOW(CALL(execve, "/bin/true", BAD, NULL));
	SHOW(CALL(execveat, -1, "x", NULL, NULL, 0));
	SHOW(CALL(execveat, 1000, "", NULL, NULL, AT_EMPTY_PATH));
	SHOW(CALL(execveat, AT_FDCWD, "", NULL, NULL, 77));
	SHOW(CALL(clone, CLONE_THREAD, 0, 0, 0, 0));
	SHOW(CALL(clone, CLONE_THREAD | CLONE_VM, 0, 0, 0, 0));
	SHOW(CALL(clone, CLONE_SIGHAND, 0, 0, 0, 0));
	SHOW(CALL(clone, CLONE_NEWNS | CLONE_FS, 0, 0, 0, 0));
	SHOW(CALL(clone3, NULL, 0));
	SHOW(CALL(clone3, NULL, 64));
	SHOW(CALL(clone3, BAD, 88));
	SHOW(CALL(clone3, BAD, 5000));
	struct clone_args ca = { 0 };
	ca.flags = CLONE_THREAD;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.flags = 1ull << 60;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.flags = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	ca.exit_signal = 5;
	ca.stack = 4096;
	ca.stack_size = 4096;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.exit_signal = 0;
	ca.stack_size = 0;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.stack = 0;
	ca.stack_size = 4096;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.stack_size = 0;
	ca.flags = CLONE_DETACHED;
	SHOW(CALL(clone3, &ca, sizeof(ca)));
	ca.flags = CLONE_PIDFD | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	ca.stack = 4096;
	ca.stack_size = 4096;
	ca.pidfd = 1;
	CHECK(CALL(clone3, &ca, sizeof(ca)) == -1); /* EFAULT; EINVAL before Linux 6.9 */
	SHOW(prctl(PR_SET_NAME, BAD));
	SHOW(prctl(PR_SET_NAME, NULL));
	SHOW(prctl(PR_GET_NAME, BAD));
	SHOW(prctl(PR_SET_NAME, "a name that is much too long"));
	SHOW(prctl(PR_GET_NAME, name));
	printf("name %s\n", name);
	SHOW(prctl(12345));
	SHOW(prctl(PR_SET_PDEATHSIG, 65));
	SHOW(prctl(PR_SET_PDEATHSIG, 0));
	SHOW(prctl(PR_GET_PDEATHSIG, &st));
	SHOW(prctl(PR_SET_TIMERSLACK, 1000));
	SHOW(prctl(PR_GET_TIMERSLACK));
	SHOW(prctl(PR_SET_TIMERSLACK, 0));
	SHOW(prctl(PR_GET_TIMERSLACK));
	SHOW(prctl(PR_GET_TID_ADDRESS, name));
	SHOW(prctl(PR_GET_KEEPCAPS));
	SHOW(prctl(PR_SET_KEEPCAPS, 7));
	SHOW(prctl(PR_GET_SECCOMP));
	SHOW(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SHOW(prctl(PR_GET_DUMPABLE));
	SHOW(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	SHOW(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_CHILD_SUBREAPER, &st));
	SHOW(prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0));
	SHOW(prctl(PR_CAPBSET_READ, 0));
	SHOW(prctl(PR_CAPBSET_READ, 999));
	SHOW(prctl(PR_GET_SECUREBITS));
	SHOW(prctl(PR_GET_UNALIGN, &st));
	SHOW(prctl(PR_GET_TSC, &st));
	SHOW(prctl(PR_GET_SPECULATION_CTRL, 0, 0, 0, 0));
	SHOW(prctl(PR_GET_TIMING));
	SHOW(prctl(PR_SET_TIMING, 1));
	SHOW(prctl(PR_SET_SYSCALL_USER_DISPATCH, 0, 0, 0, 0));
	SHOW(prctl(PR_SET_SYSCALL_USER_DISPATCH, 5, 0, 0, 0));
	SHOW_PT(pthread_setname_np(other, "name"));
	SHOW_PT(pthread_getname_np(other, name, 32));
	printf("%s\n", name);
	SHOW_PT(pthread_setname_np(other, "sixteen chars 16"));
	SHOW_PT(pthread_getname_np(other, name, 3));
	SHOW_PT(pthread_setname_np(pthread_self(), "me"));
	SHOW_PT(pthread_getname_np(pthread_self(), name, 16));
	printf("%s\n", name);

	SHOW(CALL(set_tid_address, BAD) > 0);
	SHOW(CALL(set_tid_address, NULL) > 0);
	SHOW(CALL(set_robust_list, NULL, 5));
	SHOW(CALL(set_robust_list, BAD, 24));
	SHOW(CALL(set_robust_list, NULL, 24));
	void *h;
	size_t len;
	SHOW(CALL(get_robust_list, 0, &h, &len));
	SHOW(CALL(get_robust_list, other_tid, &h, &len));
	printf("len %zu\n", len);
	SHOW(CALL(get_robust_list, dead_tid, &h, &len));
	SHOW(CALL(get_robust_list, 0, BAD, &len));
	SHOW(CALL(get_robust_list, 0, &h, BAD));
	SHOW(CALL(get_robust_list, -1, &h, &len));
	SHOW(CALL(setuid, -1));
	SHOW(CALL(setgid, -1));
	SHOW(CALL(setreuid, -1, -1));
	SHOW(CALL(setresuid, -1, -1, -1));
	SHOW(CALL(setgroups, 70000, NULL));
	SHOW(CALL(setgroups, 1, BAD));
	SHOW(CALL(setgroups, -1, NULL));
	SHOW(CALL(setfsuid, -1));
	SHOW(CALL(setfsgid, -1));
	SHOW(CALL(membarrier, 0, 0, 0) > 0);
	SHOW(CALL(membarrier, 99, 0, 0));
	SHOW(CALL(membarrier, 8, 77, 0));
	SHOW(CALL(getcpu, NULL, NULL, NULL));
	SHOW(CALL(getcpu, BAD, NULL, NULL));
	SHOW(CALL(sched_yield));
	SHOW(CALL(pidfd_open, other_tid, 0));
	SHOW(CALL(pidfd_open, my_tid(), 0));
	SHOW(CALL(pidfd_open, getpid(), 0) > 0);
	SHOW(CALL(pidfd_open, dead_tid, 0));
	SHOW(CALL(pidfd_open, -1, 0));
	SHOW(CALL(capget, (int[]){ 0x20080522, other_tid }, name));
	SHOW(CALL(capget, (int[]){ 0x20080522, dead_tid }, name));
	SHOW(CALL(capget, (int[]){ 5, 0 }, NULL));
	SHOW(CALL(capset, (int[]){ 0x20080522, other_tid }, name));
	SHOW(CALL(ioprio_get, 1, other_tid));
	SHOW(CALL(ioprio_get, 1, dead_tid));
	SHOW(CALL(ioprio_set, 1, other_tid, 0));
	SHOW(CALL(kcmp, other_tid, getpid(), 0, 0, 0));
	SHOW(CALL(kcmp, getpid(), other_tid, 1, 0));
	SHOW(CALL(prlimit64, other_tid, RLIMIT_NOFILE, NULL, NULL));
	struct iovec v = { name, 4 };
	SHOW(CALL(process_vm_readv, other_tid, &v, 1, &v, 1, 0));
	SHOW(CALL(process_vm_readv, dead_tid, &v, 1, &v, 1, 0));
	SHOW(CALL(getsid, other_tid) > 0);
	SHOW(CALL(getpgid, my_tid()) > 0);
	SHOW(CALL(setpgid, other_tid, 0));
	SHOW(CALL(unshare, 0));
	SHOW(CALL(unshare, CLONE_THREAD));
	SHOW(CALL(unshare, CLONE_VM));
	SHOW(CALL(unshare, CLONE_SIGHAND));
	SHOW(CALL(setns, 1000, 0));
	SHOW(CALL(personality, 0xffffffff));
	SHOW(CALL(iopl, 0));
	SHOW(CALL(seccomp, 99, 0, NULL));
	SHOW(CALL(seccomp, 1, 0, BAD));
	SHOW(CALL(seccomp, 2, 0, &st));
	SHOW(CALL(ptrace, 16, other_tid, 0, 0));
	SHOW(CALL(ptrace, 16, dead_tid, 0, 0));
	SHOW(CALL(ptrace, 16, getpid(), 0, 0));
	SHOW(CALL(move_pages, other_tid, 0, NULL, NULL, NULL, 0));
	SHOW(CALL(migrate_pages, other_tid, 0, NULL, NULL));
	SHOW(CALL(exit_group + 100000));
	SHOW(CALL(madvise, 1, 4096, 4));
	SHOW(CALL(madvise, NULL, 0, 4));
	SHOW(CALL(madvise, KERNEL, 4096, 4));
	SHOW(CALL(madvise, 4096, 4096, 4));
	SHOW(CALL(madvise, 4096, 4096, 9999));
	fflush(stdout);
	_exit(finish());
	return arg;
}

int main(void)
{
	return show_in_thread(calls);
}
