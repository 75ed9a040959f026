// SPDX-License-Identifier: Apache-2.0
/*
 * The report of a stack overflow; see overflow.h.
 *
 * The calls are followed by frame pointers, as far as they are beyond doubt: each higher on the stack than the one before,
 * with a return address in a module. Of an endless recursion the part that repeats itself is said once, with its number.
 * Its memory is static, since it runs once, on a small stack.
 */
#include "obs/overflow.h"
#include "obs/symbols.h"

#include <linux/resource.h>
#include <linux/poll.h>

#define TEXT_BYTES 3072
#define CALLS_BYTES 1200
#define PATIENCE_MS                                                                                \
	1000 /* with a reader of standard error who is slow; the others must be able to die */
#define MAX_KEPT 512u              /* frames that are looked at for what repeats itself */
#define MAX_PREFIX 32u             /* calls before that, inside malloc() say */
#define MAX_PERIOD 16u             /* functions that call one another in turn */
#define MAX_SHOWN 12u              /* frames after it, or without any */
#define MAX_SKIPPED 1024u          /* words of the stack that are searched for a frame */
#define MAX_LOOKUPS 512u           /* of a place's function */
#define MAX_KNOWN 64u              /* places whose function is remembered */
#define NO_LIMIT_BYTES (2ul << 20) /* libc's stacks where the limit is "unlimited" */
#define LARGER 4ul                 /* times as large: what is proposed */

struct frame {
	uintptr_t pc, function; /* the function's start, or pc itself where it has no name */
};

static struct frame frames[MAX_KEPT];
static bool may_ask; /* see struct lx_overflow */

struct walk {
	const struct lx_overflow *o;
	uint64_t fp;
	uint32_t nr_read, nr_kept; /* frames that frame_at() has read, and of them in frames */
	uintptr_t last;            /* of those that were read: where it goes on */
	bool has_gap;              /* between the first two */
};

/* --- calls --- */

/* A large table of symbols takes a millisecond to look through: where that was done too often, each place is its own. */
static uintptr_t function_of(uintptr_t pc)
{
	static struct frame known[MAX_KNOWN];
	static uint32_t nr_lookups;
	struct frame *f = &known[pc / 2 % MAX_KNOWN];
	struct wf_symbol s;

	if (f->pc != pc) {
		if (nr_lookups == MAX_LOOKUPS)
			return pc;
		nr_lookups++;
		(void)wf_symbols_find(pc, may_ask, &s);
		*f = (struct frame){ pc, s.start ? s.start : pc };
	}
	return f->function;
}

static uintptr_t original(uintptr_t pc)
{
	uintptr_t site = lx_gate.in_pool(pc) ? lx_gate.from_tramp(pc) : pc;

	return site ? site : pc;
}

/* The caller of the frame that was read last. */
static bool read_caller(struct walk *w)
{
	uint64_t pair[2];
	uintptr_t sp = wf_uc_sp(w->o->uc);

	if (w->fp % sizeof(w->fp) || w->fp < w->o->low || w->fp < sp ||
	    w->fp + sizeof(pair) > w->o->high ||
	    wf_arch_copy(pair, (const void *)w->fp, sizeof(pair)) < 0 ||
	    !wf_symbols_is_code(pair[1]))
		return false;
	w->last = pair[1];
	w->fp = pair[0] > w->fp ? pair[0] : 0;
	return true;
}

/*
 * The code that faulted, libc's mostly, keeps no frame pointer: up the stack the first place is looked for from which
 * three callers in a row can be read.
 */
static bool skip_to_frame(struct walk *w)
{
	uintptr_t at = WF_ALIGN_UP(WF_MAX(wf_uc_sp(w->o->uc), w->o->low), sizeof(uint64_t));
	struct walk probe = *w;

	for (uint32_t i = 0; i < MAX_SKIPPED; i++, at += sizeof(uint64_t)) {
		probe.fp = at;
		if (read_caller(&probe) && read_caller(&probe) && read_caller(&probe)) {
			w->fp = at;
			return true;
		}
	}
	return false;
}

static void keep_callers(struct walk *w)
{
	while (w->nr_kept < MAX_KEPT && read_caller(w))
		frames[w->nr_kept++] = (struct frame){ w->last, function_of(w->last) };
}

/* Frame i, in order from those that are kept on. */
static bool frame_at(struct walk *w, uint32_t i, uintptr_t *out_pc)
{
	if (i < w->nr_kept) {
		*out_pc = frames[i].pc;
		return true;
	}
	while (w->nr_read <= i) {
		if (!read_caller(w))
			return false;
		w->nr_read++;
	}
	*out_pc = w->last;
	return true;
}

