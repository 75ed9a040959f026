// SPDX-License-Identifier: Apache-2.0
/* Loading libdw; see dwfl.h. */
#include "target/dwfl.h"

#include <dlfcn.h>

bool wf_dwfl_load(struct wf_dwfl *out, const char **out_why)
{
	void *lib = dlopen("libdw.so.1", RTLD_NOW);

	if (!lib) {
		*out_why = dlerror();
		return false;
	}
#define X(name)                                                                                    \
	out->name = (__typeof__(out->name))dlsym(lib, "dwfl_" #name);                              \
	if (!out->name) {                                                                          \
		*out_why = dlerror();                                                              \
		return false;                                                                      \
	}
	WF_DWFL_FUNCTIONS(X)
#undef X
	return true;
}
