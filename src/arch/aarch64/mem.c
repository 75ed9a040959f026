// SPDX-License-Identifier: Apache-2.0
/*
 * memcpy and its family for the runtime itself, hidden inside our shared object: libc's would be a sanitizer's in a program
 * that has one, and that knows nothing of the locks under which the runtime copies.
 */
#include "base/base.h"

typedef uint64_t word __attribute__((aligned(1), may_alias));

WF_HIDDEN void *memcpy(void *restrict dst, const void *restrict src, size_t n)
{
	char *d = dst;
	const char *s = src;

	for (; n >= 2 * sizeof(word); n -= 2 * sizeof(word)) {
		const word a = ((const word *)s)[0], b = ((const word *)s)[1];

		((word *)d)[0] = a;
		((word *)d)[1] = b;
		d += 2 * sizeof(word);
		s += 2 * sizeof(word);
	}
	while (n--)
		*d++ = *s++;
	return dst;
}

WF_HIDDEN void *memset(void *dst, int c, size_t n)
{
	const word all = 0x0101010101010101ull * (unsigned char)c;
	char *d = dst;

	for (; n >= sizeof(word); n -= sizeof(word)) {
		*(word *)d = all;
		d += sizeof(word);
	}
	while (n--)
		*d++ = (char)c;
	return dst;
}

WF_HIDDEN void *memmove(void *dst, const void *src, size_t n)
{
	char *d = dst;
	const char *s = src;

	if (d >= s + n || d + n <= s)
		return memcpy(dst, src, n);
	if (d < s)
		for (size_t i = 0; i < n; i++)
			d[i] = s[i];
	else
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
