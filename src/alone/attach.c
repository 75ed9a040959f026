// SPDX-License-Identifier: Apache-2.0
/*
 * libweft on a CPU family that has no gate yet: native mode, and nothing else. What is linked then stands in src/meson.build.
 *
 * Takes the place of gate/attach.c, native/attach.c: no thread is ever weft's, and weft_mode() says so.
 */
#include "gate/attach.h"
#include "gate/say.h"
#include "gate/settings.h"
#include "native/face.h"
#include "sys/syscall.h"
#include "weft/weft.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define REFUSED 125 /* as `weft run` ends */
#define SONAME "libweft.so.0"

static struct wf_settings settings; /* (c) by the constructor */

const char *wf_attach_why_not(void)
{
	return settings.is_off ? "weft is switched off (WEFT=0)"
			       : "weft has no gate for this CPU family yet";
}

int wf_attach_late(void)
{
	return -ENOTSUP;
}

WF_FACE int weft_attach(void)
{
	return wf_attach_late();
}

WF_FACE enum weft_mode weft_mode(const char **out_why)
{
	if (out_why)
		*out_why = wf_attach_why_not();
	return WEFT_MODE_NATIVE;
}

/* A library that needs us does not change its host. */
static bool is_linked_by_program(void)
{
	const struct r_debug *debug = dlsym(RTLD_DEFAULT, "_r_debug");
	const ElfW(Dyn) *first = debug ? debug->r_map->l_ld : NULL, *d;
	const char *text = NULL;

	for (d = first; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			text = (const char *)d->d_un.d_ptr;
	for (d = first; text && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && !strcmp(text + d->d_un.d_val, SONAME))
			return true;
	return false;
}

__attribute__((constructor)) static void load(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	wf_settings_read(getauxval(AT_SECURE) ? NULL : envp, &settings);
	if (!settings.is_strict || settings.is_off || !is_linked_by_program())
		return;
	wf_say("not running on plain NPTL, as --strict asks: ", wf_attach_why_not(), NULL);
	(void)sys1(__NR_exit_group, REFUSED);
}
