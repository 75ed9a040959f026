// SPDX-License-Identifier: Apache-2.0
/*
 * signalfd: which signals some descriptor shows.
 *
 * A signalfd shows what the kernel has pending. A signal to a thread that blocks it would lie with us, out
 * of its sight; where a signalfd was made for the signal, it goes into the kernel as well, as the process's.
 *
 * Those made before the first thread, or handed to us by another process, are found in /proc when the question
 * first comes up.
 */

#include "linux/sigfd.h"
#include "linux/abi.h"
#include "linux/room.h"
#include <fcntl.h>

#define ROOM_BYTES 4096

struct dirent_k {
	uint64_t inode, offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static bool begins_with(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return false;
	return true;
}

/* The mask in text, of a file in /proc/self/fdinfo; 0: not of a signalfd. */
static uint64_t parse_mask(const char *text)
{
	uint64_t mask = 0;

	while (*text && !begins_with(text, "sigmask:"))
		text++;
	while (*text && *text != '\t')
		text++;
	for (text += *text == '\t'; *text && *text != '\n'; text++)
		mask = mask << 4 |
		       (uint64_t)(*text <= '9' ? *text - '0' : (*text | 0x20) - 'a' + 10);
	return mask;
}

static uint64_t mask_of(int dir, const char *name)
{
	char text[256];
	long fd = sys4(__NR_openat, dir, name, O_RDONLY | O_CLOEXEC, 0), n;

	if (fd < 0)
		return 0;
	n = sys3(__NR_read, fd, text, sizeof(text) - 1);
	(void)sys_close((int)fd);
	text[WF_MAX(n, 0)] = '\0';
	return parse_mask(text);
}

/* The signals that the signalfds of the process are for. */
static uint64_t find_all(void)
{
	long dir = sys4(__NR_openat, AT_FDCWD, "/proc/self/fdinfo",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	char *room = dir < 0 ? NULL : lx_room_get(ROOM_BYTES);
	uint64_t found = 0;
	long n;

	while (room && (n = sys3(__NR_getdents64, dir, room, ROOM_BYTES)) > 0)
		for (long at = 0; at < n;) {
			struct dirent_k *d = (void *)(room + at);

			if (d->name[0] != '.')
				found |= mask_of((int)dir, d->name);
			at += d->bytes;
		}
	if (room)
		lx_room_put(room, ROOM_BYTES);
	if (dir >= 0)
		(void)sys_close((int)dir);
	return found;
}

bool lx_signalfd_shows(int sig)
{
	if (WF_UNLIKELY(!wf_load_acquire(&lx.knows_signalfds))) {
		(void)wf_fetch_or(&lx.signalfds, find_all());
		wf_store_release(&lx.knows_signalfds, true);
	}
	return wf_load_relaxed(&lx.signalfds) & lx_bit(sig);
}
