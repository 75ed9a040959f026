// SPDX-License-Identifier: Apache-2.0
/* Parsing sizes; see sizes.h. */
#include "sizes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (1ull << 40)
#define MIN_RING_BYTES (4ull << 10) /* as src/trace/trace.h has it */
#define MAX_RING_BYTES (1ull << 30)
#define RING_BYTES (1ull << 20)

bool wf_sizes_parse_number(const char *text, unsigned long long *out)
{
	unsigned long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
	if (errno || *end)
		return false;
	*out = value;
	return true;
}

bool wf_sizes_parse(const char *text, unsigned long long *out)
{
	static const char units[] = "KMG";
	size_t digits = strspn(text, "0123456789");
	char number[24];
	const char *unit;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!wf_sizes_parse_number(number, out))
		return false;
	text += digits;
	if (!*text)
		return true;
	unit = strchr(units, *text);
	if (!unit || text[1] || *out > MAX_BYTES)
		return false;
	*out <<= 10 * (unit - units + 1);
	return true;
}

bool wf_sizes_parse_record(const char *text, unsigned long long *out_bytes, bool *out_calls)
{
	char size[24];
	size_t len;

	*out_bytes = RING_BYTES;
	*out_calls = text && strcmp(text, "calls") == 0;
	if (!text || *out_calls)
		return true;
	len = strcspn(text, ",");
	if (len >= sizeof(size) || (text[len] && strcmp(text + len, ",calls") != 0))
		return false;
	*out_calls = text[len];
	memcpy(size, text, len);
	size[len] = '\0';
	return wf_sizes_parse(size, out_bytes) && *out_bytes >= MIN_RING_BYTES &&
	       *out_bytes <= MAX_RING_BYTES;
}
