// SPDX-License-Identifier: Apache-2.0
/* Files by their names: directories, links, renaming, and what each of the old and the new calls says about them. */
#include "beside.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define BENEATH 8     /* RESOLVE_BENEATH */
#define NO_SYMLINKS 4 /* RESOLVE_NO_SYMLINKS */

static char dir[] = "/tmp/weft-paths-XXXXXX";
static int dir_fd;
static const char *const names[] = { "directory", "file", "link" };

static int mode_of(const char *path)
{
	struct stat st;

	return CALL(lstat, path, &st) ? -1 : (int)st.st_mode;
}

static void make_and_remove(void)
{
	struct stat st;
	char path[64] = "";

	CHECK_SYS(CALL(mkdir, "a", 0700));
	CHECK_SYS(CALL(mkdirat, dir_fd, "a/b", 0750));
	CHECK_ERRNO(CALL(mkdir, "a", 0700), EEXIST);
	CHECK_EQ(mode_of("a/b"), S_IFDIR | 0750);
	CHECK_SYS(close((int)CHECK_SYS(CALL(creat, "a/f", 0640))));
	CHECK_EQ(mode_of("a/f"), S_IFREG | 0640);
	CHECK_SYS(CALL(mknod, "a/fifo", S_IFIFO | 0600, 0));
	CHECK_SYS(CALL(mknodat, dir_fd, "a/node", S_IFREG | 0600, 0));
	CHECK_EQ(mode_of("a/fifo"), S_IFIFO | 0600);
	CHECK_EQ(mode_of("a/node"), S_IFREG | 0600);

	CHECK_SYS(CALL(link, "a/f", "a/g"));
	CHECK_SYS(CALL(linkat, dir_fd, "a/f", dir_fd, "a/h", 0));
	CHECK_SYS(CALL(stat, "a/h", &st));
	CHECK_EQ(st.st_nlink, 3);
	CHECK_SYS(CALL(symlink, "f", "a/s"));
	CHECK_SYS(CALL(symlinkat, "g", dir_fd, "a/t"));
	CHECK_EQ(CALL(readlink, "a/s", path, sizeof(path)), 1);
	CHECK_STR(path, "f");
	CHECK_EQ(CALL(readlinkat, dir_fd, "a/t", path, sizeof(path)), 1);
	CHECK_STR(path, "g");

	CHECK_ERRNO(CALL(rmdir, "a"), ENOTEMPTY);
	CHECK_SYS(CALL(unlink, "a/f"));
	CHECK_SYS(CALL(unlink, "a/s"));
	CHECK_SYS(CALL(unlink, "a/node"));
	CHECK_SYS(CALL(unlinkat, dir_fd, "a/g", 0));
	CHECK_SYS(CALL(unlinkat, dir_fd, "a/h", 0));
	CHECK_SYS(CALL(unlinkat, dir_fd, "a/t", 0));
	CHECK_SYS(CALL(unlinkat, dir_fd, "a/fifo", 0));
	CHECK_ERRNO(CALL(unlinkat, dir_fd, "a/b", 0), EISDIR);
	CHECK_SYS(CALL(unlinkat, dir_fd, "a/b", AT_REMOVEDIR));
	CHECK_SYS(CALL(rmdir, "a"));
	CHECK_EQ(mode_of("a"), -1);
	CHECK_EQ(errno, ENOENT);
}

static void rename_all(void)
{
	CHECK_SYS(CALL(rename, "file", "x"));
	CHECK_SYS(CALL(renameat, dir_fd, "x", dir_fd, "y"));
	CHECK_SYS(CALL(renameat2, dir_fd, "y", dir_fd, "z", 0));
	CHECK_ERRNO(CALL(rename, "y", "file"), ENOENT);
	CHECK_ERRNO(CALL(rename, "z", "directory"), EISDIR);
	if (CALL(renameat2, dir_fd, "z", dir_fd, "directory", RENAME_EXCHANGE)) {
		CHECK_EQ(errno, EINVAL); /* a file system that cannot */
	} else {
		CHECK(S_ISDIR(mode_of("z")));
		CHECK_SYS(CALL(renameat2, dir_fd, "z", dir_fd, "directory", RENAME_EXCHANGE));
	}
	CHECK(S_ISREG(mode_of("z")));
	CHECK_SYS(CALL(rename, "z", "file"));
}

static void check_stat(long ret, const struct stat *st, int mode)
{
	CHECK_EQ(ret, 0);
	CHECK_EQ(st->st_mode, mode);
	if (S_ISREG(mode))
		CHECK_EQ(st->st_size, 10);
}

