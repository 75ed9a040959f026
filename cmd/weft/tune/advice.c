// SPDX-License-Identifier: Apache-2.0
/*
 * Rows that nothing is written for: the command line of the kernel, the BIOS, the host, and what is gone.
 *
 * Called by: judge.c. Invariant: a value that cannot be read is absent, never fine.
 */
#include <glob.h>
#include <string.h>
#include <sys/prctl.h>

#include "tune/tune.h"

#define RSEQ_SLICE_EXTENSION 79 /* Linux 7.0; with 1: is it on? */

static void absent(struct wf_judgement *out)
{
	out->level = WF_TUNE_ABSENT;
	strcpy(out->value, "not here");
}

void wf_advice_tickless(const struct wf_machine *m, const struct wf_signs *s,
			struct wf_judgement *out)
{
	char cpus[128];

	(void)s;
	if (wf_place_text(m, "/sys/devices/system/cpu/nohz_full", cpus, sizeof(cpus)) < 0) {
		absent(out);
		return;
	}
	/* The kernel prints (null) where it was built for this and not told to do it. */
	snprintf(out->value, sizeof(out->value), "%s",
		 *cpus && strcmp(cpus, "(null)") != 0 ? cpus : "none");
}

/* A line NAME=VALUE of the configuration that distributions put beside the kernel. */
static bool configured(const struct wf_machine *m, const char *name, char *out, size_t bytes)
{
	static char text[512 * 1024]; /* static for its size */
	char path[192], release[96], line[96];
	const char *at;

	if (!wf_machine_line(m, "/proc/sys/kernel/osrelease", release, sizeof(release)))
		return false;
	snprintf(path, sizeof(path), "/boot/config-%s", release);
	if (wf_machine_read(m, path, text, sizeof(text)) < 0)
		return false;
	snprintf(line, sizeof(line), "\n%s=", name);
	at = strstr(text, line);
	if (!at)
		return false;
	at += strlen(line);
	snprintf(out, bytes, "%.*s", (int)strcspn(at, "\n"), at);
	return true;
}

void wf_advice_hz(const struct wf_machine *m, const struct wf_signs *s, struct wf_judgement *out)
{
	(void)s;
	if (!configured(m, "CONFIG_HZ", out->value, sizeof(out->value)))
		absent(out);
}

void wf_advice_preemption(const struct wf_machine *m, const struct wf_signs *s,
			  struct wf_judgement *out)
{
	static const char *const names[] = { "PREEMPT_DYNAMIC", "PREEMPT_RT", "PREEMPT_LAZY",
					     "PREEMPT" };
	char version[256];

	(void)s;
	if (!wf_machine_line(m, "/proc/sys/kernel/version", version, sizeof(version))) {
		absent(out);
		return;
	}
	strcpy(out->value, "none or voluntary");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strstr(version, names[i])) {
			snprintf(out->value, sizeof(out->value), "%s", names[i]);
			return;
		}
	}
}

/* Whether a thread may ask for a few microseconds more at the end of its slice: only the kernel itself can tell. */
void wf_advice_extension(const struct wf_machine *m, const struct wf_signs *s,
			 struct wf_judgement *out)
{
	(void)s;
	if (wf_machine_is_live(m) && prctl(RSEQ_SLICE_EXTENSION, 1, 0, 0, 0) >= 0)
		strcpy(out->value, "there");
	else
		absent(out);
}

void wf_advice_connector(const struct wf_machine *m, const struct wf_signs *s,
			 struct wf_judgement *out)
{
	char text[512];

	(void)s;
	if (wf_machine_read(m, "/proc/net/connector", text, sizeof(text)) > 0 &&
	    strstr(text, "cn_proc")) {
		strcpy(out->value, "there");
		out->level = WF_TUNE_OK;
	} else {
		absent(out);
	}
}

void wf_advice_idle(const struct wf_machine *m, const struct wf_signs *s, struct wf_judgement *out)
{
	char path[128], name[64] = "", next[64];
	long long us, worst = -1;

	(void)s;
	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d/latency",
			 i);
		if (!wf_machine_number(m, path, &us))
			break;
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cpuidle/state%d/name",
			 i);
		if (us > worst && wf_machine_line(m, path, next, sizeof(next))) {
			worst = us;
			strcpy(name, next);
		}
	}
	if (worst < 0)
		absent(out);
	else
		snprintf(out->value, sizeof(out->value), "%s: %lld us to wake up", name, worst);
}

void wf_advice_steal(const struct wf_machine *m, const struct wf_signs *s, struct wf_judgement *out)
{
	(void)m;
	strcpy(out->value, s->seen[WF_SIGN_STEAL][0] ? "much" : "none seen");
	if (!s->seen[WF_SIGN_STEAL][0])
		out->level = WF_TUNE_OK;
}

/* The first file of these that names it. */
static bool named_in(const struct wf_machine *m, const char *pattern, const char *name, char *out,
		     size_t bytes)
{
	static const struct wf_knob any = { .form = WF_KNOB_ADVICE };
	struct wf_knob k = any;
	struct wf_places places;
	const char *place;
	char text[16384];
	bool is_found = false;

	k.places = pattern;
	wf_places_find(m, &k, "", &places);
	for (size_t i = 0; !is_found && (place = wf_places_get(&places, i)); i++) {
		is_found = wf_place_text(m, place, text, sizeof(text)) == 0 && strstr(text, name);
		if (is_found)
			snprintf(out, bytes, "%s", place);
	}
	wf_places_release(&places);
	return is_found;
}

/* A value that is gone is only worth a line where somebody still asks for it. */
static void gone(const struct wf_machine *m, const char *const patterns[], const char *name,
		 struct wf_judgement *out)
{
	char where[200];

	strcpy(out->value, "gone");
	strcpy(out->seen, "remove it from your notes");
	for (; *patterns; patterns++) {
		if (!named_in(m, *patterns, name, where, sizeof(where)))
			continue;
		out->level = WF_TUNE_WARN;
		snprintf(out->seen, sizeof(out->seen), "%s still names it: remove it", where);
		return;
	}
}

void wf_advice_tw_recycle(const struct wf_machine *m, const struct wf_signs *s,
			  struct wf_judgement *out)
{
	static const char *const patterns[] = { "/etc/sysctl.conf", "/etc/sysctl.d/*.conf",
						"/usr/lib/sysctl.d/*.conf", NULL };

	(void)s;
	gone(m, patterns, "tcp_tw_recycle", out);
}

static const char *const module_files[] = { "/etc/modules", "/etc/modules-load.d/*.conf",
					    "/etc/modprobe.d/*.conf", NULL };

void wf_advice_net_dma(const struct wf_machine *m, const struct wf_signs *s,
		       struct wf_judgement *out)
{
	(void)s;
	gone(m, module_files, "net_dma", out);
}

void wf_advice_oprofile(const struct wf_machine *m, const struct wf_signs *s,
			struct wf_judgement *out)
{
	(void)s;
	gone(m, module_files, "oprofile", out);
}
