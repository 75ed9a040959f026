// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel's process connector: it tells of every process that starts, changes its program or name, and ends.
 *
 * Called by: names.c. Invariant: news come from the kernel alone, and threads are no news: a filter in the kernel takes
 * out what they do, so that a program that makes many wakes nobody here.
 */
#include "watch/watch.h"

#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOM_BYTES (4 << 20) /* for some 5,000 messages */
#define WANTED                                                                                     \
	((uint32_t)PROC_EVENT_FORK | (uint32_t)PROC_EVENT_EXEC | (uint32_t)PROC_EVENT_COMM |       \
	 (uint32_t)PROC_EVENT_EXIT)

/* Inode numbers, which are fixed. */
#define FIRST_PID_NAMESPACE 0xeffffffcu
#define FIRST_USER_NAMESPACE 0xeffffffdu

/* Where things lie in a message. */
#define AT_EVENT ((uint32_t)(NLMSG_HDRLEN + sizeof(struct cn_msg)))
#define AT_DATA (AT_EVENT + (uint32_t)offsetof(struct proc_event, event_data))
#define AT_PID AT_DATA /* the thread, and the process that it belongs to; not in news of forks */
#define AT_CHILD (AT_DATA + 8) /* the same of a child */

/* A filter reads numbers as the network has them. */
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define ORDER(v)                                                                                   \
	(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap32((uint32_t)(v))              \
						   : (uint32_t)(v))
#define IS(v, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ORDER(v), (yes), (no))

static bool attach_filter(int fd)
{
	/* A jump counts from the next line. */
	struct sock_filter code[] = {
		LOAD(AT_EVENT),
		IS(PROC_EVENT_EXEC, 13, 0),
		IS(PROC_EVENT_FORK, 2, 0),
		IS(PROC_EVENT_EXIT, 6, 0),
		IS(PROC_EVENT_COMM, 5, 11),
		LOAD(AT_CHILD),
		BPF_STMT(BPF_ST, 0),
		BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 0),
		LOAD(AT_CHILD + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 5, 6),
		LOAD(AT_PID),
		BPF_STMT(BPF_ST, 0),
		BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 0),
		LOAD(AT_PID + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* Events: from Linux 6.6 on the kernel sends only those; an older one does not answer such a request. 0: whatever it sends. */
static bool ask(int fd, uint32_t what, uint32_t events)
{
	const uint32_t body[2] = { what, events };
	const struct cn_msg cn = { .id = { CN_IDX_PROC, CN_VAL_PROC },
				   .len = (uint16_t)(events ? sizeof(body) : sizeof(body[0])) };
	const struct nlmsghdr nl = { .nlmsg_len = (uint32_t)NLMSG_LENGTH(sizeof(cn) + cn.len),
				     .nlmsg_type = NLMSG_DONE };
	char message[NLMSG_HDRLEN + sizeof(cn) + sizeof(body)];

	memcpy(message, &nl, sizeof(nl));
	memcpy(message + NLMSG_HDRLEN, &cn, sizeof(cn));
	memcpy(message + AT_EVENT, body, sizeof(body));
	return send(fd, message, nl.nlmsg_len, 0) == (ssize_t)nl.nlmsg_len;
}

/* False: it is none for us. */
static bool read_event(const char *message, size_t bytes, struct wf_watch_news *out)
{
	struct proc_event e = { .what = PROC_EVENT_NONE };
	struct cn_msg cn;

	if (bytes < AT_DATA + sizeof(e.event_data.exit.process_pid) * 4)
		return false;
	memcpy(&cn, message + NLMSG_HDRLEN, sizeof(cn));
	memcpy(&e, message + AT_EVENT, bytes - AT_EVENT < sizeof(e) ? bytes - AT_EVENT : sizeof(e));
	if (cn.id.idx != CN_IDX_PROC || cn.id.val != CN_VAL_PROC)
		return false;
	out->kind = WF_WATCH_NEWS_CHANGED;
	switch ((uint32_t)e.what) {
	case PROC_EVENT_FORK:
		out->pid = e.event_data.fork.child_tgid;
		return e.event_data.fork.child_pid == out->pid;
	case PROC_EVENT_EXEC:
		out->kind = WF_WATCH_NEWS_EXEC;
		out->pid = e.event_data.exec.process_tgid;
		return true;
	case PROC_EVENT_COMM:
		out->pid = e.event_data.comm.process_tgid;
		return e.event_data.comm.process_pid == out->pid;
	case (uint32_t)PROC_EVENT_EXIT:
		out->kind = WF_WATCH_NEWS_EXIT;
		out->pid = e.event_data.exit.process_tgid;
		out->status = (int)e.event_data.exit.exit_code;
		return e.event_data.exit.process_pid == out->pid;
	default:
		return false;
	}
}

bool wf_watch_connector_next(int fd, struct wf_watch_news *out)
{
	struct sockaddr_nl from;
	char message[1024];

	for (;;) {
		socklen_t from_bytes = sizeof(from);
		ssize_t n = recvfrom(fd, message, sizeof(message), MSG_DONTWAIT,
				     (struct sockaddr *)&from, &from_bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		*out = (struct wf_watch_news){ .kind = WF_WATCH_NEWS_LOST };
		/* Only the kernel's own messages come from 0. */
		if (n < 0 || (from.nl_pid == 0 && read_event(message, (size_t)n, out)))
			return true;
	}
}

/* A child that lives for a moment. Where it has a session of its own, that is an event that nobody has asked for. */
static pid_t make_child(bool has_session)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (has_session)
			(void)setsid();
		_exit(0);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return pid;
}

/*
 * Does the kernel know such a request? Then it tells of a child before fork() returns; also after an event that it filters:
 * some kernels were deaf after one.
 */
static bool is_heard(int fd)
{
	struct wf_watch_news news;
	pid_t second;

	(void)make_child(true);
	second = make_child(false);
	while (second > 0 && wf_watch_connector_next(fd, &news)) {
		if (news.kind == WF_WATCH_NEWS_LOST || news.pid == second)
			return true;
	}
	return false;
}

static void set_room(int fd)
{
	int bytes = ROOM_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

/* In others the kernel does not take requests, and other processes than those with our numbers may be meant. */
static bool is_in_first_namespaces(void)
{
	struct stat pid, user;

	return stat("/proc/self/ns/pid", &pid) == 0 && stat("/proc/self/ns/user", &user) == 0 &&
	       pid.st_ino == FIRST_PID_NAMESPACE && user.st_ino == FIRST_USER_NAMESPACE;
}

int wf_watch_connector_open(const char **why)
{
	const struct sockaddr_nl group = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	int fd;

	if (!is_in_first_namespaces()) {
		*why = "it does so in the first PID and user namespaces only";
		return -1;
	}
	fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	if (fd < 0 || !attach_filter(fd) ||
	    bind(fd, (const struct sockaddr *)&group, sizeof(group)) < 0 ||
	    !ask(fd, PROC_CN_MCAST_LISTEN, WANTED)) {
		*why = strerror(errno);
		if (fd >= 0)
			close(fd);
		return -1;
	}
	set_room(fd);
	if (is_heard(fd) || (ask(fd, PROC_CN_MCAST_LISTEN, 0) && is_heard(fd)))
		return fd;
	*why = "it does not answer";
	wf_watch_connector_close(fd);
	return -1;
}

/* The kernel does not notice by itself that a listener has gone, and would go on to make messages for nobody. */
void wf_watch_connector_close(int fd)
{
	(void)ask(fd, PROC_CN_MCAST_IGNORE, 0);
	close(fd);
}
