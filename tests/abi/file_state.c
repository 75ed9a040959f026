// SPDX-License-Identifier: Apache-2.0
/* The state of a file besides its name: mode, owner, times, length, attributes; and what its file system says. */
#include "beside.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <utime.h>

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_setxattrat
#define SYS_setxattrat 463
#define SYS_getxattrat 464
#define SYS_listxattrat 465
#define SYS_removexattrat 466
#endif
#ifndef SYS_file_getattr
#define SYS_file_getattr 468
#define SYS_file_setattr 469
#endif

static char dir[] = "/tmp/weft-states-XXXXXX";
static int dir_fd, fd;

static struct stat state(void)
{
	struct stat st = { 0 };

	CHECK_SYS(CALL(fstat, fd, &st));
	return st;
}

static void modes(void)
{
	CHECK_SYS(CALL(chmod, "file", 0600));
	CHECK_EQ(state().st_mode & 07777, 0600);
	CHECK_SYS(CALL(fchmod, fd, 0640));
	CHECK_EQ(state().st_mode & 07777, 0640);
	CHECK_SYS(CALL(fchmodat, dir_fd, "file", 0644));
	CHECK_EQ(state().st_mode & 07777, 0644);
	if (!is_refused(CALL(fchmodat2, fd, "", 0604, AT_EMPTY_PATH)))
		CHECK_EQ(state().st_mode & 07777, 0604);
}

static void mask(void)
{
	int before = (int)CALL(umask, 027);
	int other = (int)CHECK_SYS(open("masked", O_CREAT | O_EXCL | O_WRONLY, 0777));
	struct stat st = { 0 };

	CHECK_EQ(CALL(umask, before), 027);
	CHECK_SYS(fstat(other, &st));
	CHECK_EQ(st.st_mode & 0777, 0750);
	close(other);
	CHECK_SYS(unlink("masked"));
}

static void owners(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	struct stat st;

	CHECK_SYS(CALL(chown, "file", uid, gid));
	CHECK_SYS(CALL(fchown, fd, -1, gid));
	CHECK_SYS(CALL(lchown, "link", uid, -1));
	CHECK_SYS(CALL(fchownat, dir_fd, "link", uid, gid, AT_SYMLINK_NOFOLLOW));
	CHECK_SYS(CALL(fchownat, dir_fd, "file", -1, -1, 0));
	CHECK_EQ(state().st_uid, uid);
	CHECK_EQ(state().st_gid, gid);
	if (CALL(lchown, "link", 65534, 65534) == 0) { /* of the link, not of the file */
		CHECK_EQ(state().st_uid, uid);
		CHECK_SYS(CALL(lstat, "link", &st));
		CHECK_EQ(st.st_uid, 65534);
		CHECK_SYS(CALL(lchown, "link", uid, gid));
	} else {
		CHECK(errno == EPERM || errno == EINVAL);
	}
}

static void check_times(int64_t atime, int64_t mtime)
{
	CHECK_EQ(state().st_atim.tv_sec * SEC + state().st_atim.tv_nsec, atime);
	CHECK_EQ(state().st_mtim.tv_sec * SEC + state().st_mtim.tv_nsec, mtime);
}

static void times_of_files(void)
{
	struct utimbuf seconds = { 1000000000, 1000000001 };
	struct timeval micro[2] = { { 1000000002, 3 }, { 1000000004, 5 } };
	struct timespec nano[2] = { { 1000000006, UTIME_OMIT }, { 1000000008, 9000 } };

	CHECK_SYS(CALL(utime, "file", &seconds));
	check_times(1000000000 * SEC, 1000000001 * SEC);
	CHECK_SYS(CALL(utimes, "file", micro));
	check_times(1000000002 * SEC + 3000, 1000000004 * SEC + 5000);
	micro[0].tv_sec = 1000000010;
	CHECK_SYS(CALL(futimesat, dir_fd, "file", micro));
	check_times(1000000010 * SEC + 3000, 1000000004 * SEC + 5000);
	CHECK_SYS(CALL(utimensat, fd, NULL, nano, 0));
	check_times(1000000010 * SEC + 3000, 1000000008 * SEC + 9000);
}

