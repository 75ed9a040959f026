// SPDX-License-Identifier: Apache-2.0
/*
 * Handlers of system calls, by file, and the entry points that gate.S calls.
 */
#ifndef WF_LINUX_CALLS_H
#define WF_LINUX_CALLS_H

#include "linux/abi.h"

WF_PARKS long sysc_accept(struct wf_frame *f);
WF_PARKS long sysc_alarm(struct wf_frame *f);
WF_PARKS long sysc_arch_prctl(struct wf_frame *f);
WF_PARKS long sysc_binds(struct wf_frame *f);
WF_PARKS long sysc_cap(struct wf_frame *f);
WF_PARKS long sysc_clock_nanosleep(struct wf_frame *f);
WF_PARKS long sysc_clone(struct wf_frame *f);
WF_PARKS long sysc_clone3(struct wf_frame *f);
WF_PARKS long sysc_close(struct wf_frame *f);
WF_PARKS long sysc_close_range(struct wf_frame *f);
WF_PARKS long sysc_connect(struct wf_frame *f);
WF_PARKS long sysc_disk(struct wf_frame *f);
WF_PARKS long sysc_dup(struct wf_frame *f);
WF_PARKS long sysc_dup2(struct wf_frame *f);
WF_PARKS long sysc_execve(struct wf_frame *f);
WF_PARKS long sysc_execveat(struct wf_frame *f);
WF_PARKS long sysc_exit(struct wf_frame *f);
WF_PARKS long sysc_exit_group(struct wf_frame *f);
WF_PARKS long sysc_fcntl(struct wf_frame *f);
WF_PARKS long sysc_fcntl_owner(struct wf_frame *f);
WF_PARKS long sysc_file_read(struct wf_frame *f);
WF_PARKS long sysc_file_write(struct wf_frame *f);
WF_PARKS long sysc_flock(struct wf_frame *f);
WF_PARKS long sysc_fork(struct wf_frame *f);
WF_PARKS long sysc_futex(struct wf_frame *f);
long sysc_futex_requeue(struct wf_frame *f);
WF_PARKS long sysc_futex_wait(struct wf_frame *f);
WF_PARKS long sysc_futex_waitv(struct wf_frame *f);
long sysc_futex_wake(struct wf_frame *f);
WF_PARKS long sysc_get_robust_list(struct wf_frame *f);
WF_PARKS long sysc_getpriority(struct wf_frame *f);
WF_PARKS long sysc_gettid(struct wf_frame *f);
WF_PARKS long sysc_io_pgetevents(struct wf_frame *f);
WF_PARKS long sysc_io_uring_enter(struct wf_frame *f);
WF_PARKS long sysc_io_uring_register(struct wf_frame *f);
WF_PARKS long sysc_io_uring_setup(struct wf_frame *f);
WF_PARKS long sysc_ioctl(struct wf_frame *f);
WF_PARKS long sysc_ioprio(struct wf_frame *f);
WF_PARKS long sysc_keys(struct wf_frame *f);
WF_PARKS long sysc_kill(struct wf_frame *f);
WF_PARKS long sysc_madvise(struct wf_frame *f);
long sysc_mmap(struct wf_frame *f);
long sysc_mprotect(struct wf_frame *f);
WF_PARKS long sysc_mq_notify(struct wf_frame *f);
WF_PARKS long sysc_mq_timedreceive(struct wf_frame *f);
WF_PARKS long sysc_mq_timedsend(struct wf_frame *f);
long sysc_mremap(struct wf_frame *f);
WF_PARKS long sysc_msgrcv(struct wf_frame *f);
WF_PARKS long sysc_msgsnd(struct wf_frame *f);
long sysc_munmap(struct wf_frame *f);
WF_PARKS long sysc_names_both(struct wf_frame *f);
WF_PARKS long sysc_names_first(struct wf_frame *f);
WF_PARKS long sysc_nanosleep(struct wf_frame *f);
WF_PARKS long sysc_new_fd(struct wf_frame *f);
WF_PARKS long sysc_pause(struct wf_frame *f);
WF_PARKS long sysc_perf_event_open(struct wf_frame *f);
WF_PARKS long sysc_personality(struct wf_frame *f);
WF_PARKS long sysc_pidfd_open(struct wf_frame *f);
WF_PARKS long sysc_pidfd_send_signal(struct wf_frame *f);
WF_PARKS long sysc_pipe(struct wf_frame *f);
WF_PARKS long sysc_prctl(struct wf_frame *f);
WF_PARKS long sysc_preadv2(struct wf_frame *f);
WF_PARKS long sysc_ptrace(struct wf_frame *f);
WF_PARKS long sysc_pwritev2(struct wf_frame *f);
WF_PARKS long sysc_read(struct wf_frame *f);
WF_PARKS long sysc_readv(struct wf_frame *f);
WF_PARKS long sysc_recvfrom(struct wf_frame *f);
WF_PARKS long sysc_recvmmsg(struct wf_frame *f);
WF_PARKS long sysc_recvmsg(struct wf_frame *f);
WF_PARKS long sysc_rseq(struct wf_frame *f);
WF_PARKS long sysc_rt_sigaction(struct wf_frame *f);
WF_PARKS long sysc_rt_sigpending(struct wf_frame *f);
WF_PARKS long sysc_rt_sigprocmask(struct wf_frame *f);
WF_PARKS long sysc_rt_sigqueueinfo(struct wf_frame *f);
WF_PARKS long sysc_rt_sigsuspend(struct wf_frame *f);
WF_PARKS long sysc_rt_sigtimedwait(struct wf_frame *f);
WF_PARKS long sysc_rt_tgsigqueueinfo(struct wf_frame *f);
WF_PARKS long sysc_sched_getaffinity(struct wf_frame *f);
WF_PARKS long sysc_sched_getattr(struct wf_frame *f);
WF_PARKS long sysc_sched_getparam(struct wf_frame *f);
WF_PARKS long sysc_sched_getscheduler(struct wf_frame *f);
WF_PARKS long sysc_sched_rr_get_interval(struct wf_frame *f);
WF_PARKS long sysc_sched_setaffinity(struct wf_frame *f);
WF_PARKS long sysc_sched_setattr(struct wf_frame *f);
WF_PARKS long sysc_sched_setparam(struct wf_frame *f);
WF_PARKS long sysc_sched_setscheduler(struct wf_frame *f);
WF_PARKS long sysc_sched_yield(struct wf_frame *f);
WF_PARKS long sysc_semop(struct wf_frame *f);
WF_PARKS long sysc_sendfile(struct wf_frame *f);
WF_PARKS long sysc_sendmmsg(struct wf_frame *f);
WF_PARKS long sysc_sendmsg(struct wf_frame *f);
WF_PARKS long sysc_sendto(struct wf_frame *f);
WF_PARKS long sysc_set_credentials(struct wf_frame *f);
WF_PARKS long sysc_set_robust_list(struct wf_frame *f);
WF_PARKS long sysc_set_tid_address(struct wf_frame *f);
WF_PARKS long sysc_setitimer(struct wf_frame *f);
WF_PARKS long sysc_setpriority(struct wf_frame *f);
WF_PARKS long sysc_setsockopt(struct wf_frame *f);
WF_PARKS long sysc_shmat(struct wf_frame *f);
WF_PARKS long sysc_sigaltstack(struct wf_frame *f);
WF_PARKS long sysc_signalfd(struct wf_frame *f);
WF_PARKS long sysc_socket(struct wf_frame *f);
WF_PARKS long sysc_socketpair(struct wf_frame *f);
WF_PARKS long sysc_splice(struct wf_frame *f);
WF_PARKS long sysc_tee(struct wf_frame *f);
WF_PARKS long sysc_tgkill(struct wf_frame *f);
WF_PARKS long sysc_timer_create(struct wf_frame *f);
WF_PARKS long sysc_timer_delete(struct wf_frame *f);
WF_PARKS long sysc_timer_getoverrun(struct wf_frame *f);
WF_PARKS long sysc_timer_gettime(struct wf_frame *f);
WF_PARKS long sysc_timer_settime(struct wf_frame *f);
WF_PARKS long sysc_tkill(struct wf_frame *f);
/* unshare(), and what it means for the table of descriptors. */
WF_PARKS long lx_fds_unshare(struct wf_frame *f);
WF_PARKS long sysc_userfaultfd(struct wf_frame *f);
WF_PARKS long sysc_vmsplice(struct wf_frame *f);
WF_PARKS long sysc_wait4(struct wf_frame *f);
WF_PARKS long sysc_waitid(struct wf_frame *f);
WF_PARKS long sysc_write(struct wf_frame *f);
WF_PARKS long sysc_writev(struct wf_frame *f);

/* What the call returns; if that is -ERESTARTSYS or the like, wf_linux_interrupted() follows. */
WF_PARKS long wf_linux_enter(struct wf_frame *f);
void wf_linux_interrupted(struct wf_frame *f);
void wf_linux_make(struct wf_frame *f);
void wf_linux_attention(struct wf_frame *f);
bool wf_linux_handler_attention(struct wf_sigframe *frame, void *handler, int sig);
void wf_linux_thread_started(void);
void wf_linux_vfork_begin(struct wf_frame *f);
void wf_linux_vfork_end(struct wf_frame *f);
void wf_linux_sigreturn(struct wf_ucontext *uc);

#endif
