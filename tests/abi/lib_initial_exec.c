// SPDX-License-Identifier: Apache-2.0
/*
 * A library whose thread variables use the initial-exec model: dlopen must give them to threads
 * that already live. Opened by dlopen_tls.c.
 */
static __thread long value __attribute__((tls_model("initial-exec"))) = 1000;
static __thread char zeroed[200] __attribute__((tls_model("initial-exec")));

long lib_initial_exec_add(long more);

long lib_initial_exec_add(long more)
{
	for (unsigned i = 0; i < sizeof(zeroed); i++)
		if (zeroed[i] != 0)
			return -1;
	value += more;
	return value;
}
