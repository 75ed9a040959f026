// SPDX-License-Identifier: Apache-2.0
/*
 * base/fmt: what is written, what is cut off, what is a number.
 */
#include "base/fmt.h"

#include <stdint.h>
#include <string.h>

#include "tap.h"

#define UNTOUCHED 4711

static bool parses(const char *text, uint64_t *out)
{
	*out = UNTOUCHED;
	return wf_fmt_parse_u64(text, out);
}

TEST(pieces_are_appended)
{
	char buf[128];
	struct wf_fmt f;

	wf_fmt_init(&f, buf, sizeof(buf));
	CHECK_STR_EQ(buf, "");
	wf_fmt_str(&f, "n=");
	wf_fmt_u64(&f, 0);
	wf_fmt_str(&f, " ");
	wf_fmt_u64(&f, UINT64_MAX);
	CHECK_STR_EQ(buf, "n=0 18446744073709551615");
	CHECK_EQ(f.len, strlen(buf));
}

TEST(signed_numbers_reach_their_limits)
{
	char buf[128];
	struct wf_fmt f;

	wf_fmt_init(&f, buf, sizeof(buf));
	wf_fmt_i64(&f, INT64_MIN);
	wf_fmt_str(&f, " ");
	wf_fmt_i64(&f, -1);
	wf_fmt_str(&f, " ");
	wf_fmt_i64(&f, INT64_MAX);
	CHECK_STR_EQ(buf, "-9223372036854775808 -1 9223372036854775807");
}

TEST(a_full_buffer_truncates_and_stays_terminated)
{
	char buf[8];
	struct wf_fmt f;

	for (size_t cap = 1; cap < sizeof(buf); cap++) {
		memset(buf, '#', sizeof(buf));
		wf_fmt_init(&f, buf, cap);
		wf_fmt_str(&f, "abc");
		wf_fmt_u64(&f, 1234567);
		wf_fmt_hex(&f, 0xdeadbeef);
		CHECK_EQ(strlen(buf), cap - 1);
		CHECK_EQ(f.len, cap - 1);
		for (size_t i = cap; i < sizeof(buf); i++)
			CHECK_EQ(buf[i], '#');
	}
}

TEST(whole_numbers_are_parsed)
{
	uint64_t value;

	CHECK(parses("0", &value));
	CHECK_EQ(value, 0);
	CHECK(parses("0042", &value));
	CHECK_EQ(value, 42);
	CHECK(parses("18446744073709551615", &value));
	CHECK_EQ(value, UINT64_MAX);
}

TEST(what_is_no_number_is_refused_and_leaves_the_output_alone)
{
	static const char *const texts[] = { "",
					     " 1",
					     "1 ",
					     "+1",
					     "-1",
					     "0x10",
					     "12ab",
					     "18446744073709551616",
					     "99999999999999999999999" };
	uint64_t value;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (!CHECK(!parses(texts[i], &value)))
			tap_note("it accepted \"%s\"", texts[i]);
		CHECK_EQ(value, UNTOUCHED);
	}
}