static void lengths(void)
{
	char c = 'x';

	CHECK_SYS(CALL(truncate, "file", 0));
	CHECK_EQ(pwrite(fd, "0123456789", 10, 0), 10);
	CHECK_SYS(CALL(truncate, "file", 100000));
	CHECK_EQ(state().st_size, 100000);
	CHECK_EQ(pread(fd, &c, 1, 99999), 1);
	CHECK_EQ(c, 0);
	CHECK_EQ(CALL(lseek, fd, 7, SEEK_SET), 7);
	CHECK_EQ(CALL(lseek, fd, 2, SEEK_CUR), 9);
	CHECK_EQ(read(fd, &c, 1), 1);
	CHECK_EQ(c, '9');
	CHECK_EQ(CALL(lseek, fd, -5L, SEEK_END), 99995);
	CHECK_EQ(CALL(lseek, fd, 0, SEEK_DATA), 0);
	CHECK_ERRNO(CALL(lseek, fd, 100000, SEEK_DATA), ENXIO);
	CHECK_ERRNO(CALL(lseek, fd, -1L, SEEK_SET), EINVAL);
	if (CALL(fallocate, fd, 0, 100000, 50000) == 0) {
		CHECK_EQ(state().st_size, 150000);
		CHECK_SYS(CALL(fallocate, fd, FALLOC_FL_KEEP_SIZE, 150000, 50000));
		CHECK_EQ(state().st_size, 150000);
	} else {
		CHECK_EQ(errno, EOPNOTSUPP);
	}
	CHECK_SYS(CALL(fadvise64, fd, 0L, 0L, POSIX_FADV_SEQUENTIAL));
	CHECK_ERRNO(CALL(fadvise64, fd, 0L, 0L, 77), EINVAL);
	CHECK_SYS(CALL(truncate, "file", 10));
	CHECK_EQ(state().st_size, 10);
}

struct old_ustat {
	int free;
	unsigned long inodes;
	char names[12];
	char space[64];
};

static void file_system(void)
{
	struct statfs a, b;
	struct old_ustat u;
	char name[256] = "";

	CHECK_SYS(CALL(statfs, "file", &a));
	CHECK_SYS(CALL(fstatfs, fd, &b));
	CHECK_EQ(a.f_type, b.f_type);
	CHECK_EQ(a.f_blocks, b.f_blocks);
	CHECK(a.f_namelen > 0 && a.f_bsize > 0);
	if (CALL(ustat, state().st_dev, &u)) /* not of file systems that have no device */
		CHECK(errno == EINVAL || errno == ENOSYS || errno == EPERM);
	if (!is_refused(CALL(sysfs, 2, 0L, name))) {
		CHECK(name[0] != '\0');
		CHECK_EQ(CALL(sysfs, 1, name), 0);
		CHECK(CALL(sysfs, 3) > 0);
	}
}

static void handles(void)
{
	struct {
		struct file_handle h;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .h = { .handle_bytes = MAX_HANDLE_SZ } };
	int mount;
	struct stat st;
	long other;

	if (CALL(name_to_handle_at, dir_fd, "file", &handle, &mount, 0)) {
		CHECK(errno == EOPNOTSUPP || errno == EPERM || errno == ENOSYS);
		return;
	}
	CHECK(handle.h.handle_bytes > 0 && handle.h.handle_bytes <= MAX_HANDLE_SZ);
	other = CALL(open_by_handle_at, dir_fd, &handle, O_RDONLY);
	if (other == -1) { /* only for who may read everything */
		CHECK(errno == EPERM || errno == ESTALE || errno == ENOSYS || errno == EOPNOTSUPP);
		return;
	}
	CHECK_SYS(fstat((int)other, &st));
	CHECK_EQ(st.st_ino, state().st_ino);
	close((int)other);
}

static int is_listed(const char *list, long len, const char *name)
{
	for (const char *p = list; p < list + len; p += strlen(p) + 1)
		if (strcmp(p, name) == 0)
			return 1;
	return 0;
}

#define CHECK_LISTED(call, name, want)                                                             \
	do {                                                                                       \
		long len_ = CHECK_SYS(call);                                                       \
		CHECK_EQ(is_listed(list, len_, name), want);                                       \
	} while (0)

