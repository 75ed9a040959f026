// SPDX-License-Identifier: Apache-2.0
/*
 * Arguments and environment are one piece of memory, in which servers write what they do (setproctitle).
 */
#include "check.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static void *does_nothing(void *arg)
{
	return arg;
}

/* The end of the piece that begins with argv[0]. */
static char *end_of_room(char **argv)
{
	char *end = argv[0];

	for (char **at = argv; *at; at++) {
		CHECK(*at == end);
		end += strlen(end) + 1;
	}
	for (char **at = environ; *at; at++) {
		CHECK(*at == end);
		end += strlen(end) + 1;
	}
	return end;
}

int main(int argc, char **argv)
{
	char title[64] = "";
	char *end;
	int fd;

	(void)argc;
	join(start(does_nothing, NULL));
	end = end_of_room(argv);
	environ = NULL;
	memset(argv[0], 0, (size_t)(end - argv[0]));
	strcpy(argv[0], "weft: waits");
	fd = (int)CHECK_SYS(open("/proc/self/cmdline", O_RDONLY));
	CHECK(read(fd, title, sizeof(title) - 1) > 0);
	CHECK(!strcmp(title, "weft: waits"));
	ok("a title over arguments and environment");
	return finish();
}
