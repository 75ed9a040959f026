// SPDX-License-Identifier: Apache-2.0
/* Writing the map; see perfmap.h. perf wants lines "START BYTES NAME", in hexadecimal without a prefix. */
#include "gate/perfmap.h"

#include "base/base.h"
#include "base/fmt.h"
#include "gate/say.h"
#include "sys/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdbool.h>
#include <sys/syscall.h>

#define KIND_MASK 0170000u
#define KIND_REGULAR 0100000u

static bool is_wanted;
static long pid_of_file; /* a child that was forked begins its own */

void wf_perfmap_want(void)
{
	is_wanted = true;
}

static void put_hex(struct wf_fmt *f, uint64_t v)
{
	char text[24];
	struct wf_fmt with_prefix;

	wf_fmt_init(&with_prefix, text, sizeof(text));
	wf_fmt_hex(&with_prefix, v);
	wf_fmt_str(f, text + 2);
}

/* The file of this process; what an earlier one with our number has left there goes. */
static long open_map(const char *path, bool is_new)
{
	const int flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
	long fd = sys4(__NR_openat, AT_FDCWD, path, flags | O_NONBLOCK, 0600);
	struct statx st;

	if (fd < 0)
		return fd;
	if (sys5(__NR_statx, fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st) == 0 &&
	    (st.stx_mode & KIND_MASK) == KIND_REGULAR && st.stx_nlink == 1 &&
	    st.stx_uid == (uint32_t)sys0(__NR_geteuid) &&
	    (!is_new || sys2(__NR_ftruncate, fd, 0) == 0))
		return fd;
	(void)sys_close((int)fd);
	return -EPERM;
}

void wf_perfmap_note(uintptr_t start, uintptr_t end, const char *module)
{
	long pid = is_wanted ? sys0(__NR_getpid) : 0, fd;
	char path[40], line[160];
	const char *name = module;
	struct wf_fmt f;

	if (!is_wanted)
		return;
	for (const char *c = module; *c; c++)
		name = *c == '/' ? c + 1 : name;
	wf_fmt_init(&f, path, sizeof(path));
	wf_fmt_str(&f, "/tmp/perf-");
	wf_fmt_i64(&f, pid);
	wf_fmt_str(&f, ".map");
	fd = open_map(path, pid != pid_of_file);
	if (fd < 0) {
		is_wanted = false;
		wf_say("no map for perf: cannot write ", path, NULL);
		return;
	}
	pid_of_file = pid;
	wf_fmt_init(&f, line, sizeof(line) - 1); /* room for the end of the line */
	put_hex(&f, start);
	wf_fmt_str(&f, " ");
	put_hex(&f, end - start);
	wf_fmt_str(&f, " weft_calls_of_");
	wf_fmt_str(&f, *name ? name : "the_program");
	line[f.len] = '\n';
	(void)sys_write((int)fd, line, f.len + 1);
	(void)sys_close((int)fd);
}
