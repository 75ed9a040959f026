// SPDX-License-Identifier: Apache-2.0
/*
 * Symptoms: what goes wrong on the machine while one looks.
 *
 * Called by: show.c. Invariant: a symptom is a counter that grew in a second of looking, or something that is nearly full;
 * what was lost before that may be long mended.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tune/tune.h"

#define NEARLY_FULL_PERCENT 90
#define MUCH_STEAL_PERCENT 5

struct sample {
	long long counts[WF_SIGN_NR];
	long long ticks; /* of all CPUs, to compare WF_SIGN_STEAL with */
};

/* A counter of /proc/net/netstat: a line of names, then one of values. 0 if it is not there. */
static long long netstat(char *text, const char *group, const char *name)
{
	char *names, *values, *save_names, *save_values, *label, *value;
	char copy[16384];
	size_t len = strlen(group);

	snprintf(copy, sizeof(copy), "%s", text);
	names = strstr(copy, group);
	values = names ? strstr(names + len, group) : NULL;
	if (!values)
		return 0;
	values[-1] = '\0';
	label = strtok_r(names, " ", &save_names);
	value = strtok_r(values, " \n", &save_values);
	while (label && value && strcmp(label, name) != 0) {
		label = strtok_r(NULL, " \n", &save_names);
		value = strtok_r(NULL, " \n", &save_values);
	}
	return label && value ? atoll(value) : 0;
}

static void count_network(const struct wf_machine *m, struct sample *out)
{
	char text[16384];
	char *save;

	if (wf_machine_read(m, "/proc/net/netstat", text, sizeof(text)) > 0) {
		out->counts[WF_SIGN_LISTEN] = netstat(text, "TcpExt:", "ListenOverflows");
		out->counts[WF_SIGN_SYN] = netstat(text, "TcpExt:", "TCPReqQFullDrop") +
					   netstat(text, "TcpExt:", "TCPReqQFullDoCookies");
		out->counts[WF_SIGN_PRUNE] = netstat(text, "TcpExt:", "PruneCalled") +
					     netstat(text, "TcpExt:", "RcvPruned");
	}
	if (wf_machine_read(m, "/proc/net/softnet_stat", text, sizeof(text)) <= 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long seen, dropped, squeezed;

		if (sscanf(line, "%lx %lx %lx", &seen, &dropped, &squeezed) != 3)
			continue;
		out->counts[WF_SIGN_BACKLOG] += (long long)dropped;
		out->counts[WF_SIGN_SQUEEZE] += (long long)squeezed;
	}
}

static void count_steal(const struct wf_machine *m, struct sample *out)
{
	long long t[8];
	char line[512];

	if (!wf_machine_line(m, "/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &t[0], &t[1], &t[2], &t[3],
		   &t[4], &t[5], &t[6], &t[7]) != 8)
		return;
	for (int i = 0; i < 8; i++)
		out->ticks += t[i];
	out->counts[WF_SIGN_STEAL] = t[7];
}

static void take_sample(const struct wf_machine *m, struct sample *out)
{
	*out = (struct sample){ 0 };
	count_network(m, out);
	count_steal(m, out);
}

static void look_for_full(const struct wf_machine *m, struct wf_signs *out)
{
	long long used, spare, most, pids, running;
	char line[256];

	if (wf_machine_line(m, "/proc/sys/fs/file-nr", line, sizeof(line)) &&
	    sscanf(line, "%lld %lld %lld", &used, &spare, &most) == 3 &&
	    used - spare >= most / 100 * NEARLY_FULL_PERCENT && most > 0)
		snprintf(out->seen[WF_SIGN_FILES], sizeof(out->seen[0]),
			 "%lld of %lld files are open", used - spare, most);
	if (!wf_machine_line(m, "/proc/loadavg", line, sizeof(line)) ||
	    sscanf(line, "%*f %*f %*f %lld/%lld", &running, &used) != 2)
		return;
	if (wf_machine_number(m, "/proc/sys/kernel/threads-max", &most) &&
	    wf_machine_number(m, "/proc/sys/kernel/pid_max", &pids) &&
	    used >= (most < pids ? most : pids) / 100 * NEARLY_FULL_PERCENT)
		snprintf(out->seen[WF_SIGN_THREADS], sizeof(out->seen[0]),
			 "%lld kernel threads are there, and %lld fit", used,
			 most < pids ? most : pids);
}

void wf_signs_look(const struct wf_machine *m, struct wf_signs *out)
{
	static const char *const texts[WF_SIGN_NR] = {
		[WF_SIGN_LISTEN] = "connections dropped in a second, as nobody accepted them",
		[WF_SIGN_SYN] = "connections that found too many half open in a second",
		[WF_SIGN_SQUEEZE] = "rounds of the network squeezed in a second",
		[WF_SIGN_BACKLOG] = "packets dropped by CPUs in a second",
		[WF_SIGN_PRUNE] = "receive buffers pruned in a second",
	};
	struct timespec second = { .tv_sec = 1 };
	struct sample before, after;
	long long ticks, stolen;

	*out = (struct wf_signs){ 0 };
	look_for_full(m, out);
	if (!wf_machine_is_live(m))
		return;
	take_sample(m, &before);
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL);
	take_sample(m, &after);
	for (int i = 0; i < WF_SIGN_NR; i++) {
		long long more = after.counts[i] - before.counts[i];

		if (texts[i] && more > 0)
			snprintf(out->seen[i], sizeof(out->seen[0]), "%lld %s", more, texts[i]);
	}
	ticks = after.ticks - before.ticks;
	stolen = after.counts[WF_SIGN_STEAL] - before.counts[WF_SIGN_STEAL];
	if (ticks > 0 && stolen * 100 >= ticks * MUCH_STEAL_PERCENT)
		snprintf(out->seen[WF_SIGN_STEAL], sizeof(out->seen[0]),
			 "%lld %% of a second stolen", stolen * 100 / ticks);
}
