// SPDX-License-Identifier: Apache-2.0
/*
 * The line of the watchdog; see stall.h.
 *
 * Where a parked thread is, is searched for on its stack: the first address there that follows a call, in a module that is neither
 * libc nor ours. It may be left over from an earlier call; `weft dump` follows the stack instead.
 */
#include "obs/stall.h"
#include "obs/symbols.h"

#include <linux/poll.h>

#define TEXT_BYTES 768
#define PATIENCE_MS 1000 /* with a reader of standard error who is slow */
#define SEARCHED_BYTES 4096u
#define MAX_LOOKUPS 64u

static void put_time(struct wf_fmt *f, int64_t ns)
{
	const uint64_t tenths = (uint64_t)ns / (WF_SEC / 10);

	wf_fmt_u64(f, tenths / 10);
	if (tenths < 100 && tenths % 10) {
		wf_fmt_str(f, ".");
		wf_fmt_u64(f, tenths % 10);
	}
	wf_fmt_str(f, " s");
}

static bool is_ours(const struct wf_symbol *s)
{
	static const char name[] = "libweft.so";
	uint32_t i = 0;

	while (name[i] && s->module[i] == name[i])
		i++;
	return !name[i];
}

static bool is_return_address(uint64_t word)
{
	uint8_t before[WF_BYTES_OF_CALL];

	return wf_symbols_is_code(word) &&
	       wf_arch_copy(before, (const void *)(word - sizeof(before)), sizeof(before)) == 0 &&
	       wf_arch_is_call(before);
}

static bool find_place(const struct lx_thread *t, struct wf_symbol *out)
{
	uintptr_t at = (uintptr_t)wf_load_relaxed(&t->base.sp), end = at + SEARCHED_BYTES;
	uint32_t nr_lookups = 0;

	for (; at && at < end && nr_lookups < MAX_LOOKUPS; at += sizeof(uint64_t)) {
		uint64_t word;

		if (wf_arch_copy(&word, (const void *)at, sizeof(word)) < 0)
			return false;
		if (!is_return_address(word) || lx_gate.in_libc(word))
			continue;
		nr_lookups++;
		if (wf_symbols_find(word - 1, !wf_load_acquire(&wf_rt.is_filtered), out) &&
		    !is_ours(out))
			return true;
	}
	return false;
}

static void put_thread(struct wf_fmt *f, const struct lx_stall *s, uint32_t i)
{
	const struct lx_thread *t = s->shown[i].t;
	char name[sizeof(t->name) + 1] = "";
	struct wf_symbol place;

	__builtin_memcpy(name, t->name, sizeof(t->name));
	wf_symbols_clean(name);
	wf_fmt_str(f, "thread ");
	wf_fmt_u64(f, wf_load_relaxed(&t->base.tid));
	wf_fmt_str(f, " \"");
	wf_fmt_str(f, name);
	wf_fmt_str(f, "\"");
	if (s->shown[i].call >= 0) {
		wf_fmt_str(f, " in system call ");
		wf_fmt_u64(f, (uint64_t)s->shown[i].call);
	}
	if (wf_state_of(wf_load_acquire(&t->base.state)) != WF_PARKED || !find_place(t, &place))
		return;
	wf_fmt_str(f, " at ");
	wf_fmt_str(f, place.name[0] ? place.name : place.module);
	if (!place.name[0]) {
		wf_fmt_str(f, "+");
		wf_fmt_hex(f, place.offset);
	}
}

void wf_stall_report(const struct lx_stall *s)
{
	static char text[TEXT_BYTES];
	struct pollfd to = { .fd = 2, .events = POLLOUT };
	struct wf_fmt f;

	wf_fmt_init(&f, text, sizeof(text) - 1);
	wf_fmt_str(&f, s->is_circle ? "weft: watchdog: nobody can wake any of the threads: "
				    : "weft: watchdog: threads are ready and none gets on: ");
	wf_fmt_u64(&f, s->nr);
	wf_fmt_str(&f, ", for ");
	put_time(&f, s->for_ns);
	if (s->nr_shown)
		wf_fmt_str(&f, s->is_circle ? "; " : "; on the workers ");
	for (uint32_t i = 0; i < s->nr_shown; i++) {
		wf_fmt_str(&f, i ? ", " : "");
		put_thread(&f, s, i);
	}
	wf_fmt_str(&f, s->is_circle && s->nr > s->nr_shown ? ", ..." : "");
	wf_fmt_str(&f, s->ends ? "; ending it" : "; see weft dump ");
	if (!s->ends)
		wf_fmt_u64(&f, (uint64_t)wf_rt.pid);
	text[f.len] = '\n';
	if (sys3(__NR_poll, &to, 1, PATIENCE_MS) > 0)
		(void)sys_write(2, text, f.len + 1);
}
