// SPDX-License-Identifier: Apache-2.0
/* One line on standard error; see say.h. */
#include "gate/say.h"
#include "base/fmt.h"
#include "sys/syscall.h"

#define MOST 320

static void add(struct wf_fmt *f, const char *text)
{
	for (; text && *text; text++) {
		const char c[] = { (unsigned char)*text < ' ' ? '?' : *text, 0 };

		wf_fmt_str(f, c);
	}
}

void wf_say(const char *a, const char *b, const char *c)
{
	char line[MOST];
	struct wf_fmt f;

	wf_fmt_init(&f, line, sizeof(line) - 1);
	add(&f, "weft: ");
	add(&f, a);
	add(&f, b);
	add(&f, c);
	line[f.len] = '\n';
	(void)sys_write(2, line, f.len + 1);
}
