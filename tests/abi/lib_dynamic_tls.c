// SPDX-License-Identifier: Apache-2.0
/*
 * A library with ordinary (global-dynamic) thread variables. Opened by dlopen_tls.c.
 */
__thread long lib_dynamic_value = 500;
__thread char lib_dynamic_block[4000];

long lib_dynamic_tls_add(long more);

long lib_dynamic_tls_add(long more)
{
	lib_dynamic_block[3999]++;
	lib_dynamic_value += more;
	return lib_dynamic_value;
}
