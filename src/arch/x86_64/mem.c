// SPDX-License-Identifier: Apache-2.0
/*
 * memcpy and its family for the runtime itself, hidden inside our shared object.
 *
 * The compiler emits calls to these names for structure copies. libc's versions use vector registers,
 * which a hook must not touch, and are reached through the PLT.
 */
#include "base/base.h"

WF_HIDDEN void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	void *d = dst;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(src), "+c"(n) : : "memory");
	return dst;
}

WF_HIDDEN void *memset(void *dst, int c, size_t n)
{
	void *d = dst;

	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return dst;
}

WF_HIDDEN void *memmove(void *dst, const void *src, size_t n)
{
	char *d = dst;
	const char *s = src;

	if (d <= s || d >= s + n)
		return memcpy(dst, src, n);
	while (n--)
		d[n] = s[n];
	return dst;
}

WF_HIDDEN int memcmp(const void *a, const void *b, size_t n)
{
	const unsigned char *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}
