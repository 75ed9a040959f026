// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --emit`: the same settings as a fragment for those that make them last.
 *
 * Called by: tune.c. Invariant: a setting that a format cannot express is refused, never left out.
 */
#include <string.h>

#include "cmd.h"
#include "tune/tune.h"

#define VERSION_LINE "# Written by weft doctor --emit.\n"

static bool as_sysctl(const struct wf_item *item, FILE *out)
{
	char name[128];

	if (!wf_knob_sysctl(item->knob, name, sizeof(name)))
		return false;
	fprintf(out, "%s = %s\n", name, item->value);
	return true;
}

static bool as_tuned(const struct wf_item *item, FILE *out)
{
	const struct wf_knob *k = item->knob;
	const char *star = k->places ? strchr(k->places, '*') : NULL;
	char name[128];

	if (k->width || k->card_get)
		return false;
	if (wf_knob_sysctl(k, name, sizeof(name)))
		fprintf(out, "\n[sysctl]\n%s=%s\n", name, item->value);
	else if (k->tuned && !*item->name)
		fprintf(out, "\n[%.*s]\n%s=%s\n", (int)strcspn(k->tuned, " "), k->tuned,
			strchr(k->tuned, ' ') + 1, item->value);
	else if (k->places && star && *item->name)
		fprintf(out, "\n[sysfs]\n%.*s%s%s=%s\n", (int)(star - k->places), k->places,
			item->name, star + 1, item->value);
	else if (k->places)
		fprintf(out, "\n[sysfs]\n%s=%s\n", k->places, item->value);
	return k->places;
}

static bool as_link(const struct wf_item *item, FILE *out)
{
	if (!item->knob->link || !*item->name)
		return false;
	fprintf(out, "[Match]\nOriginalName=%s\n\n[Link]\n%s=%s\n", item->name, item->knob->link,
		item->value);
	return true;
}

static bool as_cmdline(const struct wf_item *item, FILE *out)
{
	const char *name = item->knob->cmdline;
	bool is_flag = name && name[strlen(name) - 1] != '=';

	if (!name || (is_flag && strcmp(item->value, "0") != 0) ||
	    (*item->name && item->knob->needs_name))
		return false;
	fprintf(out, "%s%s\n", name, is_flag ? "" : item->value);
	return true;
}

static const struct {
	const char *name, *head, *refusal;
	bool (*write)(const struct wf_item *item, FILE *out);
} formats[] = {
	{ "sysctl.d", VERSION_LINE, "is no sysctl; --emit tuned may know it", as_sysctl },
	{ "tuned", VERSION_LINE "[main]\nsummary=settings of weft doctor\n", "is not for tuned",
	  as_tuned },
	{ "link", VERSION_LINE, "is not for a .link file with a card's name (rps@eth0=MASK is)",
	  as_link },
	{ "cmdline", "", "has no such value on the command line of the kernel", as_cmdline },
};

#define NR_FORMATS (sizeof(formats) / sizeof(formats[0]))

int wf_emit(const char *format, const struct wf_item *items, size_t nr)
{
	size_t f = 0;
	char text[16384] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	bool is_good = out;

	while (f < NR_FORMATS && strcmp(formats[f].name, format) != 0)
		f++;
	if (f == NR_FORMATS) {
		wf_cmd_error("doctor: --emit takes sysctl.d, tuned, link or cmdline, not '%s'",
			     format);
		is_good = false;
	}
	for (size_t i = 0; is_good && i < nr; i++) {
		is_good = formats[f].write(&items[i], out);
		if (!is_good)
			wf_cmd_error("doctor: %s %s", items[i].knob->id, formats[f].refusal);
	}
	if (out)
		(void)fclose(out);
	if (!is_good)
		return WF_EXIT_REFUSED;
	printf("%s%s", formats[f].head, text);
	return 0;
}
