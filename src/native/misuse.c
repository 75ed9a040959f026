// SPDX-License-Identifier: Apache-2.0
/* Mistakes of the caller; see misuse.h. */
#include "native/misuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void wf_misuse(const char *format, ...)
{
	char text[256] = "weft: ";
	size_t len = strlen(text);
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text + len, sizeof(text) - len - 1, format, args);
	va_end(args);
	if (n > 0)
		len = WF_MIN(len + (size_t)n, sizeof(text) - 2);
	text[len++] = '\n';
	(void)!write(STDERR_FILENO, text, len);
	abort();
}
