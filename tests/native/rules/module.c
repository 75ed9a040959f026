// SPDX-License-Identifier: Apache-2.0
/* Modules are opened and closed anywhere, by several at once; each thread has variables of its own in them. */
#include "rules.h"

#include <dlfcn.h>
#include <stdlib.h>

#ifdef __SANITIZE_THREAD__
/* Memory of the loader, allocated by one thread and freed by another, is a race for it. */
TEST(modules_are_opened_and_closed)
{
	SKIP("ThreadSanitizer does not know the locks of the loader");
}
#else
static void opens(int nr)
{
	const char *path = getenv("NATIVE_MODULE");

	for (int i = 0; i < 10; i++) {
		void *module = dlopen(path, i % 2 ? RTLD_NOW : RTLD_LAZY);
		int (*touch)(void), before;

		if (!CHECK(module != NULL)) {
			tap_note("%s", dlerror());
			return;
		}
		rule_turn();
		*(void **)&touch = dlsym(module, "native_touch");
		if (!CHECK(touch != NULL))
			return;
		/* It counts the calls of this thread, in two of its variables. */
		before = touch();
		rule_wait();
		CHECK_EQ(touch(), before + 2);
		rule_turn();
		CHECK(touch() > before + 2);
		CHECK(!dlsym(module, "native_nothing"));
		CHECK(dlerror() != NULL);
		CHECK_EQ(dlclose(module), 0);
		rule_turn();
	}
	(void)nr;
}

RULE(modules_are_opened_and_closed, opens, 0)
#endif
