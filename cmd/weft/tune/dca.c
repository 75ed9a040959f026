// SPDX-License-Identifier: Apache-2.0
/*
 * Direct cache access on the chipsets of 2006 to 2008, whose BIOS often left it off: bit 6 at 0x64 of the bridge, and bit 0
 * of the CPU's register 0x1f8.
 *
 * Called by: knobs.c. Invariant: a bridge or a CPU that is not in the tables below is never written: on any other, these
 * registers are something else. Later CPUs have the same without a switch (DDIO).
 */
#include <string.h>

#include "tune/tune.h"

static const struct {
	const char *device, *chipset;
} bridges[] = {
	{ "0x25c0", "5000" }, { "0x25d0", "5000" }, { "0x25d4", "5000" },
	{ "0x25d8", "5000" }, { "0x65c0", "5100" }, { "0x3600", "7300" },
};

/* Family 6: Xeon 5100, 5300, 7300; 5200, 5400; 7400. */
static const long models[] = { 15, 23, 29 };

static bool is_fitting_cpu(const struct wf_machine *m)
{
	char vendor[64], family[16], model[16], flags[8192], padded[8200];

	if (!wf_machine_cpu_says(m, "vendor_id", vendor, sizeof(vendor)) ||
	    !wf_machine_cpu_says(m, "cpu family", family, sizeof(family)) ||
	    !wf_machine_cpu_says(m, "model", model, sizeof(model)) ||
	    !wf_machine_cpu_says(m, "flags", flags, sizeof(flags)))
		return false;
	snprintf(padded, sizeof(padded), " %s ", flags);
	if (strcmp(vendor, "GenuineIntel") != 0 || strcmp(family, "6") != 0 ||
	    !strstr(padded, " dca "))
		return false;
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		char wanted[16];

		snprintf(wanted, sizeof(wanted), "%ld", models[i]);
		if (strcmp(model, wanted) == 0)
			return true;
	}
	return false;
}

static bool is_bridge(const struct wf_machine *m, const char *config)
{
	int dir = (int)(strrchr(config, '/') - config);
	char path[512], id[32];

	if (snprintf(path, sizeof(path), "%.*s/vendor", dir, config) >= (int)sizeof(path) ||
	    wf_place_text(m, path, id, sizeof(id)) < 0 || strcmp(id, "0x8086") != 0)
		return false;
	snprintf(path, sizeof(path), "%.*s/device", dir, config);
	if (wf_place_text(m, path, id, sizeof(id)) < 0)
		return false;
	for (size_t i = 0; i < sizeof(bridges) / sizeof(bridges[0]); i++) {
		if (strcmp(id, bridges[i].device) == 0)
			return true;
	}
	return false;
}

static bool has_bridge(const struct wf_machine *m)
{
	static const struct wf_knob any = { .places = "/sys/bus/pci/devices/*/config",
					    .accepts = is_bridge };
	struct wf_places places;
	bool is_found;

	wf_places_find(m, &any, "", &places);
	is_found = wf_places_get(&places, 0);
	wf_places_release(&places);
	return is_found;
}

const char *wf_dca_unfit(const struct wf_machine *m)
{
	char lockdown[128];

	if (!has_bridge(m))
		return "this machine has no bridge of the Intel 5000, 5100 or 7300, and on any other "
		       "this is another register";
	if (!is_fitting_cpu(m))
		return "the CPU is none of the Xeons 5100 to 7400 that have it (/proc/cpuinfo)";
	if (wf_place_text(m, "/sys/kernel/security/lockdown", lockdown, sizeof(lockdown)) == 0 &&
	    *lockdown && !strstr(lockdown, "[none]"))
		return "the kernel is locked down (/sys/kernel/security/lockdown)";
	return NULL;
}

bool wf_dca_accepts_bridge(const struct wf_machine *m, const char *place)
{
	return is_bridge(m, place) && !wf_dca_unfit(m);
}

bool wf_dca_accepts_cpu(const struct wf_machine *m, const char *place)
{
	(void)place;
	return !wf_dca_unfit(m);
}
