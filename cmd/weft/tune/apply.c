// SPDX-License-Identifier: Apache-2.0
/*
 * Sets what was asked for, takes it back, and looks whether it still holds.
 *
 * Called by: tune.c. Invariants: everything that can be refused is refused before the first place is written; a place is
 * written only after its line is in the journal; a value that somebody else has set since is never taken back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "text.h"
#include "tune/tune.h"

static int refuse_place(const struct wf_item *item, const char *place, int error)
{
	if (error == -EROFS)
		wf_cmd_error("doctor: %s: %s is read-only here, as in most containers; set it on "
			     "the host",
			     item->knob->id, place);
	else if (error == -EACCES || error == -EPERM)
		wf_cmd_error("doctor: %s: user %u may not write %s; root may (sudo weft doctor)",
			     item->knob->id, (unsigned int)geteuid(), place);
	else
		wf_cmd_error("doctor: %s: cannot use %s: %s", item->knob->id, place,
			     strerror(-error));
	return WF_EXIT_REFUSED;
}

/* Can be read, and could be written. Nothing is. */
static int check_place(const struct wf_machine *m, const struct wf_item *item, const char *place,
		       bool is_dry)
{
	char value[WF_TUNE_VALUE];
	int ret = wf_place_read(m, item->knob, place, value);

	/* The place must be one that undo would know again. */
	if (ret == 0 && (wf_knob_of_place(place) != item->knob || strpbrk(place, "\t\n")))
		ret = -EINVAL;
	if (ret == 0 && !is_dry) {
		/* A look at the rights would not say whether the file system is read-only. */
		ret = item->knob->card_get && wf_machine_is_live(m)
			      ? wf_card_may_write()
			      : wf_place_open(m, place, O_WRONLY | O_NONBLOCK);
		/* Somebody holds a lease: the write itself will wait for its end. */
		if (ret == -EWOULDBLOCK)
			return 0;
		if (ret > 0)
			(void)close(ret);
	}
	return ret < 0 ? refuse_place(item, place, ret) : 0;
}

static int check_item(const struct wf_machine *m, const struct wf_item *item, bool is_dry)
{
	struct wf_places places;
	const char *place;
	int ret = 0;

	wf_places_find(m, item->knob, item->name, &places);
	if (!wf_places_get(&places, 0)) {
		wf_cmd_error("doctor: %s: this machine has no %s%s%s", item->knob->id,
			     item->knob->places, *item->name ? " for " : "", item->name);
		ret = WF_EXIT_REFUSED;
	}
	for (size_t i = 0; ret == 0 && (place = wf_places_get(&places, i)); i++)
		ret = check_place(m, item, place, is_dry);
	wf_places_release(&places);
	return ret;
}

static void say(const char *place, const char *old, const char *value, const char *what)
{
	char line[2048], clean[2048];

	snprintf(line, sizeof(line), "%s   %s -> %s   %s", place, old, value, what);
	puts(wf_text_clean(clean, sizeof(clean), line));
	(void)fflush(stdout);
}

/* The outcome of a write: 0, 1 if the value is not what was asked for, or -errno of the journal. */
static int finish(const struct wf_machine *m, const struct wf_item *item, struct wf_journal *j,
		  struct wf_entry *e, int written)
{
	char now[WF_TUNE_VALUE], what[WF_TUNE_VALUE + 64];
	int ret;

	if (written < 0) {
		e->kind = WF_ENTRY_NOT;
		ret = wf_journal_add(j, e);
		snprintf(what, sizeof(what), "refused: %s%s", strerror(-written),
			 written == -EIO ? " (the kernel manages this one)" : "");
		say(e->place, e->old, e->value, what);
		return ret < 0 ? ret : 1;
	}
	ret = wf_place_read(m, item->knob, e->place, now);
	if (ret < 0) {
		say(e->place, e->old, e->value, "set, but cannot be read back");
		return 1;
	}
	if (wf_place_is_same(item->knob, now, e->value)) {
		say(e->place, e->old, e->value, "ok, read back");
		return 0;
	}
	snprintf(what, sizeof(what), "the kernel made it %s", now);
	say(e->place, e->old, e->value, what);
	e->kind = WF_ENTRY_TOOK;
	strcpy(e->value, now);
	ret = wf_journal_add(j, e);
	return ret < 0 ? ret : 1;
}

