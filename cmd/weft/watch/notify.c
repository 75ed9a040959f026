// SPDX-License-Identifier: Apache-2.0
/*
 * sd_notify(3): the program's messages to its service manager go through us, since the manager believes the main process, and
 * that is `weft watch`.
 *
 * Called by: watch.c, helper.c, supervise.c. The program sends to a socket of ours; each message is passed on with its
 * descriptors, but for MAINPID=, and for WATCHDOG=1 while a stall is seen.
 *
 * Invariant: only what our own descendants say is passed on; the socket's name is open to the whole network namespace.
 */
#include "watch/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MESSAGE_BYTES 4096 /* the manager takes no longer ones, either */
#define FDS_MAX 253        /* SCM_MAX_FD */
#define MESSAGES_MAX 16    /* in one round */

/* The address that name stands for; its length, or 0. */
static socklen_t parse_address(const char *name, struct sockaddr_un *out)
{
	size_t bytes = strlen(name);

	if ((*name != '/' && *name != '@') || bytes < 2 || bytes >= sizeof(out->sun_path))
		return 0;
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path, name, bytes);
	if (*name == '@')
		out->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes + (*name == '/'));
}

/* A socket with a name that the kernel chooses. */
static int open_socket(char *name, size_t bytes)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(address.sun_family);
	int on = 1, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0 &&
	    bind(fd, (struct sockaddr *)&address, len) == 0) {
		len = sizeof(address);
		if (getsockname(fd, (struct sockaddr *)&address, &len) == 0) {
			snprintf(name, bytes, "@%.*s",
				 (int)(len - offsetof(struct sockaddr_un, sun_path) - 1),
				 address.sun_path + 1);
			return fd;
		}
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

void wf_watch_notify_open(struct wf_watch *w)
{
	static struct sockaddr_un manager;
	const struct timeval patience = { .tv_sec = 1 };
	const char *asked = getenv("NOTIFY_SOCKET");
	char name[sizeof(manager.sun_path) + 1];

	if (!asked || !(w->manager_bytes = parse_address(asked, &manager)))
		return;
	w->manager = &manager;
	w->to_manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	w->notify = open_socket(name, sizeof(name));
	if (w->to_manager >= 0 && w->notify >= 0 &&
	    setsockopt(w->to_manager, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
	    setenv("NOTIFY_SOCKET", name, 1) == 0)
		return;
	if (w->to_manager >= 0)
		close(w->to_manager);
	if (w->notify >= 0)
		close(w->notify);
	w->notify = -1;
}

void wf_watch_notify_give(pid_t parent)
{
	const char *whose = getenv("WATCHDOG_PID");
	char pid[16];

	if (!whose || strtol(whose, NULL, 10) != parent)
		return;
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	(void)setenv("WATCHDOG_PID", pid, 1);
}

void wf_watch_notify_alive(const struct wf_watch *w)
{
	static const char alive[] = "WATCHDOG=1";

	if (w->notify >= 0)
		(void)sendto(w->to_manager, alive, strlen(alive), MSG_NOSIGNAL,
			     (const struct sockaddr *)w->manager, w->manager_bytes);
}

/* Takes out the lines that are not to be passed on; the bytes that are left. */
static size_t filter(const struct wf_watch *w, char *text)
{
	size_t left = 0;

	for (char *line = text, *next; *line; line = next) {
		size_t bytes = strcspn(line, "\n");
		bool is_main = strncmp(line, "MAINPID=", 8) == 0;
		bool is_alive = bytes == 10 && strncmp(line, "WATCHDOG=1", 10) == 0;

		next = line + bytes + (line[bytes] == '\n');
		if (is_main || (is_alive && w->stall.is_told))
			continue;
		memmove(text + left, line, (size_t)(next - line));
		left += (size_t)(next - line);
	}
	return left;
}

struct control {
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	};
};

/* The sender, and its descriptors, which are ours now. */
static pid_t take_control(struct msghdr *m, int *fds, size_t *out_nr)
{
	pid_t pid = 0;

	*out_nr = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);
		struct ucred ucred;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(ucred)) {
			memcpy(&ucred, CMSG_DATA(c), sizeof(ucred));
			pid = ucred.pid;
		} else if (c->cmsg_type == SCM_RIGHTS && bytes <= FDS_MAX * sizeof(int)) {
			memcpy(fds, CMSG_DATA(c), bytes);
			*out_nr = bytes / sizeof(int);
		}
	}
	return pid;
}

static void pass_on(const struct wf_watch *w, char *text, size_t bytes, const int *fds, size_t nr)
{
	static struct control control;
	struct iovec piece = { text, bytes };
	struct msghdr m = {
		.msg_name = w->manager,
		.msg_namelen = w->manager_bytes,
		.msg_iov = &piece,
		.msg_iovlen = 1,
	};

	if (nr) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(nr * sizeof(*fds));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr * sizeof(*fds));
		memcpy(CMSG_DATA(c), fds, nr * sizeof(*fds));
	}
	(void)sendmsg(w->to_manager, &m, MSG_NOSIGNAL);
}

static bool pass_one(const struct wf_watch *w)
{
	static struct control control;
	static int fds[FDS_MAX];
	char text[MESSAGE_BYTES + 1];
	struct iovec piece = { text, MESSAGE_BYTES };
	struct msghdr m = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(w->notify, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	size_t nr, bytes;
	pid_t pid;

	if (n < 0)
		return false;
	pid = take_control(&m, fds, &nr);
	text[n] = '\0';
	if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && strlen(text) == (size_t)n &&
	    wf_watch_is_ours(pid)) {
		bytes = filter(w, text);
		if (bytes)
			pass_on(w, text, bytes, fds, nr);
	}
	for (size_t i = 0; i < nr; i++)
		close(fds[i]);
	return true;
}

void wf_watch_notify_pass(const struct wf_watch *w)
{
	for (int i = 0; w->notify >= 0 && i < MESSAGES_MAX && pass_one(w); i++)
		;
}