static void begin_walk(struct walk *w, const struct lx_overflow *o)
{
	uintptr_t pc = original(wf_uc_pc(o->uc));

	*w = (struct walk){ .o = o, .fp = wf_uc_fp(o->uc), .nr_kept = 1 };
	frames[0] = (struct frame){ pc, function_of(pc) };
	keep_callers(w);
	if (w->nr_kept < 3 && skip_to_frame(w)) {
		w->has_gap = true;
		w->nr_kept = 1;
		keep_callers(w);
	}
	w->nr_read = w->nr_kept;
}

static bool repeats(uint32_t from, uint32_t period, uint32_t nr)
{
	if (from + 3 * period > nr)
		return false;
	for (uint32_t i = from; i < from + 2 * period; i++)
		if (frames[i].function != frames[i + period].function)
			return false;
	return true;
}

/* The first part that repeats itself. False: none does. */
static bool find_repetition(uint32_t nr, uint32_t *out_from, uint32_t *out_period)
{
	for (uint32_t from = 0; from < MAX_PREFIX && from < nr; from++)
		for (uint32_t period = 1; period <= MAX_PERIOD; period++)
			if (repeats(from, period, nr)) {
				*out_from = from;
				*out_period = period;
				return true;
			}
	return false;
}

/* --- words --- */

static void put_place(struct wf_fmt *f, const struct wf_symbol *s)
{
	wf_fmt_str(f, s->module);
	wf_fmt_str(f, "+");
	wf_fmt_hex(f, s->offset);
}

static void put_function(struct wf_fmt *f, uintptr_t pc)
{
	struct wf_symbol s;

	if (!wf_symbols_find(pc, may_ask, &s))
		wf_fmt_hex(f, pc);
	else if (s.name[0])
		wf_fmt_str(f, s.name);
	else
		put_place(f, &s);
}

/* With what stands before it. */
static void put_frame(struct wf_fmt *f, const struct walk *w, uint32_t i, uintptr_t pc)
{
	if (i)
		wf_fmt_str(f, i == 1 && w->has_gap ? ", ..., " : ", ");
	put_function(f, pc);
}

/* The part that repeats itself, and how often. Returns the first frame after it. */
static uint32_t put_repetition(struct wf_fmt *f, struct walk *w, uint32_t from, uint32_t period)
{
	uint32_t end = from + period;
	uintptr_t pc;

	for (; frame_at(w, end, &pc); end++) {
		const struct frame *expected = &frames[from + (end - from) % period];

		if (pc != expected->pc && function_of(pc) != expected->function)
			break;
	}
	for (uint32_t i = from; i < from + period; i++)
		put_frame(f, w, i, frames[i].pc);
	wf_fmt_str(f, period > 1 ? " in turn, x " : " x ");
	wf_fmt_u64(f, (end - from) / period);
	return end;
}

static void put_calls(struct wf_fmt *f, const struct lx_overflow *o)
{
	uint32_t from = 0, period = 0, next = 0, shown = 0;
	uintptr_t pc;
	struct walk w;

	begin_walk(&w, o);
	if (w.nr_kept < 2) {
		wf_fmt_str(f, "; the calls cannot be followed: no frame pointers");
		return;
	}
	wf_fmt_str(f, "; calls: ");
	if (find_repetition(w.nr_kept, &from, &period)) {
		for (; next < from; next++)
			put_frame(f, &w, next, frames[next].pc);
		next = put_repetition(f, &w, from, period);
	}
	for (; frame_at(&w, next, &pc); next++) {
		if (shown++ == MAX_SHOWN) {
			wf_fmt_str(f, ", ...");
			return;
		}
		put_frame(f, &w, next, pc);
	}
}

static void put_bytes(struct wf_fmt *f, uint64_t bytes, const char *mega, const char *kilo)
{
	bool is_mega = bytes % (1 << 20) == 0;

	wf_fmt_u64(f, bytes >> (is_mega ? 20 : 10));
	wf_fmt_str(f, is_mega ? mega : kilo);
}

static void put_size(struct wf_fmt *f, uint64_t bytes)
{
	put_bytes(f, bytes, " MiB", " KiB");
}

static void put_fiber(struct wf_fmt *f, const struct lx_overflow *o)
{
	char name[sizeof(o->fiber.name)];

	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = o->fiber.name[i];
	wf_symbols_clean(name);
	wf_fmt_str(f, "fiber \"");
	wf_fmt_str(f, name);
	wf_fmt_str(f, "\" of ");
}

