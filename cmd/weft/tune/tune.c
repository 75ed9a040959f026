// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --tune` and what belongs to it: which request, and what its words mean.
 *
 * Called by: doctor.c. Invariant: every word is understood before the first is acted on.
 */
#include "tune/tune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

static const struct wf_knob *find_knob(const char *id)
{
	for (size_t i = 0; i < wf_knobs_nr; i++) {
		if (strcmp(wf_knobs[i].id, id) == 0)
			return &wf_knobs[i];
	}
	return NULL;
}

/* The value of a word without one: what --tune proposes. */
static int take_proposal(const struct wf_machine *m, struct wf_item *out)
{
	static const struct wf_signs none;
	const struct wf_knob *k = out->knob;
	struct wf_judgement j;

	if (!k->want) {
		wf_cmd_error("doctor: %s takes a value: %s=VALUE", k->id, k->id);
		return WF_EXIT_REFUSED;
	}
	wf_judge(m, k, &none, &j);
	strcpy(out->value, *j.proposal                                   ? j.proposal
			   : k->wants == WF_KNOB_AT_LEAST && j.nr_places ? j.value
									 : k->want);
	return 0;
}

/* ID[@NAME][=VALUE] */
static int take_word(const struct wf_machine *m, const char *word, struct wf_item *out)
{
	static const char safe[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-";
	char copy[WF_TUNE_VALUE + 128], *value, *name;

	*out = (struct wf_item){ 0 };
	if (snprintf(copy, sizeof(copy), "%s", word) >= (int)sizeof(copy)) {
		wf_cmd_error("doctor: '%.40s...' is too long", word);
		return WF_EXIT_REFUSED;
	}
	value = strchr(copy, '=');
	if (value)
		*value++ = '\0';
	name = strchr(copy, '@');
	if (name)
		*name++ = '\0';
	out->knob = find_knob(copy);
	if (!out->knob) {
		wf_cmd_error("doctor: no knob '%s'; 'weft doctor --tune' lists them", copy);
		return WF_EXIT_REFUSED;
	}
	if (name && (!*name || name[strspn(name, safe)] || *name == '.' ||
		     strlen(name) >= sizeof(out->name))) {
		wf_cmd_error("doctor: %s@NAME takes the name of a card, CPU or interrupt, not '%s'",
			     copy, name);
		return WF_EXIT_REFUSED;
	}
	strcpy(out->name, name ? name : "");
	if (!value)
		return take_proposal(m, out);
	if (strlen(value) >= sizeof(out->value) || strpbrk(value, "\t\n")) {
		wf_cmd_error("doctor: %s: no such value", copy);
		return WF_EXIT_REFUSED;
	}
	strcpy(out->value, value);
	return 0;
}

/* Which words there are depends on the machine, and a fragment may be for another. */
static int check_value(const struct wf_machine *m, const struct wf_item *item, bool is_change)
{
	char complaint[512];

	if (item->knob->form == WF_KNOB_WORD && !is_change)
		return 0;
	wf_place_complaint(m, item, complaint, sizeof(complaint));
	if (!*complaint)
		return 0;
	wf_cmd_error("doctor: %s %s, not '%s'", item->knob->id, complaint, item->value);
	return WF_EXIT_REFUSED;
}

/* The reasons for which only a change of this machine is refused. */
static int check_change(const struct wf_machine *m, const struct wf_item *item,
			const struct wf_tune_request *r)
{
	const struct wf_knob *k = item->knob;
	const char *owner, *unfit = k->unfit ? k->unfit(m) : NULL;

	if (!k->places) {
		wf_cmd_error("doctor: %s is only advised: %s", k->id, k->why);
		return WF_EXIT_REFUSED;
	}
	if (k->needs_name && !*item->name) {
		wf_cmd_error("doctor: %s needs a name: %s@NAME=VALUE, the star of %s", k->id, k->id,
			     k->places);
		return WF_EXIT_REFUSED;
	}
	if (unfit) {
		wf_cmd_error("doctor: %s: %s", k->id, unfit);
		return WF_EXIT_REFUSED;
	}
	if (k->is_risky && !r->is_sure) {
		wf_cmd_error("doctor: %s writes a register of the hardware, which may stop the "
			     "machine; with --i-know it is done",
			     k->id);
		return WF_EXIT_REFUSED;
	}
	owner = r->is_forced ? NULL : wf_judge_owner(m, k);
	if (owner) {
		wf_cmd_error("doctor: %s: %s runs and sets it; give it the value%s, or use --force",
			     k->id, owner, strcmp(owner, "tuned") == 0 ? " (--emit tuned)" : "");
		return WF_EXIT_REFUSED;
	}
	return 0;
}

static int take_words(const struct wf_tune_request *r, const struct wf_machine *m,
		      struct wf_item *items)
{
	for (size_t i = 0; i < r->nr_words; i++) {
		int ret = take_word(m, r->words[i], &items[i]);

		if (ret == 0 && r->action == WF_TUNE_APPLY)
			ret = check_change(m, &items[i], r);
		if (ret == 0)
			ret = check_value(m, &items[i], r->action == WF_TUNE_APPLY);
		if (ret)
			return ret;
		for (size_t k = 0; k < i; k++) {
			if (items[k].knob == items[i].knob &&
			    (!*items[k].name || !*items[i].name ||
			     strcmp(items[k].name, items[i].name) == 0)) {
				wf_cmd_error("doctor: %s is there twice", items[i].knob->id);
				return WF_EXIT_REFUSED;
			}
		}
	}
	return 0;
}

static int with_items(const struct wf_tune_request *r, const struct wf_machine *m)
{
	struct wf_item *items = calloc(r->nr_words + 1, sizeof(*items));
	int ret;

	if (!items || r->nr_words == 0) {
		wf_cmd_error("doctor: %s what? 'weft doctor --tune' lists the IDs",
			     r->action == WF_TUNE_APPLY ? "apply" : "emit");
		ret = WF_EXIT_REFUSED;
	} else {
		ret = take_words(r, m, items);
	}
	if (ret == 0 && r->action == WF_TUNE_APPLY)
		ret = wf_apply(m, items, r->nr_words, r->is_dry);
	else if (ret == 0)
		ret = wf_emit(r->format, items, r->nr_words);
	free(items);
	return ret;
}

int wf_tune_main(const struct wf_tune_request *r)
{
	const struct wf_machine m = { .root = r->root };
	const char *journal = r->nr_words ? r->words[0] : NULL;

	switch (r->action) {
	case WF_TUNE_UNDO:
		return wf_apply_undo(&m, journal);
	case WF_TUNE_VERIFY:
		return wf_apply_verify(&m, journal);
	case WF_TUNE_APPLY:
	case WF_TUNE_EMIT:
		return with_items(r, &m);
	default:
		return wf_tune_show(&m, r->is_json);
	}
}
