// SPDX-License-Identifier: Apache-2.0
/* A module with a thread-local variable, for shell.cc to open. */
int native_touch(void);

static __thread int variable = 1000;
static __thread int large[2000];

int native_touch(void)
{
	large[1999]++;
	return variable++ + large[1999] - 1;
}
