// SPDX-License-Identifier: Apache-2.0
/* A library that is linked with libweft, for programs that are not. */
#ifndef WEFT_TESTS_ATTACH_PLUGIN_H
#define WEFT_TESTS_ATTACH_PLUGIN_H

#include <weft/weft.h>

int plugin_attach(void);
enum weft_mode plugin_mode(const char **out_why);

#endif