static void look(void)
{
	struct stat st;
	struct statx stx;
	int fd = (int)CHECK_SYS(open("file", O_RDONLY));

	check_stat(CALL(stat, "file", &st), &st, S_IFREG | 0640);
	check_stat(CALL(stat, "link", &st), &st, S_IFREG | 0640);
	check_stat(CALL(lstat, "link", &st), &st, S_IFLNK | 0777);
	check_stat(CALL(fstat, fd, &st), &st, S_IFREG | 0640);
	check_stat(CALL(newfstatat, dir_fd, "file", &st, 0), &st, S_IFREG | 0640);
	check_stat(CALL(newfstatat, fd, "", &st, AT_EMPTY_PATH), &st, S_IFREG | 0640);
	check_stat(CALL(newfstatat, dir_fd, "link", &st, AT_SYMLINK_NOFOLLOW), &st, S_IFLNK | 0777);
	CHECK_SYS(CALL(statx, dir_fd, "file", 0, STATX_BASIC_STATS, &stx));
	CHECK_EQ(stx.stx_mode, S_IFREG | 0640);
	CHECK_EQ(stx.stx_size, 10);
	CHECK_SYS(CALL(statx, fd, "", AT_EMPTY_PATH, STATX_INO, &stx));
	CHECK_SYS(fstat(fd, &st));
	CHECK_EQ(stx.stx_ino, st.st_ino);

	CHECK_SYS(CALL(access, "file", R_OK | W_OK));
	CHECK_SYS(CALL(faccessat, dir_fd, "link", R_OK));
	CHECK_ERRNO(CALL(access, "file", X_OK), EACCES);
	CHECK_ERRNO(CALL(faccessat, dir_fd, "none", F_OK), ENOENT);
	if (!is_refused(CALL(faccessat2, dir_fd, "file", R_OK, AT_EACCESS)))
		CHECK_ERRNO(CALL(faccessat2, dir_fd, "file", X_OK, AT_EACCESS), EACCES);
	close(fd);
}

/* Both kinds of entries name all files, in parts: each call gives what fits. */
static void list(void)
{
	static const int numbers[] = { SYS_getdents, SYS_getdents64 };

	for (int k = 0; k < 2; k++) {
		char buf[64];
		int fd = (int)CHECK_SYS(open(".", O_RDONLY | O_DIRECTORY)), nr = 0, found = 0;
		long len;

		while ((len = CHECK_SYS(syscall(numbers[k], fd, buf, sizeof(buf)))) > 0) {
			for (char *p = buf; p < buf + len; nr++) {
				uint16_t bytes;
				const char *name = p + (k ? 19 : 18);

				memcpy(&bytes, p + 16, 2);
				for (int i = 0; i < 3; i++)
					found |= (strcmp(name, names[i]) == 0) << i;
				p += bytes;
			}
		}
		CHECK_EQ(found, 7);
		CHECK_EQ(nr, 5); /* with . and .. */
		close(fd);
	}
}

static void go(void)
{
	char at[256] = "";
	int fd = (int)CHECK_SYS(open("directory", O_RDONLY | O_PATH));

	CHECK_SYS(CALL(chdir, "directory"));
	CHECK_EQ(CALL(getcwd, at, sizeof(at)), sizeof(dir) + 10);
	CHECK_STR(at + sizeof(dir), "directory");
	CHECK_ERRNO(CALL(getcwd, at, 3), ERANGE);
	CHECK_SYS(CALL(fchdir, dir_fd));
	CHECK_EQ(CALL(getcwd, at, sizeof(at)), sizeof(dir));
	CHECK_STR(at, dir);
	CHECK_SYS(CALL(fchdir, fd));
	CHECK_SYS(CALL(chdir, ".."));
	close(fd);
}

static void open_inside(void)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = { O_RDONLY | O_CLOEXEC, 0, BENEATH };
	char c;
	long fd = CALL(openat2, dir_fd, "link", &how, sizeof(how));

	if (is_refused(fd))
		return;
	CHECK_EQ(read((int)CHECK_SYS(fd), &c, 1), 1);
	close((int)fd);
	CHECK_ERRNO(CALL(openat2, dir_fd, "../x", &how, sizeof(how)), EXDEV);
	how.resolve = NO_SYMLINKS;
	CHECK_ERRNO(CALL(openat2, dir_fd, "link", &how, sizeof(how)), ELOOP);
	how.flags |= O_CREAT;
	how.mode = 010000;
	CHECK_ERRNO(CALL(openat2, dir_fd, "new", &how, sizeof(how)), EINVAL);
}

int main(void)
{
	int fd;

	umask(0);
	CHECK(mkdtemp(dir) != NULL);
	CHECK_SYS(chdir(dir));
	dir_fd = (int)CHECK_SYS(open(".", O_RDONLY | O_DIRECTORY));
	CHECK_SYS(mkdir("directory", 0700));
	CHECK_SYS(symlink("file", "link"));
	fd = (int)CHECK_SYS(creat("file", 0640));
	CHECK_EQ(write(fd, "0123456789", 10), 10);
	close(fd);

	start_beside();
	calls(make_and_remove, "making, linking and removing");
	calls(rename_all, "renaming");
	calls(look, "stat and access of all kinds");
	calls(list, "entries of a directory");
	calls(go, "the working directory");
	calls(open_inside, "openat2");
	stop_beside();

	CHECK_SYS(unlink("file"));
	CHECK_SYS(unlink("link"));
	CHECK_SYS(rmdir("directory"));
	CHECK_SYS(rmdir(dir));
	return finish();
}
