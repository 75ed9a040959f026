// SPDX-License-Identifier: Apache-2.0
/* Loaded into weft top: the signal RAISES comes right behind change AT (0: the first) of the terminal's mode. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>

static int number_in(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : -1;
}

int tcsetattr(int fd, int when, const struct termios *mode)
{
	int (*real)(int, int, const struct termios *);
	static int nr;
	int ret;

	*(void **)&real = dlsym(RTLD_NEXT, "tcsetattr");
	ret = real(fd, when, mode);
	if (nr++ == number_in("AT"))
		(void)raise(number_in("RAISES"));
	return ret;
}
