// SPDX-License-Identifier: Apache-2.0
/* Mistakes of the caller; see misuse.h. */
#include "native/misuse.h"
#include "native/picture.h"

#include <asm/unistd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct wf_scopes *(*wf_misuse_scopes)(void);

/* A fiber's stack may be small. Whoever makes the second mistake of a process says its line, and no more. */
static char picture[WF_PICTURE_BYTES];
static uint32_t is_drawn; /* (a) */

/* A pipe that is full is not waited for. */
static WF_FACE_CODE void show_picture(struct wf_chan *ch)
{
	struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };
	char name[16] = "";
	struct wf_picture p = { .ch = ch, .name = name };
	size_t len;

	if (wf_exchange(&is_drawn, 1u))
		return;
	(void)pthread_getname_np(pthread_self(), name, sizeof(name));
	p.tid = (uint64_t)syscall(__NR_gettid);
	p.sc = wf_misuse_scopes ? wf_misuse_scopes() : NULL;
	len = wf_picture_draw(wf_face_enter(), &p, picture);
	if (poll(&out, 1, 0) == 1 && out.revents == POLLOUT)
		(void)!write(STDERR_FILENO, picture, len);
}

WF_NORETURN WF_PRINTF(2, 0) static WF_FACE_CODE
	void die(struct wf_chan *ch, const char *format, va_list args)
{
	char text[512] = "weft: ";
	size_t len = strlen(text);
	sigset_t pipe;
	int n;

	/* A reader that is gone does not change the signal of which the process ends. */
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe, NULL);
	n = vsnprintf(text + len, sizeof(text) - len - 1, format, args);
	if (n > 0)
		len = WF_MIN(len + (size_t)n, sizeof(text) - 2);
	/* Names are the program's, and may say anything. */
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			text[i] = '?';
	}
	text[len++] = '\n';
	(void)!write(STDERR_FILENO, text, len);
	show_picture(ch);
	abort();
}

void wf_misuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	die(NULL, format, args);
}

void wf_misuse_of(struct wf_chan *ch, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	die(ch, format, args);
}
