// SPDX-License-Identifier: Apache-2.0
// A crawler: fetches a page of a server on this machine, follows the links in it to the same server, and says what it got for
// each page, once. So many at a time, and one deadline for all of it: when it is over, whatever is being fetched ends.
//
// Usage: crawler port path [pages at a time [ms for all]]
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define MOST_PAGES 8192
#define MOST_LINKS 256         /* followed of one page */
#define LONGEST_PATH 512       /* longer ones are not followed */
#define LONGEST_PAGE (1 << 20) /* the rest is not read */

struct page {
	char *path;
	int status; /* of HTTP; or -Exxx */
	int nr_links;
	char *links[MOST_LINKS];
};

static uint16_t port;
static weft_chan *fetched;                /* of struct page * */
static struct page *pages[MOST_PAGES];    /* in the order in which they were found */
static struct page *seen[2 * MOST_PAGES]; /* the same, by path: at its hash, or behind it */
static int nr_pages;

/* The answer, which the caller frees; NULL: errno says why. */
static char *get(const char *path)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	char request[LONGEST_PATH + 128], *answer = malloc(LONGEST_PAGE + 1);
	int fd = socket(AF_INET, SOCK_STREAM, 0), len, error = 0;
	size_t have = 0;
	ssize_t n;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	len = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n",
		       path, port);
	if (!answer || fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ||
	    send(fd, request, (size_t)len, MSG_NOSIGNAL) != len) {
		error = errno;
	} else {
		while (have < LONGEST_PAGE &&
		       (n = read(fd, answer + have, LONGEST_PAGE - have)) != 0) {
			if (n < 0) {
				error = errno;
				break;
			}
			have += (size_t)n;
		}
	}
	if (fd >= 0)
		close(fd);
	if (error) {
		free(answer);
		errno = error;
		return NULL;
	}
	for (size_t i = 0; i < have; i++)
		if (answer[i] == '\0')
			answer[i] = ' ';
	answer[have] = '\0';
	return answer;
}

/* href="/...", without what comes behind a '#'. A path that could say more than a path in a request is none. */
static void find_links(struct page *p, const char *text)
{
	size_t len;

	while (p->nr_links < MOST_LINKS && (text = strstr(text, "href=\""))) {
		text += 6;
		len = strcspn(text, "\"#");
		if (text[len] == '\0' || text[0] != '/' || text[1] == '/' || len > LONGEST_PATH)
			continue;
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
				len = 0;
		if (len && (p->links[p->nr_links] = strndup(text, len)))
			p->nr_links++;
	}
}

static int fetch(void *arg)
{
	struct page *p = arg;
	char *answer = get(p->path), *body;

	if (!answer) {
		p->status = -errno;
	} else if (sscanf(answer, "HTTP/1.%*1[01] %3d", &p->status) != 1 || p->status < 100) {
		p->status = -EPROTO;
	} else if (p->status == 200 && (body = strstr(answer, "\r\n\r\n"))) {
		find_links(p, body);
	}
	free(answer);
	/* It has room for all that are under way. WEFT_NOW: also when time is over. */
	return weft_chan_send(fetched, &p, WEFT_NOW);
}

/* Takes path. */
static void found(char *path)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
	struct page *p;

	for (char *c = path; *c; c++)
		h = (h ^ (unsigned char)*c) * 0x100000001b3;
	for (h %= 2 * MOST_PAGES; seen[h]; h = (h + 1) % (2 * MOST_PAGES)) {
		if (strcmp(seen[h]->path, path) == 0) {
			free(path);
			return;
		}
	}
	p = nr_pages < MOST_PAGES ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		free(path);
		return;
	}
	p->path = path;
	seen[h] = pages[nr_pages++] = p;
}

static void report(struct page *p)
{
	if (p->status > 0)
		printf("%d %s\n", p->status, p->path);
	else
		printf("%s: %s\n", p->path, strerror(-p->status));
	for (int i = 0; i < p->nr_links; i++)
		found(p->links[i]);
	p->nr_links = 0;
}

/* Main starts what is fetched and follows the links; a thread that waited for room in its own group could wait for ever. */
static int crawl(weft_group *g)
{
	int started = 0, reported = 0, ret = 0;
	struct page *p;

	while (ret == 0 && reported < nr_pages) {
		if (started < nr_pages && started - reported < (int)g->limit) {
			ret = weft_group_go(g, fetch, pages[started]);
			started += ret == 0;
		} else {
			ret = weft_chan_recv(fetched, &p, g->deadline);
			/* The time of all is over, and not only this page's. */
			if (ret == 0 && p->status == -ETIMEDOUT && weft_now() >= g->deadline)
				ret = p->status;
			if (ret == 0) {
				report(p);
				reported++;
			}
		}
	}
	(void)weft_group_wait(g);
	return ret;
}

int main(int argc, char **argv)
{
	weft_group g = { .name = "crawler", .policy = WEFT_EACH };
	int at_a_time = argc > 3 ? atoi(argv[3]) : 8, ret;
	long ms = argc > 4 ? atol(argv[4]) : 60000;
	char *first = argc > 2 ? strdup(argv[2]) : NULL;

	if (!first || first[0] != '/' || strlen(first) > LONGEST_PATH || at_a_time < 1 ||
	    at_a_time > 1000 || ms < 1 || ms > 86400000) {
		fputs("usage: crawler port path [pages at a time [ms for all]]\n", stderr);
		return 2;
	}
	port = (uint16_t)atoi(argv[1]);
	g.limit = (unsigned)at_a_time;
	g.deadline = weft_now() + ms * WEFT_MS;
	fetched = weft_chan_new(sizeof(struct page *), g.limit, "fetched");
	if (!fetched)
		return 1;
	found(first);
	ret = crawl(&g);
	if (ret < 0)
		fprintf(stderr, "crawler: %s\n", strerror(-ret));
	for (int i = 0; i < nr_pages; i++) {
		for (int k = 0; k < pages[i]->nr_links; k++)
			free(pages[i]->links[k]);
		free(pages[i]->path);
		free(pages[i]);
	}
	weft_chan_free(fetched);
	return ret < 0;
}
