// SPDX-License-Identifier: Apache-2.0
/*
 * 1,000 threads ask for 1,000 names at once, of a name server that answers nobody before all have asked.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#undef ADD /* of nameser_compat.h */
#include "check.h"

#define NR 1000

static int server;
static struct sockaddr_in server_addr;
static struct query {
	struct sockaddr_in from;
	unsigned char text[300];
	ssize_t len;
} queries[NR];

/* The number in the first label: "h123". */
static int number_of(const unsigned char *query)
{
	int len = query[12], number = 0;

	for (int i = 1; i < len; i++)
		number = number * 10 + query[13 + i] - '0';
	return number;
}

static void answer(struct query *q)
{
	unsigned char *p = q->text;
	int number = number_of(p);
	size_t len = 12;

	while (p[len])
		len += p[len] + 1u;
	len += 5; /* the end of the name, type and class; what follows of the query is left out */
	p[2] = 0x81;
	p[3] = 0x80;
	p[7] = 1; /* one answer */
	p[9] = p[11] = 0;
	const unsigned char record[] = { 0xc0,
					 12,
					 0,
					 1,
					 0,
					 1,
					 0,
					 0,
					 0,
					 60,
					 0,
					 4,
					 10,
					 1,
					 (unsigned char)(number >> 8),
					 (unsigned char)number };
	memcpy(p + len, record, sizeof(record));
	CHECK_SYS(sendto(server, p, len + sizeof(record), 0, (struct sockaddr *)&q->from,
			 sizeof(q->from)));
}

static void *serves(void *arg)
{
	int nr_names = 0;

	(void)arg;
	for (;;) {
		struct query q = { .len = 0 };
		socklen_t len = sizeof(q.from);

		q.len = recvfrom(server, q.text, sizeof(q.text) - 32, 0, (struct sockaddr *)&q.from,
				 &len);
		if (q.len < 20)
			return NULL; /* the last word */
		int number = number_of(q.text);
		if (number < 0 || number >= NR)
			continue;
		nr_names += !queries[number].len;
		queries[number] = q;
		if (nr_names < NR)
			continue;
		if (nr_names == NR) {
			for (int i = 0; i < NR; i++)
				answer(&queries[i]);
			nr_names++;
		} else {
			answer(&q); /* a question repeated */
		}
	}
}

static void *asks(void *arg)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list = NULL;
	int number = (int)(intptr_t)arg, ret;
	char name[64];

	CHECK_EQ(res_init(), 0);
	_res.nsaddr_list[0] = server_addr;
	_res.nscount = 1;
	_res.retrans = 20;
	_res.retry = 3;
	snprintf(name, sizeof(name), "h%d.weft.example.", number);
	ret = getaddrinfo(name, "80", &hints, &list);
	CHECK_EQ(ret, 0);
	if (ret == 0) {
		struct sockaddr_in *in = (struct sockaddr_in *)list->ai_addr;

		CHECK_EQ(ntohl(in->sin_addr.s_addr), 0x0a010000 + number);
		freeaddrinfo(list);
	}
	return NULL;
}

int main(void)
{
	static pthread_t t[NR];
	socklen_t len = sizeof(server_addr);
	pthread_attr_t attr;
	struct rlimit limit;
	int room = 4 << 20;

	CHECK_SYS(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	if (limit.rlim_max < NR + 100 || setrlimit(RLIMIT_NOFILE, &limit) < 0) {
		fprintf(stderr, "too few descriptors are allowed\n");
		return EXIT_SKIP;
	}
	server = (int)CHECK_SYS(socket(AF_INET, SOCK_DGRAM, 0));
	if (setsockopt(server, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0) {
		fprintf(stderr, "no room for 1,000 questions\n");
		return EXIT_SKIP;
	}
	server_addr = (struct sockaddr_in){ .sin_family = AF_INET,
					    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	CHECK_SYS(bind(server, (struct sockaddr *)&server_addr, sizeof(server_addr)));
	CHECK_SYS(getsockname(server, (struct sockaddr *)&server_addr, &len));
	pthread_t s = start(serves, NULL);
	CHECK_PT(pthread_attr_init(&attr));
	CHECK_PT(pthread_attr_setstacksize(&attr, 256 << 10));
	for (intptr_t i = 0; i < NR; i++)
		CHECK_PT(pthread_create(&t[i], &attr, asks, (void *)i));
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("1,000 names at once");
	int last = (int)CHECK_SYS(socket(AF_INET, SOCK_DGRAM, 0));
	CHECK_SYS(sendto(last, "", 1, 0, (struct sockaddr *)&server_addr, sizeof(server_addr)));
	join(s);
	return finish();
}