static void attributes(void)
{
	char value[8] = "", list[512];

	if (CALL(setxattr, "file", "user.a", "one", 4, XATTR_CREATE)) {
		CHECK(is_refused(-1));
		return;
	}
	CHECK_ERRNO(CALL(setxattr, "file", "user.a", "one", 4, XATTR_CREATE), EEXIST);
	CHECK_SYS(CALL(lsetxattr, "file", "user.b", "two", 4, 0));
	CHECK_SYS(CALL(fsetxattr, fd, "user.c", "drei", 5, 0));
	CHECK_EQ(CALL(getxattr, "link", "user.c", value, sizeof(value)), 5);
	CHECK_STR(value, "drei");
	CHECK_EQ(CALL(lgetxattr, "file", "user.b", value, sizeof(value)), 4);
	CHECK_STR(value, "two");
	CHECK_EQ(CALL(fgetxattr, fd, "user.a", value, sizeof(value)), 4);
	CHECK_STR(value, "one");
	CHECK_LISTED(CALL(listxattr, "file", list, sizeof(list)), "user.a", 1);
	CHECK_LISTED(CALL(llistxattr, "file", list, sizeof(list)), "user.b", 1);
	CHECK_LISTED(CALL(flistxattr, fd, list, sizeof(list)), "user.c", 1);
	CHECK_LISTED(CALL(llistxattr, "link", list, sizeof(list)), "user.a", 0);
	CHECK_SYS(CALL(removexattr, "file", "user.a"));
	CHECK_SYS(CALL(lremovexattr, "file", "user.b"));
	CHECK_SYS(CALL(fremovexattr, fd, "user.c"));
	CHECK_ERRNO(CALL(getxattr, "file", "user.a", value, sizeof(value)), ENODATA);
}

/* The same, by a directory and a name: Linux 6.13. */
static void attributes_at(void)
{
	char value[8] = "", list[512];
	struct {
		uint64_t value;
		uint32_t bytes, flags;
	} args = { (uintptr_t) "one", 4, 0 };

	if (CALL(setxattrat, dir_fd, "file", 0, "user.a", &args, sizeof(args))) {
		CHECK(is_refused(-1));
		return;
	}
	args.value = (uintptr_t)value;
	args.bytes = sizeof(value);
	CHECK_EQ(CALL(getxattrat, dir_fd, "file", 0, "user.a", &args, sizeof(args)), 4);
	CHECK_STR(value, "one");
	CHECK_LISTED(CALL(listxattrat, fd, "", AT_EMPTY_PATH, list, sizeof(list)), "user.a", 1);
	CHECK_SYS(CALL(removexattrat, dir_fd, "file", 0, "user.a"));
	CHECK_LISTED(CALL(listxattrat, fd, "", AT_EMPTY_PATH, list, sizeof(list)), "user.a", 0);
}

/* The flags of chattr, by name: Linux 6.17. */
static void flags(void)
{
	struct {
		uint64_t xflags;
		uint32_t extent, nextents, project, cow;
	} attr = { 0 };

	if (CALL(file_getattr, dir_fd, "file", &attr, sizeof(attr), 0)) {
		CHECK(is_refused(-1) || errno == ENOTTY);
		return;
	}
	attr.xflags |= 0x80; /* nodump: its owner may */
	if (CALL(file_setattr, dir_fd, "file", &attr, sizeof(attr), 0)) {
		CHECK(is_refused(-1) || errno == ENOTTY || errno == EINVAL);
		return;
	}
	attr.xflags = 0;
	CHECK_SYS(CALL(file_getattr, dir_fd, "file", &attr, sizeof(attr), 0));
	CHECK(attr.xflags & 0x80);
	attr.xflags &= ~UINT64_C(0x80);
	CHECK_SYS(CALL(file_setattr, dir_fd, "file", &attr, sizeof(attr), 0));
}

int main(void)
{
	CHECK(mkdtemp(dir) != NULL);
	CHECK_SYS(chdir(dir));
	dir_fd = (int)CHECK_SYS(open(".", O_RDONLY | O_DIRECTORY));
	fd = (int)CHECK_SYS(open("file", O_RDWR | O_CREAT, 0600));
	CHECK_SYS(symlink("file", "link"));

	start_beside();
	calls(modes, "modes");
	calls(mask, "the mask of new files");
	calls(owners, "owners");
	calls(times_of_files, "times");
	calls(lengths, "lengths and offsets");
	calls(file_system, "the file system");
	calls(handles, "handles");
	calls(attributes, "extended attributes");
	calls(attributes_at, "extended attributes, by directory");
	calls(flags, "flags");
	stop_beside();

	CHECK_SYS(unlink("file"));
	CHECK_SYS(unlink("link"));
	CHECK_SYS(rmdir(dir));
	return finish();
}
