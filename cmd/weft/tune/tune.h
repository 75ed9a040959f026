// SPDX-License-Identifier: Apache-2.0
/*
 * `weft doctor` that acts: knobs of the machine, what could be set, and a way back.
 *
 * Files: tune.c (which request, its IDs and values), knobs.c (the table), advice.c (rows that are only advised), signs.c
 * (symptoms), judge.c (what to say about a row), show.c (the list), place.c (files that hold a value), journal.c, apply.c
 * (set, undo, verify), emit.c (fragments for other tools), dca.c (a switch of old chipsets), card.c (what ethtool sets).
 *
 * Invariant: nothing is written to a place before a line of the journal that undoes it has reached the disk.
 */
#ifndef WF_TUNE_H
#define WF_TUNE_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "machine.h"

#define WF_TUNE_VALUE 256
#define WF_TUNE_NUMBERS 3

struct wf_tune_request {
	enum wf_tune_action {
		WF_TUNE_NONE,
		WF_TUNE_LIST,
		WF_TUNE_APPLY,
		WF_TUNE_UNDO,
		WF_TUNE_VERIFY,
		WF_TUNE_EMIT,
	} action;
	bool is_dry, is_forced, is_json, is_sure;
	const char *format; /* of what is emitted */
	const char *root;
	char **words; /* ID[@NAME][=VALUE], or the journal */
	size_t nr_words;
};

/* Returns the exit code of the command. */
int wf_tune_main(const struct wf_tune_request *r);
/* Read all that the list is made of, and say nothing: m->visit gets the names of the files. */
void wf_tune_look(const struct wf_machine *m);

/* --- signs.c --- */

enum wf_sign {
	WF_SIGN_NEVER, /* for rows that no symptom speaks for */
	WF_SIGN_LISTEN,
	WF_SIGN_SYN,
	WF_SIGN_SQUEEZE,
	WF_SIGN_BACKLOG,
	WF_SIGN_PRUNE,
	WF_SIGN_FILES,
	WF_SIGN_THREADS,
	WF_SIGN_STEAL,
	WF_SIGN_NR,
};

struct wf_signs {
	char seen[WF_SIGN_NR][128]; /* "": not seen */
};

/* Looks twice, a second apart, or once at a copy of a machine: that shows how full something is, not what grows. */
void wf_signs_look(const struct wf_machine *m, struct wf_signs *out);

/* --- knobs.c --- */

enum wf_knob_form {
	WF_KNOB_NUMBER, /* one or more numbers */
	WF_KNOB_WORD,   /* one of those that the file, or choices, lists */
	WF_KNOB_MASK,   /* CPUs, in hexadecimal */
	WF_KNOB_LIST,   /* CPUs, as 0-3,8 */
	WF_KNOB_ADVICE, /* nothing that is written here */
};

enum wf_knob_want {
	WF_KNOB_ASK,      /* depends on what the machine is for: takes a value */
	WF_KNOB_AT_LEAST, /* any number of it */
	WF_KNOB_EXACTLY,
};

enum wf_knob_owner {
	WF_KNOB_NOBODY,
	WF_KNOB_TUNED,
	WF_KNOB_IRQBALANCE,
};

enum wf_tune_level {
	WF_TUNE_OK,
	WF_TUNE_ABSENT, /* this machine has no such place */
	WF_TUNE_NOTE,   /* worth knowing; nothing speaks for a change */
	WF_TUNE_COULD,
	WF_TUNE_WARN, /* a symptom was seen */
};

struct wf_judgement {
	enum wf_tune_level level;
	char value[WF_TUNE_VALUE];
	char proposal[WF_TUNE_VALUE]; /* "": none */
	char seen[320];               /* the symptom, or what to do */
	size_t nr_places;
};

struct wf_knob {
	const char *id, *title;
	const char *places; /* a path, or a pattern: ID@NAME gives the first star */
	enum wf_knob_form form;
	enum wf_knob_want wants;
	const char *want; /* the value that is proposed; NULL: none */
	unsigned int nr_numbers;
	long long min, max;
	const char *choices; /* the file beside the place that lists the words */
	bool needs_name;     /* for all of them at once it makes no sense */
	enum wf_knob_owner owner;
	enum wf_sign sign;
	const char *cmdline, *link, *tuned; /* what it is called there; NULL: it is not */
	const char *why;
	/* Not text: one bit of so many bytes at an offset of the place. The value is 0 or 1. */
	unsigned int width, bit;
	long long offset;
	unsigned int card_get,
		card_set;    /* no file but on a copy: commands of ethtool's ioctl; see card.c */
	const char *command; /* what a shell would do, where that is no echo */
	bool is_risky;       /* only with --i-know */
	const char *(*unfit)(const struct wf_machine *m); /* why not on this machine */
	bool (*accepts)(const struct wf_machine *m, const char *place);
	void (*advise)(const struct wf_machine *m, const struct wf_signs *s,
		       struct wf_judgement *out);
};

extern const struct wf_knob wf_knobs[];
extern const size_t wf_knobs_nr;

