// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that change a machine, by threads of a process that has one of its own: names of the host, mounts by the old and the
 * new calls, another root. Nothing is seen outside.
 */
#include "beside.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#endif
#ifndef SYS_listmount
#define SYS_listmount 458
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif
#define CLONE_OF_TREE 1 /* OPEN_TREE_CLONE */
#define EMPTY_SOURCE 4  /* MOVE_MOUNT_F_EMPTY_PATH */
#define SET_FLAG 0      /* FSCONFIG_* */
#define SET_STRING 1
#define CREATE 6
#define RECONFIGURE 7
#define READ_ONLY 1      /* MOUNT_ATTR_RDONLY */
#define UNIQUE_ID 0x4000 /* STATX_MNT_ID_UNIQUE */
#define SUPER_BLOCK 1    /* STATMOUNT_SB_BASIC */
#define TMPFS 0x01021994
#define EVERY_MOUNT (~UINT64_C(0)) /* LSMT_ROOT */

static char dir[] = "/tmp/weft-mounts-XXXXXX";

struct mount_attributes {
	uint64_t set, clear, propagation, user_ns;
};

static int may_create(const char *path)
{
	int fd = (int)CALL(open, path, O_CREAT | O_WRONLY, 0600);

	if (fd == -1) {
		CHECK_EQ(errno, EROFS);
		return 0;
	}
	close(fd);
	return 1;
}

static void host_names(void)
{
	struct utsname name;

	CHECK_SYS(CALL(sethostname, "weft-host", 9L));
	CHECK_SYS(CALL(setdomainname, "weft-domain", 11L));
	CHECK_SYS(uname(&name));
	CHECK_STR(name.nodename, "weft-host");
	CHECK_STR(name.domainname, "weft-domain");
	CHECK_ERRNO(CALL(sethostname, name.nodename, 100L), EINVAL);
}

static void old_calls(void)
{
	struct statfs fs;
	int fd;

	CHECK_SYS(CALL(mount, "weft", "mnt", "tmpfs", 0L, "size=64k"));
	CHECK_SYS(statfs("mnt", &fs));
	CHECK_EQ(fs.f_type, TMPFS);
	fd = (int)CHECK_SYS(open("mnt/file", O_CREAT | O_RDWR, 0600));
	CHECK_EQ(write(fd, "x", 1), 1);
	CHECK_SYS(CALL(syncfs, fd));
	CHECK_ERRNO(CALL(umount2, "mnt", 0), EBUSY);
	CHECK_SYS(CALL(mount, NULL, "mnt", NULL, (long)MS_REMOUNT, "size=128k"));
	close(fd);
	CHECK_SYS(CALL(umount2, "mnt", UMOUNT_NOFOLLOW));
	CHECK_ERRNO(CALL(umount2, "mnt", 0), EINVAL);
}

static void described(void)
{
	struct {
		uint32_t size, spare;
		uint64_t id, param;
	} ask = { sizeof(ask), 0, 0, SUPER_BLOCK };
	struct statx stx = { 0 };
	uint64_t ids[64] = { 0 }, about[128] = { 0 };
	int is_there = 0;
	long nr;

	CHECK_SYS(CALL(mount, "weft", "mnt", "tmpfs", 0L, "size=64k"));
	CHECK_SYS(CALL(statx, AT_FDCWD, "mnt", 0, UNIQUE_ID, &stx));
	ask.id = ((uint64_t *)&stx)[18]; /* stx_mnt_id */
	if (stx.stx_mask & UNIQUE_ID &&
	    !is_refused(CALL(statmount, &ask, about, sizeof(about), 0))) {
		CHECK_EQ(about[3], TMPFS);
		ask.id = EVERY_MOUNT;
		ask.param = 0;
		do {
			nr = CHECK_SYS(CALL(listmount, &ask, ids, 64L, 0));
			for (long i = 0; i < nr; i++)
				is_there |= ids[i] == ((uint64_t *)&stx)[18];
			if (nr > 0)
				ask.param = ids[nr - 1];
		} while (nr == 64);
		CHECK(is_there);
	}
	CHECK_SYS(CALL(umount2, "mnt", 0));
}

static void trees(void)
{
	struct mount_attributes attr = { .set = READ_ONLY };
	int fd;

	CHECK_SYS(CALL(mount, "weft", "mnt", "tmpfs", 0L, "size=64k"));
	CHECK(may_create("mnt/file"));
	fd = (int)CALL(open_tree, AT_FDCWD, "mnt", CLONE_OF_TREE | O_CLOEXEC);
	if (!is_refused(fd)) {
		CHECK_SYS(CALL(move_mount, fd, "", AT_FDCWD, "other", EMPTY_SOURCE));
		close(fd);
		CHECK_SYS(access("other/file", R_OK));
		if (!is_refused(CALL(mount_setattr, AT_FDCWD, "other", 0, &attr, sizeof(attr)))) {
			CHECK(!may_create("other/new"));
			CHECK(may_create("mnt/new"));
		}
		CHECK_SYS(CALL(umount2, "other", MNT_DETACH));
	}
	fd = (int)CALL(open_tree_attr, AT_FDCWD, "mnt", CLONE_OF_TREE, &attr, sizeof(attr));
	if (!is_refused(fd)) {
		CHECK_SYS(CALL(move_mount, fd, "", AT_FDCWD, "other", EMPTY_SOURCE));
		close(fd);
		CHECK(!may_create("other/newer"));
		CHECK_SYS(CALL(umount2, "other", MNT_DETACH));
	}
	CHECK_SYS(CALL(umount2, "mnt", 0));
}

