// SPDX-License-Identifier: Apache-2.0
/*
 * Locks that take a fence where the processor needs one; elsewhere they cost a no-op of three bytes.
 *
 * Considered and dropped: to test a flag after each lock. It is a load and a branch in every one, on all processors, for some
 * that were last made in 2009.
 */
#include "arch/x86_64/erratum.h"
#include "arch/x86_64/cpu.h"
#include "base/atomic.h"

#include <asm/unistd.h>
#include <cpuid.h>
#include <sys/mman.h>

/* Defined by the linker: where each place is, from the entry itself. */
extern int32_t __start_weft_fences[] WF_HIDDEN WF_WEAK, __stop_weft_fences[] WF_HIDDEN WF_WEAK;

static const unsigned char nothing[3] = { 0x0f, 0x1f, 0x00 };
static const unsigned char lfence[3] = { 0x0f, 0xae, 0xe8 };

static bool is_equal(const void *a, const void *b, size_t n)
{
	const unsigned char *p = a, *q = b;

	while (n && *p == *q)
		p++, q++, n--;
	return !n;
}

bool wf_erratum_has_loose_locks(const char vendor[12], uint32_t signature)
{
	uint32_t family = signature >> 8 & 15;
	uint32_t model = (signature >> 4 & 15) | (signature >> 12 & 0xf0);

	/* An extended family would make it a later one. */
	return is_equal(vendor, "AuthenticAMD", 12) && family == 15 && !(signature >> 20 & 0xff) &&
	       model >= 32 && model < 64;
}

bool wf_erratum_is_here(void)
{
	uint32_t eax, name[3], rest[3];

	if (!__get_cpuid(0, &eax, &name[0], &name[2], &name[1]) ||
	    !__get_cpuid(1, &eax, &rest[0], &rest[1], &rest[2]))
		return false;
	return wf_erratum_has_loose_locks((const char *)name, eax);
}

static long protect(uintptr_t page, size_t bytes, long how)
{
	return wf_syscall6(__NR_mprotect, (long)page, (long)bytes, how, 0, 0, 0);
}

/* Everywhere in this object, before there are threads. -errno: the text may not be written. */
int wf_erratum_fence_locks(void)
{
	for (int32_t *entry = __start_weft_fences; entry < __stop_weft_fences; entry++) {
		unsigned char *at = (unsigned char *)entry + *entry;
		uintptr_t page = (uintptr_t)at & ~(uintptr_t)(WF_PAGE - 1);
		size_t bytes = WF_ALIGN_UP((uintptr_t)at + 3, WF_PAGE) - page;
		long ret;

		if (!is_equal(at, nothing, 3))
			continue;
		/* It stays executable meanwhile: this code may lie in the same page. */
		ret = protect(page, bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
		if (ret < 0)
			return (int)ret;
		/* Not by C: ThreadSanitizer keeps no account of text that is written. */
		for (int i = 0; i < 3; i++)
			__asm__ volatile("movb %1, %0" : "=m"(at[i]) : "q"(lfence[i]));
		(void)protect(page, bytes, PROT_READ | PROT_EXEC);
	}
	return 0;
}
