// SPDX-License-Identifier: Apache-2.0
/* weft_mode(): what runs the threads of a program that is linked with libweft. */
#include <weft/weft.h>

#include "native.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>

static void *notes_mode(void *arg)
{
	*(enum weft_mode *)arg = weft_mode(NULL);
	return NULL;
}

TEST(the_mode_is_what_was_asked_for)
{
	const char *why = "?";
	enum weft_mode mode = weft_mode(&why);

	if (is_native_run()) {
		CHECK_EQ(mode, WEFT_MODE_NATIVE);
		CHECK_STR_EQ(why, "weft is switched off (WEFT=0)");
	} else {
		CHECK_EQ(mode, WEFT_MODE_ATTACHED);
		CHECK(!why);
	}
}

TEST(the_first_thread_does_not_change_it)
{
	enum weft_mode inside = (enum weft_mode) - 1;
	pthread_t t;

	CHECK_EQ(pthread_create(&t, NULL, notes_mode, &inside), 0);
	CHECK_EQ(pthread_join(t, NULL), 0);
	CHECK_EQ(inside, weft_mode(NULL));
	CHECK_EQ(inside, is_native_run() ? WEFT_MODE_NATIVE : WEFT_MODE_ATTACHED);
}

TEST(to_attach_once_more_is_no_mistake)
{
	CHECK_EQ(weft_attach(), is_native_run() ? -ENOTSUP : 0);
}