static void put_head(struct wf_fmt *f, const struct lx_overflow *o)
{
	char name[sizeof(o->t->name) + 1] = { 0 };

	for (size_t i = 0; i < sizeof(o->t->name); i++)
		name[i] = o->t->name[i];
	wf_symbols_clean(name);
	wf_fmt_str(f, "weft: ");
	if (o->stack == LX_OVERFLOW_FIBER)
		put_fiber(f, o);
	wf_fmt_str(f, "thread ");
	wf_fmt_u64(f, lx_tid(o->t));
	wf_fmt_str(f, " \"");
	wf_fmt_str(f, name);
	wf_fmt_str(f,
		   o->is_probable ? "\" has probably overflowed its " : "\" has overflowed its ");
	if (o->stack == LX_OVERFLOW_SIGNAL)
		wf_fmt_str(f, "alternate signal ");
	wf_fmt_str(f, "stack");
	if (!o->low) {
		wf_fmt_str(f, ", which has no limit\n");
		return;
	}
	wf_fmt_str(f, " of ");
	put_size(f, o->high - o->low);
	wf_fmt_str(f, " (");
	wf_fmt_hex(f, o->low);
	wf_fmt_str(f, " to ");
	wf_fmt_hex(f, o->high);
	wf_fmt_str(f, ")\n");
}

static void put_fault(struct wf_fmt *f, const struct lx_overflow *o)
{
	struct wf_fmt calls; /* leaves room for the rest */
	uintptr_t pc = original(wf_uc_pc(o->uc));
	struct wf_symbol s;

	wf_fmt_str(f, wf_uc_is_write_fault(o->uc) ? "weft:   write to " : "weft:   read of ");
	wf_fmt_hex(f, o->addr);
	wf_fmt_str(f, " at ");
	if (wf_symbols_find(pc, may_ask, &s)) {
		put_place(f, &s);
		wf_fmt_str(f, s.name[0] ? " " : "");
		wf_fmt_str(f, s.name);
	} else {
		wf_fmt_hex(f, pc);
	}
	wf_fmt_str(f, ", sp ");
	wf_fmt_hex(f, wf_uc_sp(o->uc));
	calls = (struct wf_fmt){ f->buf, f->len, WF_MIN(f->cap, f->len + CALLS_BYTES) };
	put_calls(&calls, o);
	f->len = calls.len;
	wf_fmt_str(f, "\n");
}

static void put_registers(struct wf_fmt *f, const uint64_t *reg)
{
	static const struct {
		char name[4];
		uint8_t at;
	} shown[] = {
#define ROW(name, index) { #name, WF_UC_##index },
		WF_UC_SHOWN(ROW)
#undef ROW
	};

	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		wf_fmt_str(f, i % 6 ? " " : "weft:   ");
		wf_fmt_str(f, shown[i].name);
		wf_fmt_str(f, " ");
		wf_fmt_hex(f, reg[shown[i].at]);
		if (i % 6 == 5)
			wf_fmt_str(f, "\n");
	}
}

/* A size that is not that of the limit was asked for by the program, and no limit changes it. */
static void put_advice(struct wf_fmt *f, const struct lx_overflow *o)
{
	uint64_t bytes = o->high - o->low;
	struct rlimit64 limit = { 0 };
	uint64_t usual;
	bool is_limited;

	if (o->stack == LX_OVERFLOW_SIGNAL) {
		wf_fmt_str(f, "weft:   try a larger one: sigaltstack()\n");
		return;
	}
	if (o->stack == LX_OVERFLOW_FIBER) {
		wf_fmt_str(f, "weft:   try a larger one: stack_bytes of weft_fiber_new()\n");
		return;
	}
	if (!o->low)
		return;
	if (may_ask)
		(void)sys4(__NR_prlimit64, 0, RLIMIT_STACK, NULL, &limit);
	is_limited = limit.rlim_cur != RLIM64_INFINITY;
	usual = is_limited ? WF_ALIGN_UP(limit.rlim_cur, WF_PAGE) : NO_LIMIT_BYTES;
	wf_fmt_str(f, "weft:   try a larger one: ");
	if (o->stack == LX_OVERFLOW_THREAD) {
		wf_fmt_str(f, "pthread_attr_setstacksize()");
		if (may_ask && usual != bytes) {
			wf_fmt_str(f, "; the program chose this size itself\n");
			return;
		}
		wf_fmt_str(f, ", ");
	}
	wf_fmt_str(f, "ulimit -s");
	if (may_ask) {
		wf_fmt_str(f, " (now ");
		if (is_limited)
			put_size(f, limit.rlim_cur);
		else
			wf_fmt_str(f, "unlimited");
		wf_fmt_str(f, ")");
	}
	wf_fmt_str(f, " or weft run --stack-size ");
	put_bytes(f, bytes * LARGER, "M", "K");
	wf_fmt_str(f, "\n");
}

void wf_overflow_report(const struct lx_overflow *o)
{
	static char text[TEXT_BYTES];
	struct pollfd to = { .fd = 2, .events = POLLOUT };
	struct wf_fmt f;

	may_ask = o->may_ask;
	wf_fmt_init(&f, text, sizeof(text));
	put_head(&f, o);
	put_fault(&f, o);
	put_registers(&f, o->uc->reg);
	put_advice(&f, o);
	if (!may_ask || sys3(__NR_poll, &to, 1, PATIENCE_MS) > 0)
		(void)sys_write(2, text, f.len);
}
