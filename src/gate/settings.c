// SPDX-License-Identifier: Apache-2.0
/* The WEFT_* variables; see settings.h. `weft run` has checked them, another caller may not have. */
#include "gate/settings.h"
#include "base/fmt.h"
#include "gate/env.h"
#include "gate/say.h"
#include "linux/abi.h"
#include "trace/trace.h"

static const char *bad[10]; /* names of variables */
static size_t nr_bad;

static void note_bad(const char *name)
{
	if (nr_bad < ARRAY_LEN(bad))
		bad[nr_bad++] = name;
}

void wf_settings_complain(void)
{
	for (size_t i = 0; i < nr_bad; i++)
		wf_say("ignoring a bad value of ", bad[i], NULL);
	nr_bad = 0;
}

static uint64_t number_of(char **env, const char *name, uint64_t max)
{
	const char *text = wf_env_get(env, name);
	uint64_t v = 0;

	if (!text || !*text)
		return 0;
	if (wf_fmt_parse_u64(text, &v) && v <= max)
		return v;
	note_bad(name);
	return 0;
}

static bool is_on(char **env, const char *name, bool by_default)
{
	enum wf_env_switch value = wf_env_switch(wf_env_get(env, name));

	if (value == WF_ENV_OTHER)
		note_bad(name);
	return value == WF_ENV_ON || (value != WF_ENV_OFF && by_default);
}

static enum lx_ring_mode ring_mode(char **env)
{
	const char *text = wf_env_get(env, "WEFT_IO_URING");

	if (!text || !*text || wf_env_is(text, "auto"))
		return LX_RING_AUTO;
	if (wf_env_is(text, "always"))
		return LX_RING_ALWAYS;
	if (wf_env_is(text, "never"))
		return LX_RING_NEVER;
	note_bad("WEFT_IO_URING");
	return LX_RING_AUTO;
}

static bool is_one_to_many(char **env)
{
	const char *text = wf_env_get(env, "WEFT_MODEL");

	if (!text || !*text || wf_env_is(text, "M:N"))
		return false;
	if (wf_env_is(text, "1:N"))
		return true;
	note_bad("WEFT_MODEL");
	return false;
}

static bool always_says_overflow(char **env)
{
	const char *text = wf_env_get(env, "WEFT_OVERFLOW");

	if (!text || !*text || wf_env_is(text, "auto"))
		return false;
	if (wf_env_is(text, "always"))
		return true;
	note_bad("WEFT_OVERFLOW");
	return false;
}

/* The text behind word, with which it begins; NULL: it does not begin so. */
static const char *after(const char *text, const char *word)
{
	while (*word && *text == *word) {
		text++;
		word++;
	}
	return *word ? NULL : text;
}

/* "10s" or "500ms", "2m", "1h", and then nothing or "=abort". */
static void read_watchdog(char **env)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = {
		{ "ms", WF_MS }, { "s", WF_SEC }, { "m", 60 * WF_SEC }, { "h", 3600 * WF_SEC }
	};
	const char *text = wf_env_get(env, "WEFT_WATCHDOG");
	uint64_t number = 0;

	if (!text || !*text)
		return;
	while (*text >= '0' && *text <= '9' && number < LX_WATCHDOG_MAX_S)
		number = 10 * number + (uint64_t)(*text++ - '0');
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		const char *rest = after(text, units[i].unit);
		bool ends = rest && wf_env_is(rest, "=abort");

		if (!rest || (*rest && !ends) ||
		    number > LX_WATCHDOG_MAX_S * WF_SEC / (uint64_t)units[i].ns ||
		    (int64_t)number * units[i].ns < LX_WATCHDOG_MIN_NS)
			continue;
		lx_config.watchdog_ns = (int64_t)number * units[i].ns;
		lx_config.watchdog_ends = ends;
		return;
	}
	note_bad("WEFT_WATCHDOG");
}

static void read_trace(char **env, struct wf_settings *out)
{
	const char *text = wf_env_get(env, "WEFT_TRACE");

	if (text && *text == '/')
		out->trace_file = text;
	else if (!is_on(env, "WEFT_TRACE", false))
		return;
	out->keeps = WF_TRACE_SCHED | WF_TRACE_CALLS;
	out->ring_bytes = WF_TRACE_FILE_BYTES;
}

/* A number with a unit; what follows it, or NULL: it is none, or not between the bounds. */
static const char *take_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMG";
	uint64_t v = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		if (v > WF_TRACE_MAX_BYTES)
			return NULL;
		v = v * 10 + (uint64_t)(*text - '0');
	}
	for (uint32_t i = 0; i < sizeof(units) - 1; i++) {
		if (*text != units[i])
			continue;
		v <<= 10 * (i + 1);
		text++;
		break;
	}
	*out = v;
	return v < WF_TRACE_MIN_BYTES || v > WF_TRACE_MAX_BYTES ? NULL : text;
}

/* WEFT_RECORD: a size, "calls", both with a comma between them, or whether at all. */
static void read_record(char **env, struct wf_settings *out)
{
	const char *text = wf_env_get(env, "WEFT_RECORD");
	enum wf_env_switch value = wf_env_switch(text);
	uint64_t bytes = WF_TRACE_RECORD_BYTES;
	bool has_calls = false;

	if (!text || !*text || value == WF_ENV_OFF)
		return;
	if (value != WF_ENV_ON) {
		if (*text >= '0' && *text <= '9') {
			text = take_size(text, &bytes);
			text = text && *text == ',' ? text + 1 : text;
		}
		has_calls = text && wf_env_is(text, "calls");
		if (!text || (*text && !has_calls)) {
			note_bad("WEFT_RECORD");
			return;
		}
	}
	out->keeps |= WF_TRACE_SCHED | (has_calls ? WF_TRACE_CALLS : 0);
	out->ring_bytes = bytes;
}

void wf_settings_read(char **env, struct wf_settings *out)
{
	static char *nothing[] = { NULL };
	const char *seed;
	int64_t slice_us;

	if (!env)
		env = nothing;
	seed = wf_env_get(env, "WEFT_SEED");
	*out = (struct wf_settings){
		.is_off = !is_on(env, "WEFT", true),
		.is_on = wf_env_switch(wf_env_get(env, "WEFT")) == WF_ENV_ON,
		.is_strict = is_on(env, "WEFT_STRICT", false),
		.is_first = number_of(env, "WEFT_PID", UINT32_MAX) == (uint64_t)sys0(__NR_getpid),
		.wants_stats = is_on(env, "WEFT_STATS", false),
		.wants_perf_map = is_on(env, "WEFT_PERF_MAP", false),
		.watch = wf_env_get(env, "WEFT_WATCH"),
		.leaves_children = !is_on(env, "WEFT_CHILDREN", true),
	};
	read_trace(env, out);
	read_record(env, out);
	lx_config.runtime.nr_workers = (uint32_t)number_of(env, "WEFT_WORKERS", WF_MAX_WORKERS);
	lx_config.runtime.seed = number_of(env, "WEFT_SEED", UINT64_MAX);
	lx_config.runtime.is_shuffled = seed && *seed;
	slice_us = (int64_t)number_of(env, "WEFT_SLICE", WF_MAX_SLICE_US);
	lx_config.runtime.slice_ns = slice_us ? WF_MAX(slice_us, WF_MIN_SLICE_US) * WF_US : 0;
	lx_config.ring = ring_mode(env);
	read_watchdog(env);
	lx_config.always_says_overflow = always_says_overflow(env);
	lx_config.runtime.keeps_worker = is_one_to_many(env);
	if (lx_config.runtime.keeps_worker)
		lx_config.runtime.nr_workers = 1;
}
