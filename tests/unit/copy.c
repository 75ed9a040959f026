// SPDX-License-Identifier: Apache-2.0
/* arch: copies between the runtime's and the program's memory, of every small size. */
#include "linux/abi.h"

#include <string.h>

#include "tap.h"

#define MAX 300

TEST(exactly_n_bytes_are_copied)
{
	static unsigned char from[MAX + 32], to[MAX + 32];

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t n = 0; n <= MAX; n++)
		for (size_t shift = 0; shift < 9; shift++) {
			memset(to, 0, sizeof(to));
			CHECK_EQ(wf_arch_copy(to + 8 + shift, from + shift, n), 0);
			CHECK(memcmp(to + 8 + shift, from + shift, n) == 0);
			CHECK(to[8 + shift + n] == 0 && to[8 + shift - 1] == 0);
		}
}
