// SPDX-License-Identifier: Apache-2.0
/*
 * Opening files whose names somebody else chose; see file.h.
 *
 * A name is opened as a place first, which does nothing to what is there; only what turned out to be a
 * regular file is then opened for reading, through that descriptor, so that it cannot be exchanged between.
 *
 * libdw follows names that it finds in files (.gnu_debuglink, .gnu_debugaltlink, names of split DWARF) and opens
 * them itself. There is no hook for all of that; so this program exports an open() of its own, to which the
 * calls of the libraries lead. Considered and dropped: a callback in place of libdw's search, which leaves
 * the other two, and a seccomp filter, which cannot look at a name.
 */
#include "target/file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_guarded;

/* Straight to the kernel: open() is the function below. */
static int open_place(const char *path, int flags)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* File systems whose regular files are no files: reading one may change something. */
static bool is_of_kernel(int fd)
{
	static const unsigned long kinds[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,         DEBUGFS_MAGIC,  TRACEFS_MAGIC,
		SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,  SMACK_MAGIC,    SELINUX_MAGIC,
		BPF_FS_MAGIC,     CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC,
		0x62656570, /* configfs */
	};
	struct statfs s;

	if (fstatfs(fd, &s) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((unsigned long)s.f_type == kinds[i])
			return true;
	}
	return false;
}

/* Consumes place. */
static int open_regular(int place)
{
	struct stat s;
	char path[64];
	int fd;

	if (place < 0)
		return place;
	if (fstat(place, &s) < 0)
		fd = -errno;
	else if (!S_ISREG(s.st_mode) || is_of_kernel(place))
		fd = -EMEDIUMTYPE;
	else {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
		fd = open_place(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	}
	close(place);
	return fd;
}

int wf_file_open(const char *path)
{
	return open_regular(open_place(path, O_PATH));
}

int wf_file_open_proc(const char *path)
{
	return open_place(path, O_RDONLY);
}

bool wf_file_is_elf(int fd)
{
	char magic[SELFMAG];

	return pread(fd, magic, SELFMAG, 0) == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

void wf_file_guard_libraries(void)
{
	is_guarded = true;
}

/* In place of open() for this program and for the libraries that it loads; exports.list exports it. */
int wf_file_guarded_open(const char *path, int flags, ...);
int wf_file_guarded_open(const char *path, int flags, ...)
{
	va_list args;
	long fd;
	int mode;

	if (is_guarded && (flags & (O_ACCMODE | O_CREAT | O_PATH | O_DIRECTORY)) == O_RDONLY) {
		fd = wf_file_open(path);
		if (fd >= 0)
			return (int)fd;
		errno = (int)-fd;
		return -1;
	}
	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
	va_end(args);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

extern int exported_open(const char *path, int flags, ...) __asm__("open")
	__attribute__((alias("wf_file_guarded_open"), visibility("default")));
extern int exported_open64(const char *path, int flags, ...) __asm__("open64")
	__attribute__((alias("wf_file_guarded_open"), visibility("default")));