static int set_place(const struct wf_machine *m, const struct wf_item *item, const char *place,
		     struct wf_journal *j, const char *boot)
{
	struct wf_entry e = { .kind = WF_ENTRY_SET };
	int ret;

	if (snprintf(e.place, sizeof(e.place), "%s", place) >= (int)sizeof(e.place))
		return -ENAMETOOLONG;
	ret = wf_place_read(m, item->knob, place, e.old);
	if (ret < 0) {
		say(place, "?", item->value, strerror(-ret));
		return 1;
	}
	strcpy(e.value, item->value);
	snprintf(e.boot, sizeof(e.boot), "%s", boot);
	if (wf_place_is_same(item->knob, e.old, e.value)) {
		say(place, e.old, e.value, "ok already");
		return 0;
	}
	if (!j) {
		say(place, e.old, e.value, "would be set");
		return 0;
	}
	ret = wf_journal_add(j, &e);
	if (ret < 0)
		return ret;
	return finish(m, item, j, &e, wf_place_write(m, item->knob, place, e.value));
}

/* Returns 0, 1 where some place did not take its value, or -errno of the journal: then nothing more is written. */
static int set_item(const struct wf_machine *m, const struct wf_item *item, struct wf_journal *j,
		    const char *boot)
{
	struct wf_places places;
	const char *place;
	int ret = 0, worst = 0;

	wf_places_find(m, item->knob, item->name, &places);
	for (size_t i = 0; ret >= 0 && (place = wf_places_get(&places, i)); i++) {
		ret = set_place(m, item, place, j, boot);
		if (ret > worst)
			worst = ret;
	}
	wf_places_release(&places);
	return ret < 0 ? ret : worst;
}

int wf_apply(const struct wf_machine *m, const struct wf_item *items, size_t nr, bool is_dry)
{
	struct wf_journal journal;
	char boot[64];
	int ret, worst = 0;

	for (size_t i = 0; i < nr; i++) {
		ret = check_item(m, &items[i], is_dry);
		if (ret)
			return ret;
	}
	ret = wf_journal_boot(m, boot);
	if (ret == 0 && !is_dry)
		ret = wf_journal_create(m, &journal);
	if (ret < 0) {
		wf_cmd_error("doctor: nothing is set without a journal in %s%s: %s", m->root,
			     WF_JOURNAL_DIR, strerror(-ret));
		return WF_EXIT_REFUSED;
	}
	for (size_t i = 0; ret >= 0 && i < nr; i++) {
		ret = set_item(m, &items[i], is_dry ? NULL : &journal, boot);
		if (ret > worst)
			worst = ret;
	}
	if (!is_dry) {
		if (journal.nr)
			printf("journal   %s\n", journal.path);
		wf_journal_close(&journal);
	}
	if (ret < 0) {
		wf_cmd_error("doctor: cannot write the journal: %s; nothing more was set",
			     strerror(-ret));
		return WF_EXIT_REFUSED;
	}
	return worst;
}

/* --- a journal, read again --- */

struct past {
	char path[4200], boot[64];
	struct wf_entry *entries;
	int nr;
};

static int open_past(const struct wf_machine *m, const char *journal, struct past *out)
{
	int ret = 0;

	if (journal)
		snprintf(out->path, sizeof(out->path), "%s", journal);
	else
		ret = wf_journal_latest(m, out->path, sizeof(out->path));
	if (ret == -ENOENT) {
		wf_cmd_error("doctor: no journal in %s%s: nothing was set, or all of it was undone",
			     m->root, WF_JOURNAL_DIR);
		return WF_EXIT_REFUSED;
	}
	if (ret == 0)
		ret = wf_journal_boot(m, out->boot);
	if (ret == 0)
		ret = out->nr = wf_journal_read(out->path, &out->entries);
	if (ret >= 0)
		return 0;
	if (ret == -EBADMSG)
		wf_cmd_error("doctor: %s is no journal of weft doctor", out->path);
	else
		wf_cmd_error("doctor: cannot read %s: %s", out->path, strerror(-ret));
	return WF_EXIT_REFUSED;
}

