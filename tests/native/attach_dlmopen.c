// SPDX-License-Identifier: Apache-2.0
/* Opens a library that is linked with libweft in a namespace of its own: there are two copies of the library then, but one runtime. */
#include <weft/weft.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *says_whose(void *arg)
{
	*(const char **)arg = syscall(SYS_gettid) > 1 << 22 ? "weft" : "kernel";
	return NULL;
}

int main(void)
{
	void *library = dlmopen(LM_ID_NEWLM, getenv("PROBE_PLUGIN"), RTLD_NOW);
	enum weft_mode (*mode)(const char **out_why);
	int (*attach)(void);
	const char *why = "none", *whose = "none";
	bool is_native;
	pthread_t t;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	mode = (enum weft_mode(*)(const char **))dlsym(library, "plugin_mode");
	attach = (int (*)(void))dlsym(library, "plugin_attach");
	is_native = mode(&why) == WEFT_MODE_NATIVE;
	printf("%s: %s\n", is_native ? "native" : "attached", why);
	printf("%s\n", strerrorname_np(-attach()));
	if (pthread_create(&t, NULL, says_whose, &whose) || pthread_join(t, NULL))
		return 1;
	printf("%s\n", whose);
	return 0;
}