/* The knob, or NULL, that a path is a place of. */
const struct wf_knob *wf_knob_of_place(const char *path);
/* The name that sysctl(8) knows it by; false: it is no sysctl. */
bool wf_knob_sysctl(const struct wf_knob *k, char *out, size_t bytes);

/* --- advice.c --- */

void wf_advice_tickless(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_hz(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_preemption(const struct wf_machine *, const struct wf_signs *,
			  struct wf_judgement *);
void wf_advice_idle(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_steal(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_tw_recycle(const struct wf_machine *, const struct wf_signs *,
			  struct wf_judgement *);
void wf_advice_net_dma(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_oprofile(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);

void wf_advice_extension(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);
void wf_advice_connector(const struct wf_machine *, const struct wf_signs *, struct wf_judgement *);

/* --- card.c: of the live machine; 0, or -errno --- */

int wf_card_read(const struct wf_knob *k, const char *place, char out[WF_TUNE_VALUE]);
int wf_card_write(const struct wf_knob *k, const char *place, const char *value);
int wf_card_may_write(void);

/* --- dca.c --- */

const char *wf_dca_unfit(const struct wf_machine *m);
bool wf_dca_accepts_bridge(const struct wf_machine *m, const char *place);
bool wf_dca_accepts_cpu(const struct wf_machine *m, const char *place);

/* --- place.c --- */

struct wf_item {
	const struct wf_knob *knob;
	char name[64]; /* "": all */
	char value[WF_TUNE_VALUE];
};

struct wf_places {
	glob_t found;
	size_t nr; /* those that the knob accepts come first */
	size_t root_length;
};

/* Always to be released. */
void wf_places_find(const struct wf_machine *m, const struct wf_knob *k, const char *name,
		    struct wf_places *out);
void wf_places_release(struct wf_places *p);
/* The path without the root; NULL behind the last. */
const char *wf_places_get(const struct wf_places *p, size_t i);

/* Opens below the root, and below nothing else, whatever links are there. Returns a descriptor or -errno. */
int wf_place_open(const struct wf_machine *m, const char *path, int flags);
/* The text of a file in one line, blanks made one. Returns 0 or -errno. */
int wf_place_text(const struct wf_machine *m, const char *path, char *out, size_t bytes);
/* The value that is in force. */
int wf_place_read(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		  char out[WF_TUNE_VALUE]);
int wf_place_write(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		   const char *value);
/* They mean the same. */
bool wf_place_is_same(const struct wf_knob *k, const char *a, const char *b);
/* "": the knob takes this value. */
void wf_place_complaint(const struct wf_machine *m, const struct wf_item *item, char *out,
			size_t bytes);
/* Exactly nr numbers, and nothing else. */
bool wf_place_numbers(const char *text, unsigned int nr, long long out[WF_TUNE_NUMBERS]);

/* --- judge.c --- */

void wf_judge(const struct wf_machine *m, const struct wf_knob *k, const struct wf_signs *s,
	      struct wf_judgement *out);
/* The service that sets such knobs and runs here; NULL: none. */
const char *wf_judge_owner(const struct wf_machine *m, const struct wf_knob *k);
/* The command that does the same in a shell. */
void wf_judge_command(const struct wf_knob *k, const char *name, const char *value, char *out,
		      size_t bytes);

/* --- show.c --- */

int wf_tune_show(const struct wf_machine *m, bool is_json);

/* --- journal.c --- */

#define WF_JOURNAL_DIR "/var/lib/weft/doctor"

enum wf_entry_kind {
	WF_ENTRY_SET,  /* is going to be set */
	WF_ENTRY_TOOK, /* the kernel made another value of it */
	WF_ENTRY_NOT,  /* the kernel refused: nothing was set */
};

struct wf_entry {
	enum wf_entry_kind kind;
	char place[512];
	char old[WF_TUNE_VALUE], value[WF_TUNE_VALUE], boot[64];
};

struct wf_journal {
	int fd, dir;
	unsigned int nr; /* entries */
	char name[64];
	char path[4200];
};

int wf_journal_boot(const struct wf_machine *m, char out[64]);
/* A new one; both return 0 or -errno. The entry is on the disk when wf_journal_add() returns. */
int wf_journal_create(const struct wf_machine *m, struct wf_journal *out);
int wf_journal_add(struct wf_journal *j, const struct wf_entry *e);
/* One without entries is removed. */
void wf_journal_close(struct wf_journal *j);

/* The newest that was not undone. */
int wf_journal_latest(const struct wf_machine *m, char *out, size_t bytes);
/* All whole lines. Returns their number, or -errno; -EBADMSG: it is no journal. */
int wf_journal_read(const char *path, struct wf_entry **out);
/* Undone: it is not the newest any more. */
int wf_journal_retire(const char *path);

/* --- apply.c, emit.c --- */

int wf_apply(const struct wf_machine *m, const struct wf_item *items, size_t nr, bool is_dry);
int wf_apply_undo(const struct wf_machine *m, const char *journal);
int wf_apply_verify(const struct wf_machine *m, const char *journal);
int wf_emit(const char *format, const struct wf_item *items, size_t nr);

#endif
