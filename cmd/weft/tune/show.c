// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor --tune`: the list of what could be set, and why.
 *
 * Called by: tune.c. Invariant: reads only.
 */
#include "text.h"
#include "tune/tune.h"

static const char *const level_names[] = {
	[WF_TUNE_OK] = "ok",       [WF_TUNE_ABSENT] = "none", [WF_TUNE_NOTE] = "note",
	[WF_TUNE_COULD] = "could", [WF_TUNE_WARN] = "warn",
};

static void show_line(const char *text)
{
	char clean[1024];

	printf("       %-14s %s\n", "", wf_text_clean(clean, sizeof(clean), text));
}

static void show_text(const struct wf_machine *m, const struct wf_knob *k,
		      const struct wf_judgement *j)
{
	char clean[WF_TUNE_VALUE], command[512], line[1024];
	const char *owner = *j->proposal ? wf_judge_owner(m, k) : NULL;

	printf("%s%-5s%s  %-14s %-36s %s",
	       wf_text_tone(j->level == WF_TUNE_WARN ? WF_TEXT_DOUBT : WF_TEXT_PLAIN),
	       level_names[j->level], wf_text_plain(), k->id, k->title,
	       wf_text_clean(clean, sizeof(clean), j->value));
	if (*j->proposal)
		printf(" -> %s", j->proposal);
	if (j->nr_places > 1)
		printf("  (%zu places)", j->nr_places);
	putchar('\n');
	if (*j->seen)
		show_line(j->seen);
	if (j->level < WF_TUNE_COULD)
		return;
	show_line(k->why);
	if (owner) {
		snprintf(line, sizeof(line), "%s runs and sets it: weft doctor --emit tuned %s",
			 owner, k->id);
		show_line(line);
	} else if (*j->proposal) {
		wf_judge_command(k, "", j->proposal, command, sizeof(command));
		snprintf(line, sizeof(line), "try: weft doctor --apply %s%s    (%s)",
			 k->is_risky ? "--i-know " : "", k->id, command);
		show_line(line);
	}
}

static void show_json(struct wf_text_json *json, const struct wf_machine *m,
		      const struct wf_knob *k, const struct wf_judgement *j)
{
	const char *owner = wf_judge_owner(m, k);
	char command[512] = "";

	if (*j->proposal)
		wf_judge_command(k, "", j->proposal, command, sizeof(command));
	wf_text_json_begin(json, NULL, '{');
	wf_text_json_string(json, "id", k->id);
	wf_text_json_string(json, "title", k->title);
	wf_text_json_string(json, "level", level_names[j->level]);
	wf_text_json_string(json, "value", j->value);
	wf_text_json_string(json, "proposal", j->proposal);
	wf_text_json_string(json, "seen", j->seen);
	wf_text_json_string(json, "owner", owner ? owner : "");
	wf_text_json_string(json, "command", command);
	wf_text_json_string(json, "why", k->why);
	wf_text_json_end(json, '}');
}

void wf_tune_look(const struct wf_machine *m)
{
	struct wf_signs signs;
	struct wf_judgement j;

	wf_signs_look(m, &signs);
	for (size_t i = 0; i < wf_knobs_nr; i++) {
		wf_judge(m, &wf_knobs[i], &signs, &j);
		(void)wf_judge_owner(m, &wf_knobs[i]);
	}
}

int wf_tune_show(const struct wf_machine *m, bool is_json)
{
	struct wf_text_json json = { .out = stdout };
	unsigned int nr[WF_TUNE_WARN + 1] = { 0 };
	struct wf_signs signs;
	struct wf_judgement j;

	wf_signs_look(m, &signs);
	if (is_json) {
		wf_text_json_begin(&json, NULL, '{');
		wf_text_json_begin(&json, "knobs", '[');
	}
	for (size_t i = 0; i < wf_knobs_nr; i++) {
		wf_judge(m, &wf_knobs[i], &signs, &j);
		nr[j.level]++;
		if (is_json)
			show_json(&json, m, &wf_knobs[i], &j);
		else if (j.level != WF_TUNE_ABSENT)
			show_text(m, &wf_knobs[i], &j);
	}
	if (is_json) {
		wf_text_json_end(&json, ']');
		wf_text_json_end(&json, '}');
	} else {
		printf("\n%u with a symptom%s, %u that could be set, %u not here; nothing was "
		       "changed\n",
		       nr[WF_TUNE_WARN],
		       wf_machine_is_live(m) ? " in a second of looking"
					     : " (a copy shows only what is nearly full)",
		       nr[WF_TUNE_COULD], nr[WF_TUNE_ABSENT]);
	}
	return nr[WF_TUNE_WARN] ? 1 : 0;
}
