// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of network cards that are no files: what ethtool(8) sets, through its ioctl.
 *
 * Called by: place.c. Their places are names beside those of the card's files: /sys/class/net/eth0/ethtool.tso. A copy of a
 * machine has files of these names, so that only this file knows of the difference.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tune/tune.h"

/* Each structure that a command takes begins with its number. */
union request {
	__u32 command;
	struct ethtool_value value;
	struct ethtool_coalesce coalesce;
};

/* /sys/class/net/NAME/... False: it cannot be a card's name. */
static bool take_name(const char *place, char out[IFNAMSIZ])
{
	const char *end = strrchr(place, '/'), *begin = end;

	while (begin > place && begin[-1] != '/')
		begin--;
	if (!end || end == begin || end - begin >= IFNAMSIZ)
		return false;
	memcpy(out, begin, (size_t)(end - begin));
	out[end - begin] = '\0';
	return true;
}

static int ask(const char *place, union request *r)
{
	struct ifreq to = { .ifr_data = (char *)r };
	int fd, ret;

	if (!take_name(place, to.ifr_name))
		return -EINVAL;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, SIOCETHTOOL, &to) < 0 ? -errno : 0;
	(void)close(fd);
	return ret;
}

static __u32 *field(const struct wf_knob *k, union request *r)
{
	return k->card_get == ETHTOOL_GCOALESCE ? &r->coalesce.rx_coalesce_usecs : &r->value.data;
}

int wf_card_read(const struct wf_knob *k, const char *place, char out[WF_TUNE_VALUE])
{
	union request r = { .command = k->card_get };
	int ret = ask(place, &r);

	if (ret == 0)
		snprintf(out, WF_TUNE_VALUE, "%u", *field(k, &r));
	return ret;
}

/* The other values of its group stay as they are. */
int wf_card_write(const struct wf_knob *k, const char *place, const char *value)
{
	union request r = { .command = k->card_get };
	int ret = ask(place, &r);

	if (ret < 0)
		return ret;
	r.command = k->card_set;
	*field(k, &r) = (__u32)strtoul(value, NULL, 10);
	return ask(place, &r);
}

/* Nothing is tried: the kernel asks for CAP_NET_ADMIN in the card's namespace, which root has as a rule. */
int wf_card_may_write(void)
{
	return geteuid() == 0 ? 0 : -EPERM;
}
