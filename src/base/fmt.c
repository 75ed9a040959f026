// SPDX-License-Identifier: Apache-2.0
/* Formatting without libc; see fmt.h. */
#include "base/fmt.h"

void wf_fmt_init(struct wf_fmt *f, char *buf, size_t cap)
{
	*f = (struct wf_fmt){ .buf = buf, .cap = cap };
	if (cap)
		buf[0] = '\0';
}

static void put(struct wf_fmt *f, char c)
{
	if (f->len + 1 >= f->cap)
		return;
	f->buf[f->len++] = c;
	f->buf[f->len] = '\0';
}

void wf_fmt_str(struct wf_fmt *f, const char *s)
{
	while (*s)
		put(f, *s++);
}

static void put_base(struct wf_fmt *f, uint64_t v, unsigned base)
{
	char digits[24];
	int n = 0;

	do {
		digits[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (n)
		put(f, digits[--n]);
}

void wf_fmt_u64(struct wf_fmt *f, uint64_t v)
{
	put_base(f, v, 10);
}

void wf_fmt_i64(struct wf_fmt *f, int64_t v)
{
	if (v < 0)
		put(f, '-');
	put_base(f, v < 0 ? -(uint64_t)v : (uint64_t)v, 10);
}

void wf_fmt_hex(struct wf_fmt *f, uint64_t v)
{
	wf_fmt_str(f, "0x");
	put_base(f, v, 16);
}

bool wf_fmt_parse_u64(const char *s, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned d = (unsigned char)*s - '0';

		if (d > 9 || v > (UINT64_MAX - d) / 10)
			return false;
		v = v * 10 + d;
	}
	*out = v;
	return true;
}
