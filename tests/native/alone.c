// SPDX-License-Identifier: Apache-2.0
/* A CPU family without a gate: what a program is told, and what it may ask for. */
#include <weft/weft.h>

#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WHY "weft has no gate for this CPU family yet"

TEST(the_mode_is_native_and_the_family_is_why)
{
	const char *why = NULL;

	CHECK_EQ(weft_mode(&why), WEFT_MODE_NATIVE);
	CHECK_STR_EQ(why, WHY);
	CHECK_EQ(weft_mode(NULL), WEFT_MODE_NATIVE);
	CHECK_EQ(weft_attach(), -ENOTSUP);
}

/* This program once more, to list its tests, with a setting in its environment: its status; out: what it said. */
static int list_with(const char *setting, char *out, size_t bytes)
{
	const char *emulator = getenv(
		"MESON_EXE_WRAPPER"); /* which nobody but us knows to be needed */
	char self[512], command[1024];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	FILE *f;

	self[len < 0 ? 0 : len] = '\0';
	snprintf(command, sizeof(command), "%s %s %s --list 2>&1", setting,
		 emulator ? emulator : "", self);
	f = popen(command, "r");
	if (!f)
		return -1;
	out[fread(out, 1, bytes - 1, f)] = '\0';
	len = pclose(f);
	return WIFEXITED(len) ? WEXITSTATUS(len) : -1;
}

TEST(strict_refuses_it_with_one_line)
{
	char said[512];

	CHECK_EQ(list_with("WEFT_STRICT=1", said, sizeof(said)), 125);
	CHECK_STR_EQ(said, "weft: not running on plain NPTL, as --strict asks: " WHY "\n");
}

TEST(otherwise_nothing_is_said)
{
	char said[512];

	CHECK_EQ(list_with("WEFT_STRICT=0", said, sizeof(said)), 0);
	CHECK(!strstr(said, "weft:"));
	CHECK_EQ(list_with("WEFT=0 WEFT_STRICT=1", said, sizeof(said)), 0);
	CHECK(!strstr(said, "weft:"));
}
