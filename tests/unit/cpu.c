// SPDX-License-Identifier: Apache-2.0
/* sys/cpu: how many processors a limit of a control group leaves. */
#include "sys/cpu.c"

#include "tap.h"

TEST(a_quota_is_rounded_up_to_whole_processors)
{
	static const struct {
		const char *text;
		int processors; /* 0: no limit */
	} rows[] = {
		{ "max 100000\n", 0 },    { "100000 100000\n", 1 },  { "200000 100000\n", 2 },
		{ "150000 100000\n", 2 }, { "100001 100000\n", 2 },  { "50000 100000\n", 1 },
		{ "1 100000\n", 1 },      { "1000000 50000\n", 20 }, { "", 0 },
		{ "100000\n", 0 },        { "100000 0\n", 0 },       { "0 100000\n", 0 },
		{ "-1 100000\n", 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!CHECK_EQ(quota_of(rows[i].text), rows[i].processors))
			tap_note("\"%s\"", rows[i].text);
}

TEST(there_is_one_processor_at_least)
{
	CHECK(sys_cpu_count() >= 1);
}
