// SPDX-License-Identifier: Apache-2.0
/* A library that is linked with libweft, for programs that are not. */
#include "attach_plugin.h"

int plugin_attach(void)
{
	return weft_attach();
}

enum weft_mode plugin_mode(const char **out_why)
{
	return weft_mode(out_why);
}
