// SPDX-License-Identifier: Apache-2.0
/*
 * The judgement of a knob: its value, a proposal, and whether a symptom speaks for that.
 *
 * Called by: show.c, apply.c, tune.c. Invariant: reads only; warns only of what was seen.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune.h"

/* The wanted value, but nothing lowered; after a symptom at least twice the last number, up to what is possible. */
static void propose_numbers(const struct wf_knob *k, const char *value, bool has_sign,
			    char out[WF_TUNE_VALUE])
{
	long long now[WF_TUNE_NUMBERS], want[WF_TUNE_NUMBERS];
	unsigned int last = k->nr_numbers - 1;
	size_t len = 0;

	if (!wf_place_numbers(value, k->nr_numbers, now) ||
	    !wf_place_numbers(k->want, k->nr_numbers, want))
		return;
	for (unsigned int i = 0; i <= last; i++) {
		if (has_sign && i == last && now[i] >= want[i])
			want[i] = now[i] > k->max / 2 ? k->max : 2 * now[i];
		if (want[i] < now[i])
			want[i] = now[i];
		len += (size_t)snprintf(out + len, WF_TUNE_VALUE - len, "%s%lld", i ? " " : "",
					want[i]);
	}
}

static void propose(const struct wf_knob *k, bool has_sign, struct wf_judgement *out)
{
	if (k->wants == WF_KNOB_AT_LEAST)
		propose_numbers(k, out->value, has_sign, out->proposal);
	else if (k->wants == WF_KNOB_EXACTLY)
		strcpy(out->proposal, k->want);
	if (wf_place_is_same(k, out->value, out->proposal))
		out->proposal[0] = '\0';
}

/* The governor that is wanted may not be there, nor a file that lists any. */
static void drop_impossible(const struct wf_machine *m, const struct wf_knob *k,
			    struct wf_judgement *out)
{
	struct wf_item item = { .knob = k };
	char complaint[512];

	strcpy(item.value, out->proposal);
	if (!*out->proposal || k->form != WF_KNOB_WORD)
		return;
	wf_place_complaint(m, &item, complaint, sizeof(complaint));
	if (*complaint)
		out->proposal[0] = '\0';
}

void wf_judge(const struct wf_machine *m, const struct wf_knob *k, const struct wf_signs *s,
	      struct wf_judgement *out)
{
	bool has_sign = s->seen[k->sign][0];
	struct wf_places places;
	char value[WF_TUNE_VALUE];
	const char *place;
	int error = 0;

	*out = (struct wf_judgement){ .level = WF_TUNE_NOTE };
	if (k->advise) {
		k->advise(m, s, out);
		if (has_sign) {
			out->level = WF_TUNE_WARN;
			strcpy(out->seen, s->seen[k->sign]);
		}
		return;
	}
	wf_places_find(m, k, "", &places);
	for (size_t i = 0; (place = wf_places_get(&places, i)); i++) {
		int ret = wf_place_read(m, k, place, value);

		if (ret < 0) {
			error = ret;
			continue;
		}
		out->nr_places++;
		/* Of many, one that is not as wanted speaks for all. */
		if (out->nr_places == 1 || (k->want && !wf_place_is_same(k, value, k->want)))
			strcpy(out->value, value);
	}
	wf_places_release(&places);
	if (out->nr_places == 0) {
		out->level = WF_TUNE_ABSENT;
		snprintf(out->value, sizeof(out->value), "%s",
			 error ? strerror(-error) : "not here");
		return;
	}
	propose(k, has_sign, out);
	drop_impossible(m, k, out);
	if (has_sign && *out->proposal) {
		out->level = WF_TUNE_WARN;
		strcpy(out->seen, s->seen[k->sign]);
	} else if (*out->proposal) {
		out->level = WF_TUNE_COULD;
	} else if (k->wants != WF_KNOB_ASK) {
		out->level = WF_TUNE_OK;
	}
}

/* A process of that name. */
static bool is_running(const struct wf_machine *m, const char *name)
{
	static const struct wf_knob any = { .places = "/proc/[0-9]*/comm", .form = WF_KNOB_ADVICE };
	struct wf_places places;
	const char *place;
	char comm[64];
	bool is_found = false;

	wf_places_find(m, &any, "", &places);
	for (size_t i = 0; !is_found && (place = wf_places_get(&places, i)); i++)
		is_found = wf_place_text(m, place, comm, sizeof(comm)) == 0 &&
			   strcmp(comm, name) == 0;
	wf_places_release(&places);
	return is_found;
}

const char *wf_judge_owner(const struct wf_machine *m, const struct wf_knob *k)
{
	const char *name = k->owner == WF_KNOB_TUNED        ? "tuned"
			   : k->owner == WF_KNOB_IRQBALANCE ? "irqbalance"
							    : NULL;

	return name && is_running(m, name) ? name : NULL;
}

void wf_judge_command(const struct wf_knob *k, const char *name, const char *value, char *out,
		      size_t bytes)
{
	const char *quote = strchr(value, ' ') ? "'" : "";
	const char *star = k->places ? strchr(k->places, '*') : NULL;
	char sysctl[128], path[256];

	if (!k->places) {
		out[0] = '\0';
		return;
	}
	if (k->command) {
		snprintf(out, bytes, "%s", k->command);
		return;
	}
	if (wf_knob_sysctl(k, sysctl, sizeof(sysctl))) {
		snprintf(out, bytes, "sysctl -w %s%s=%s%s", quote, sysctl, value, quote);
		return;
	}
	if (star && *name)
		snprintf(path, sizeof(path), "%.*s%s%s", (int)(star - k->places), k->places, name,
			 star + 1);
	else
		snprintf(path, sizeof(path), "%s", k->places);
	if (strchr(path, '*'))
		snprintf(out, bytes, "echo %s | tee %s", value, path);
	else
		snprintf(out, bytes, "echo %s > %s", value, path);
}
