// SPDX-License-Identifier: Apache-2.0
/* Which processors need a fence after a lock, and that all locks have one there. */
#include "arch/x86_64/erratum.h"
#include "base/spin.h"

#include "tap.h"

#include <string.h>

extern int32_t __start_weft_fences[], __stop_weft_fences[];

static struct wf_spin lock;

static int count(const char bytes[3])
{
	int n = 0;

	for (int32_t *entry = __start_weft_fences; entry < __stop_weft_fences; entry++)
		n += memcmp((char *)entry + *entry, bytes, 3) == 0;
	return n;
}

TEST(revision_e_of_the_opteron_needs_it)
{
	CHECK(wf_erratum_has_loose_locks("AuthenticAMD", 0x20f12));   /* Opteron 280, model 33 */
	CHECK(wf_erratum_has_loose_locks("AuthenticAMD", 0x20f00));   /* the first: 32 */
	CHECK(wf_erratum_has_loose_locks("AuthenticAMD", 0x30ff2));   /* the last: 63 */
	CHECK(!wf_erratum_has_loose_locks("AuthenticAMD", 0x10ff0));  /* 31 */
	CHECK(!wf_erratum_has_loose_locks("AuthenticAMD", 0x40f12));  /* 65: revision F */
	CHECK(!wf_erratum_has_loose_locks("AuthenticAMD", 0x120f12)); /* family 16 */
	CHECK(!wf_erratum_has_loose_locks("AuthenticAMD", 0x20612));  /* family 6 */
	CHECK(!wf_erratum_has_loose_locks("GenuineIntel", 0x20f12));
}

TEST(every_lock_is_given_its_fence)
{
	int all = (int)(__stop_weft_fences - __start_weft_fences);

	CHECK(all > 1);
	CHECK_EQ(count("\x0f\x1f\x00"), all);
	wf_spin_lock(&lock);
	wf_spin_unlock(&lock);
	CHECK_EQ(wf_erratum_fence_locks(), 0);
	CHECK_EQ(count("\x0f\xae\xe8"), all);
	CHECK(wf_spin_trylock(&lock));
	CHECK(!wf_spin_trylock(&lock));
	wf_spin_unlock(&lock);
	wf_spin_lock(&lock);
	CHECK_EQ(lock.held, 1);
	CHECK_EQ(wf_erratum_fence_locks(), 0); /* once more changes nothing */
	CHECK_EQ(count("\x0f\xae\xe8"), all);
}
