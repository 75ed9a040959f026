// SPDX-License-Identifier: Apache-2.0
/* A program with its own use for the GS base. With FILTERS it has code that sets a filter, which does not run. */
#include <pthread.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HWCAP2_FSGSBASE 2

#ifdef FILTERS
static void filter(void)
{
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)syscall(SYS_seccomp, 0, 0, 0);
}
#else
static void filter(void)
{
}
#endif

static void *uses_base(void *arg)
{
	uintptr_t block[4] = { 42 }, word;

	__asm__ volatile("wrgsbase %0" ::"r"(block));
	usleep(1000);
	__asm__ volatile("movq %%gs:0, %0" : "=r"(word));
	return word == 42 ? arg : NULL;
}

int main(int argc, char **argv)
{
	void *ret = NULL;
	pthread_t t;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return 77;
	if (argc > 1)
		filter();
	if (pthread_create(&t, NULL, uses_base, argv) != 0 || pthread_join(t, &ret) != 0)
		return 1;
	return ret != argv;
}
