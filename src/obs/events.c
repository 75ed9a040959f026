// SPDX-License-Identifier: Apache-2.0
/* The event rings as text; see events.h. */
#include "obs/events.h"
#include "base/fmt.h"
#include "sched/runtime.h"

#include <fcntl.h>

#define LINE_BYTES 160

static int write_all(int fd, const char *text, size_t len)
{
	while (len) {
		long n = sys_write(fd, text, len);

		if (n < 0)
			return (int)n;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_event(int fd, const struct wf_kthread *k, const struct wf_trace_event *e)
{
	char text[LINE_BYTES];
	struct wf_fmt f;

	wf_fmt_init(&f, text, sizeof(text));
	wf_fmt_u64(&f, e->cycles);
	wf_fmt_str(&f, " ");
	wf_fmt_i64(&f, k->tid);
	wf_fmt_str(&f, " ");
	wf_fmt_u64(&f, e->tid);
	wf_fmt_str(&f, " ");
	wf_fmt_str(&f, wf_trace_name((enum wf_event)e->event));
	wf_fmt_str(&f, " ");
	wf_fmt_hex(&f, e->a);
	wf_fmt_str(&f, " ");
	wf_fmt_hex(&f, e->b);
	wf_fmt_str(&f, "\n");
	return write_all(fd, text, f.len);
}

int wf_events_write(const char *path)
{
	static const char head[] = "# cycles kernel-thread thread event a b\n";
	uint32_t n = wf_load_acquire(&wf_rt.nr_kthreads);
	long fd = sys4(__NR_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int ret;

	if (fd < 0)
		return (int)fd;
	ret = write_all((int)fd, head, sizeof(head) - 1);
	for (uint32_t i = 0; i < n && ret == 0; i++) {
		const struct wf_kthread *k = wf_load_acquire(&wf_rt.kthreads[i]);
		const struct wf_trace_ring *r = k->ring;
		uint64_t end = r ? wf_load_acquire(&r->next) : 0;
		uint64_t at = end > WF_TRACE_EVENTS ? end - WF_TRACE_EVENTS : 0;

		for (; at < end && ret == 0; at++)
			ret = write_event((int)fd, k, &r->events[at % WF_TRACE_EVENTS]);
	}
	(void)sys_close((int)fd);
	return ret;
}
