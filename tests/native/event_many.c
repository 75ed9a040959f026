// SPDX-License-Identifier: Apache-2.0
/* Ten thousand threads wait for one event; natively, where each is the kernel's, a tenth of them. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"
#include "threads.h"

#include <errno.h>

#define MANY 10000
#define MANY_NATIVE 1000

static weft_event go, all_there;
static _Atomic int nr_there, nr_gone;

static void *waits(void *arg)
{
	int nr = (int)(long)arg;

	if (++nr_there == nr)
		weft_event_set(&all_there);
	CHECK_EQ(weft_event_wait(&go, WEFT_NEVER), 0);
	nr_gone++;
	return NULL;
}

TEST(one_set_wakes_ten_thousand)
{
	static pthread_t t[MANY];
	int nr = is_native_run() ? MANY_NATIVE : MANY;

	for (int i = 0; i < nr; i++)
		t[i] = spawn(waits, (void *)(long)nr);
	CHECK_EQ(weft_event_wait(&all_there, WEFT_NEVER), 0);
	CHECK_EQ(nr_gone, 0);
	weft_event_set(&go);
	for (int i = 0; i < nr; i++)
		join(t[i]);
	CHECK_EQ(nr_gone, nr);
}