/* A later line about the same place says how it came out. */
static bool is_outdated(const struct past *p, int i)
{
	for (int k = i + 1; k < p->nr; k++) {
		if (strcmp(p->entries[k].place, p->entries[i].place) == 0)
			return true;
	}
	return false;
}

static bool is_of_this_boot(const struct past *p)
{
	for (int i = 0; i < p->nr; i++) {
		if (strcmp(p->entries[i].boot, p->boot) != 0)
			return false;
	}
	return true;
}

/* Returns 0, 1 where it is left as it is, 2 where it should have been written and was not. */
static int undo_entry(const struct wf_machine *m, const struct wf_entry *e)
{
	const struct wf_knob *k = wf_knob_of_place(e->place);
	char now[WF_TUNE_VALUE], what[WF_TUNE_VALUE + 64];
	int ret;

	if (!k || (k->accepts && !k->accepts(m, e->place))) {
		wf_cmd_error("doctor: %s is no place that weft sets; left alone", e->place);
		return 1;
	}
	ret = wf_place_read(m, k, e->place, now);
	if (ret == -ENOENT) {
		say(e->place, e->value, e->old, "gone: nothing to undo");
		return 0;
	}
	if (ret < 0) {
		say(e->place, "?", e->old, strerror(-ret));
		return 2;
	}
	if (wf_place_is_same(k, now, e->old)) {
		say(e->place, now, e->old, "ok already");
		return 0;
	}
	if (!wf_place_is_same(k, now, e->value)) {
		snprintf(what, sizeof(what), "left: somebody else set it to %s since", now);
		say(e->place, e->value, e->old, what);
		return 1;
	}
	ret = wf_place_write(m, k, e->place, e->old);
	if (ret == 0)
		ret = wf_place_read(m, k, e->place, now);
	if (ret == 0 && !wf_place_is_same(k, now, e->old))
		ret = -EIO;
	say(e->place, e->value, e->old, ret == 0 ? "ok, read back" : strerror(-ret));
	return ret == 0 ? 0 : 2;
}

int wf_apply_undo(const struct wf_machine *m, const char *journal)
{
	struct past p = { .nr = 0 };
	int ret = open_past(m, journal, &p), worst = 0;

	if (ret)
		return ret;
	if (!is_of_this_boot(&p)) {
		printf("nothing to undo: the machine was started anew since %s\n", p.path);
	} else {
		for (int i = p.nr - 1; i >= 0; i--) {
			ret = p.entries[i].kind == WF_ENTRY_NOT || is_outdated(&p, i)
				      ? 0
				      : undo_entry(m, &p.entries[i]);
			if (ret > worst)
				worst = ret;
		}
	}
	free(p.entries);
	/* A value that could not be written can be tried again. */
	ret = worst < 2 ? wf_journal_retire(p.path) : 0;
	if (ret < 0) {
		wf_cmd_error("doctor: cannot rename %s, which is undone: %s", p.path,
			     strerror(-ret));
		return 1;
	}
	return worst ? 1 : 0;
}

int wf_apply_verify(const struct wf_machine *m, const char *journal)
{
	struct past p = { .nr = 0 };
	int ret = open_past(m, journal, &p), nr_others = 0;
	char now[WF_TUNE_VALUE], line[2048], clean[2048];

	if (ret)
		return ret;
	for (int i = 0; i < p.nr; i++) {
		const struct wf_entry *e = &p.entries[i];
		const struct wf_knob *k = wf_knob_of_place(e->place);
		bool holds;

		if (e->kind == WF_ENTRY_NOT || is_outdated(&p, i))
			continue;
		ret = k ? wf_place_read(m, k, e->place, now) : -EINVAL;
		holds = ret == 0 && wf_place_is_same(k, now, e->value);
		nr_others += !holds;
		snprintf(line, sizeof(line), "%-5s  %s   %s%s%s", holds ? "ok" : "warn", e->place,
			 e->value, holds ? "" : ", but it is ",
			 holds     ? ""
			 : ret < 0 ? strerror(-ret)
				   : now);
		puts(wf_text_clean(clean, sizeof(clean), line));
	}
	if (!is_of_this_boot(&p))
		printf("the machine was started anew since %s\n", p.path);
	free(p.entries);
	return nr_others ? 1 : 0;
}
