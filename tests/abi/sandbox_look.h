// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel threads of a process, seen from outside: what they are, and what each may do. Those that are alike count once.
 *
 * Included by: sandbox_alone.c.
 */
#ifndef WEFT_TESTS_ABI_SANDBOX_LOOK_H
#define WEFT_TESTS_ABI_SANDBOX_LOOK_H

#include "check.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define LINE 512
#define NR_SEEN 64

static char path[] = "/tmp/weft-alone-XXXXXX"; /* of a file that they are to open */

static char seen[NR_SEEN][LINE];
static int nr_seen;

static void note(const char *text)
{
	int at = 0;

	while (at < nr_seen && strcmp(seen[at], text) < 0)
		at++;
	if (!*text || nr_seen == NR_SEEN || (at < nr_seen && !strcmp(seen[at], text)))
		return;
	memmove(seen[at + 1], seen[at], (size_t)(nr_seen - at) * LINE);
	strcpy(seen[at], text);
	nr_seen++;
}

#define NR_KINDS 3
#define LINK 64

/* The namespaces that a task is in. 0, or -1: it has ended. */
static int read_namespaces(pid_t pid, int tid, char links[NR_KINDS][LINK])
{
	static const char *const kinds[NR_KINDS] = { "net", "uts", "ipc" };
	char name[64];

	for (int i = 0; i < NR_KINDS; i++) {
		snprintf(name, sizeof(name), "/proc/%d/task/%d/ns/%s", pid, tid, kinds[i]);
		memset(links[i], 0, LINK);
		if (readlink(name, links[i], LINK - 1) < 0)
			return -1;
	}
	return 0;
}

static void note_namespaces(pid_t pid, int tid)
{
	char links[NR_KINDS][LINK], all[LINE];

	if (read_namespaces(pid, tid, links))
		return;
	snprintf(all, sizeof(all), "%s %s %s", links[0], links[1], links[2]);
	note(all);
}

static void note_status(pid_t pid, int tid)
{
	static const char *const fields[] = {
		"Uid:",    "Gid:",    "Groups:",     "CapInh:",  "CapPrm:",         "CapEff:",
		"CapBnd:", "CapAmb:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"
	};
	char line[LINE], all[LINE] = "", name[64], links[NR_KINDS][LINK], ours[NR_KINDS][LINK];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/status", pid, tid);
	f = fopen(name, "r");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
			if (!strncmp(line, fields[i], strlen(fields[i])) &&
			    strlen(all) + strlen(line) < LINE - LINK)
				strcat(all, line);
	fclose(f);
	for (char *p = all; *p; p++)
		if (*p == '\n' || *p == '\t')
			*p = ' ';
	if (read_namespaces(pid, tid, links) || read_namespaces(getpid(), getpid(), ours))
		return;
	for (int i = 0; i < NR_KINDS; i++)
		strcat(all, strcmp(links[i], ours[i]) ? "elsewhere " : "here ");
	note(all);
}

/* Made at run time, so that weft does not see the instruction: syscall, int3. */
static unsigned char *code;

/* Have the task open a file. It does not go on afterwards. */
static void note_try(pid_t pid, int tid)
{
	struct user_regs_struct regs;
	int status;

	(void)pid;
	if (ptrace(PTRACE_SEIZE, tid, 0, 0) || ptrace(PTRACE_INTERRUPT, tid, 0, 0))
		return; /* it has ended */
	if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return;
	regs.rip = (uintptr_t)code;
	regs.orig_rax = (unsigned long long)-1;
	regs.rax = SYS_openat;
	regs.rdi = (unsigned long long)AT_FDCWD;
	regs.rsi = (uintptr_t)path;
	regs.rdx = O_RDONLY;
	CHECK_SYS(ptrace(PTRACE_SETREGS, tid, 0, &regs));
	CHECK_SYS(ptrace(PTRACE_CONT, tid, 0, 0));
	while (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
	       WSTOPSIG(status) != SIGTRAP)
		CHECK_SYS(ptrace(PTRACE_CONT, tid, 0, WSTOPSIG(status)));
	if (ptrace(PTRACE_GETREGS, tid, 0, &regs))
		return;
	note((long)regs.rax < 0 ? strerror(-(int)regs.rax) : "opened");
}

static void look_once(pid_t pid, void (*one)(pid_t, int))
{
	char name[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	dir = opendir(name);
	nr_seen = 0;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			one(pid, atoi(entry->d_name));
	if (dir)
		closedir(dir);
}

/* Tasks whose threads have been joined are seen for a moment, as they were. */
static void look(pid_t pid, int nr_states)
{
	for (int i = 0; i < 5000; i++) {
		look_once(pid, note_status);
		if (nr_seen == nr_states)
			break;
		sleep_ns(MS);
	}
	for (int i = 0; i < nr_seen; i++)
		dprintf(1, "    %s\n", seen[i]);
}

#endif
