// SPDX-License-Identifier: Apache-2.0
/* A program that writes the GS base by instructions of its own, from before its first thread. */
#if defined(__x86_64__)
#include "own_base.h"

#include "base_insns.h"

#include <sys/prctl.h>

static pid_t run_in_child(struct block *b)
{
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(has(b));
		join(start(is_inherited, b));
		CHECK(has(b));
		_exit(finish());
	}
	return pid;
}

int main(void)
{
	static struct block b;

	if (!has_base_insns()) {
		dprintf(2, "no WRGSBASE\n");
		return EXIT_SKIP;
	}
	set_base = set_base_by_insn;
	get_base = get_base_by_insn;
	take(&b);
	CHECK_SYS(prctl(PR_GET_DUMPABLE));
	ends_well(run_in_child(&b));
	CHECK(has(&b));
	join(start(is_inherited, &b));
	CHECK(has(&b));
	ok("before the first thread");
	run_all();
	CHECK(has(&b));
	return finish();
}
#else
int main(void)
{
	return 77; /* EXIT_SKIP */
}
#endif