static void made_in_steps(void)
{
	int fs = (int)CALL(fsopen, "tmpfs", 1), fd;

	if (is_refused(fs))
		return;
	CHECK_SYS(CALL(fsconfig, fs, SET_STRING, "size", "64k", 0));
	CHECK_ERRNO(CALL(fsconfig, fs, SET_STRING, "colour", "red", 0), EINVAL);
	CHECK_SYS(CALL(fsconfig, fs, CREATE, NULL, NULL, 0));
	fd = (int)CHECK_SYS(CALL(fsmount, fs, 1, 0));
	close(fs);
	CHECK_SYS(CALL(move_mount, fd, "", AT_FDCWD, "other", EMPTY_SOURCE));
	close(fd);
	CHECK(may_create("other/file"));
	fs = (int)CHECK_SYS(CALL(fspick, AT_FDCWD, "other", 1));
	CHECK_SYS(CALL(fsconfig, fs, SET_FLAG, "ro", NULL, 0));
	CHECK_SYS(CALL(fsconfig, fs, RECONFIGURE, NULL, NULL, 0));
	close(fs);
	CHECK(!may_create("other/new"));
	CHECK_SYS(CALL(umount2, "other", 0));
}

static void *sees_the_root(void *arg)
{
	CHECK_SYS(access("/in", F_OK));
	CHECK_ERRNO(access("/tmp", F_OK), ENOENT);
	return arg;
}

/* The last step needs no file system: nothing of the old one is left. */
static void *takes_another_root(void *arg)
{
	CHECK_SYS(CALL(mount, "weft", "mnt", "tmpfs", 0L, "size=64k"));
	CHECK_SYS(chdir("mnt"));
	CHECK_SYS(mkdir("old", 0700));
	CHECK_SYS(mkdir("in", 0700));
	CHECK_SYS(mkdir("in/in", 0700));
	if (CALL(pivot_root, ".", "old") == 0) {
		CHECK_SYS(chdir("/"));
		CHECK_SYS(access("/old/tmp", F_OK));
		CHECK_SYS(CALL(umount2, "/old", MNT_DETACH));
	} else {
		CHECK_EQ(errno, EINVAL); /* from the first file system of all, none can go */
		CHECK_SYS(CALL(chroot, "."));
	}
	CHECK_ERRNO(access("/old/tmp", F_OK), ENOENT);
	sees_the_root(NULL);
	join(start(sees_the_root, NULL));
	CHECK_SYS(CALL(chroot, "in"));
	CHECK_ERRNO(access("/old", F_OK), ENOENT);
	join(start(sees_the_root, NULL));
	return arg;
}

static void another_root(void)
{
	pid_t child = (pid_t)CHECK_SYS(fork());

	if (child == 0) {
		CHECK_SYS(unshare(CLONE_NEWNS));
		join(start(takes_another_root, NULL));
		_exit(finish());
	}
	reap(child);
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), is_good = fd >= 0 && write(fd, text, strlen(text)) > 0;

	close(fd);
	return is_good;
}

static int has_own_machine(void)
{
	char uids[32], gids[32];

	if (unshare(CLONE_NEWNS | CLONE_NEWUTS) == -1) {
		snprintf(uids, sizeof(uids), "0 %d 1", (int)geteuid());
		snprintf(gids, sizeof(gids), "0 %d 1", (int)getegid());
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWUTS) == -1 ||
		    !write_file("/proc/self/setgroups", "deny") ||
		    !write_file("/proc/self/uid_map", uids) ||
		    !write_file("/proc/self/gid_map", gids))
			return 0;
	}
	/* In a chroot there is no mount to begin with, and what is mounted might be seen outside. */
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

int main(void)
{
	if (!has_own_machine())
		return EXIT_SKIP;
	CHECK(mkdtemp(dir) != NULL);
	CHECK_SYS(chdir(dir));
	CHECK_SYS(mkdir("mnt", 0700));
	CHECK_SYS(mkdir("other", 0700));
	if (mount("weft", "mnt", "tmpfs", 0, "size=64k") == 0) {
		CHECK_SYS(umount("mnt"));
		start_beside();
		calls(host_names, "names of the host");
		calls(old_calls, "mounted in one step");
		calls(described, "mounts described");
		calls(trees, "trees of mounts");
		calls(made_in_steps, "mounted in many steps");
		calls(another_root, "another root");
		stop_beside();
	}
	CHECK_SYS(rmdir("mnt"));
	CHECK_SYS(rmdir("other"));
	CHECK_SYS(rmdir(dir));
	return finish();
}
