// SPDX-License-Identifier: Apache-2.0
// Happy eyeballs, after RFC 8305, section 5: try the addresses of a name one after the other, the next one a little later even
// if the last one has not failed yet, and keep the first that connects. The group cancels the others in their connect().
//
// Usage: eyeballs port address...      (in the order of preference, as numbers; RFC 8305, section 4, sorts them)
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define DELAY (250 * WEFT_MS) /* "Connection Attempt Delay" */
#define MOST 16

struct attempt {
	struct addrinfo *to;
	const char *text;
	int fd;           /* out: -1, or what is connected */
	weft_event ended; /* if it fails, the next one starts at once */
};

static int attempt(void *arg)
{
	struct attempt *a = arg;
	int ret = 0, fd = socket(a->to->ai_family, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, a->to->ai_addr, a->to->ai_addrlen) < 0) {
		ret = -errno;
		if (fd >= 0)
			close(fd);
	} else {
		a->fd = fd;
	}
	weft_event_set(&a->ended);
	return ret;
}

/* The one that is connected, or NULL. */
static struct attempt *connect_first(struct attempt *a, int nr)
{
	weft_group g = { .name = "eyeballs",
			 .policy = WEFT_ANY,
			 .deadline = weft_now() + 90 * WEFT_SEC };
	struct attempt *won = NULL;
	bool is_won = false;

	for (int i = 0; i < nr && !is_won; i++) {
		if (weft_group_go(&g, attempt, &a[i]) < 0)
			break;
		/* 0: it has ended, and if it has connected, nobody else needs to begin. */
		is_won = weft_event_wait(&a[i].ended, weft_now() + DELAY) == 0 && a[i].fd >= 0;
	}
	(void)weft_group_wait(&g);
	for (int i = 0; i < nr; i++) {
		if (a[i].fd < 0)
			continue;
		if (!won)
			won = &a[i];
		else
			close(a[i].fd); /* connected at the same moment */
	}
	return won;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	static struct attempt a[MOST];
	struct attempt *won;
	int nr = 0;

	for (int i = 2; i < argc && nr < MOST; i++) {
		a[nr] = (struct attempt){ .text = argv[i], .fd = -1 };
		if (getaddrinfo(argv[i], argv[1], &hints, &a[nr].to) == 0)
			nr++;
	}
	won = connect_first(a, nr);
	puts(won ? won->text : "nobody answers");
	for (int i = 0; i < nr; i++)
		freeaddrinfo(a[i].to);
	if (won)
		close(won->fd);
	return !won;
}
