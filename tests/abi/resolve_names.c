// SPDX-License-Identifier: Apache-2.0
/*
 * getaddrinfo("localhost") in 20 threads, and the other name databases.
 */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include "check.h"

#define NR 20

static void *resolves(void *arg)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list = NULL;
	struct passwd entry, *found = NULL;
	char buf[4096];

	for (int i = 0; i < 5; i++) {
		int ret = getaddrinfo("localhost", "80", &hints, &list);

		CHECK_EQ(ret, 0);
		if (ret == 0) {
			struct sockaddr_in *in = (struct sockaddr_in *)list->ai_addr;

			CHECK_EQ(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
			CHECK_EQ(ntohs(in->sin_port), 80);
			freeaddrinfo(list);
		}
		CHECK_PT(getpwuid_r(0, &entry, buf, sizeof(buf), &found));
		CHECK(found && !strcmp(found->pw_name, "root"));
		hints.ai_flags = AI_NUMERICHOST;
		CHECK_EQ(getaddrinfo("localhost", NULL, &hints, &list), EAI_NONAME);
		hints.ai_flags = 0;
	}
	return arg;
}

int main(void)
{
	pthread_t t[NR];
	struct addrinfo *list;

	if (getaddrinfo("localhost", NULL, NULL, &list) != 0) {
		fprintf(stderr, "localhost has no address here\n");
		return EXIT_SKIP;
	}
	freeaddrinfo(list);
	for (int i = 0; i < NR; i++)
		t[i] = start(resolves, NULL);
	for (int i = 0; i < NR; i++)
		join(t[i]);
	ok("20 threads resolve localhost");
	return finish();
}
