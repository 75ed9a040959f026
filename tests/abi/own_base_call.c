// SPDX-License-Identifier: Apache-2.0
/* A program that writes the GS base by arch_prctl() alone, when it has threads. */
#if defined(__x86_64__)
#include "own_base.h"

int main(void)
{
	struct block b;

	set_base = set_base_by_call;
	get_base = get_base_by_call;
	end_ns = now_ns() + RUN_NS;
	join(start(leaves_it, NULL));
	take(&b);
	CHECK(has(&b));
	ok("among threads");
	run_all();
	CHECK(has(&b));
	set_base(0);
	CHECK_EQ(get_base(), 0);
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
