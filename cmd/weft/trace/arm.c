// SPDX-License-Identifier: Apache-2.0
/* Writing the word; see arm.h. */
#include "trace/arm.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"
#include "trace/stop.h"

#define HEARD_NS 1000000000ll /* a program that computes looks every 12 ms */
#define LOOK_NS 5000000

static uint64_t word_of(const struct wf_trace_options *o, const struct wf_layout *l)
{
	uint64_t word = wf_layout_value(l, "const", "trace_asked", 0);

	if (o->is_disarm)
		return word;
	word |= o->ring_bytes << (wf_layout_value(l, "const", "trace_asked_bytes", 8) & 31);
	word |= wf_layout_value(l, "const", "trace_sched", 0);
	return o->has_calls ? word | wf_layout_value(l, "const", "trace_calls", 0) : word;
}

/* Not into a process that has the number now, nor into a program that was executed since: the old one's memory is there. */
static bool write_word(struct wf_target *t, uint64_t address, uint64_t word)
{
	char path[64];
	bool is_ok;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", t->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return wf_target_fail(t, "cannot write to process %d: %s", t->pid, strerror(errno));
	is_ok = !wf_target_is_gone(t) &&
		pwrite(fd, &word, sizeof(word), (off_t)address) == (ssize_t)sizeof(word);
	close(fd);
	return is_ok || wf_target_fail(t, "process %d does not let itself be written to", t->pid);
}

/* Until the word is taken back. */
static bool is_heard(const struct wf_layout *l, const struct wf_target *t)
{
	int64_t end = wf_stop_now() + HEARD_NS;
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	while (wf_layout_fetch(l, t, l->trace, WF_L_TR_ASKED)) {
		if (wf_stop_now() > end)
			return false;
		(void)nanosleep(&pause, NULL);
	}
	return true;
}

/* Rings are made once: of another size, or with calls, is too late. */
static void say(const struct wf_trace_options *o, const struct wf_rings *had, int pid, bool heard)
{
	const char *when = heard ? "" : ", from when it does something";

	if (o->is_quiet)
		return;
	if (o->is_disarm)
		printf("process %d records no more%s; what it has stays\n", pid, when);
	else if (had->is_armed)
		printf("process %d records%s, in the rings that it has%s\n", pid, when,
		       had->has_calls ? "" : ", without calls");
	else
		printf("process %d records%s\n", pid, when);
}

static bool arm(const struct wf_trace_options *o, const struct wf_layout *l, struct wf_target *t)
{
	struct wf_rings had;
	bool is_ok;

	wf_rings_begin(&had, l, t);
	if (!l->trace || !wf_layout_fetch(l, t, l->runtime, WF_L_RT_STARTED))
		is_ok = wf_target_fail(t, "process %d has made no thread yet, or runs natively",
				       t->pid);
	else if (had.frozen.cycles)
		is_ok = wf_target_fail(t, "process %d ends", t->pid);
	else
		is_ok = write_word(t, l->trace + l->field[WF_L_TR_ASKED].offset, word_of(o, l));
	if (is_ok)
		say(o, &had, t->pid, is_heard(l, t));
	wf_rings_done(&had);
	return is_ok;
}

int wf_arm_run(const struct wf_trace_options *o)
{
	struct wf_layout l = { 0 };
	struct wf_budget budget;
	struct wf_target t;
	bool is_ok;

	wf_budget_begin(&budget);
	is_ok = wf_target_open_process(&t, o->pid, &budget) && wf_layout_read(&l, &t) &&
		arm(o, &l, &t);
	if (!is_ok)
		wf_cmd_error("trace: %s", t.error);
	wf_layout_done(&l);
	wf_target_done(&t);
	return is_ok ? 0 : WF_EXIT_REFUSED;
}
