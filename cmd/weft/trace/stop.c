// SPDX-License-Identifier: Apache-2.0
/* Times, and when the user has enough; see stop.h. */
#include "trace/stop.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool wf_stop_parse_time(const char *text, int64_t *out_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	double value;
	char *end;

	if (*text < '0' || *text > '9' || text[1] == 'x' || text[1] == 'X')
		return false;
	value = strtod(text, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		value *= units[i].ns;
		if (!(value >= 1000 && value <= 86400e9))
			return false;
		*out_ns = (int64_t)value;
		return true;
	}
	return false;
}

static volatile sig_atomic_t is_enough;

static void on_signal(int sig)
{
	(void)sig;
	is_enough = 1;
}

void wf_stop_catch(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
}

bool wf_stop_is_enough(void)
{
	return is_enough;
}

int64_t wf_stop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}
