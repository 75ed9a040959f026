// SPDX-License-Identifier: Apache-2.0
/*
 * Finds a program and decides whether it can run under weft.
 *
 * Called by: run.c, report.c. Invariant: whatever would make the dynamic loader ignore the preload, or
 * the preload misunderstand the program, is refused here with a reason; nothing runs unwoven by accident.
 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cmd.h"

#define MAX_SCRIPT_DEPTH 5 /* the kernel's limit, too */

#define GLIBC_LOADER "ld-linux-x86-64.so.2"

__attribute__((format(printf, 4, 5))) static void refuse(struct wf_program *p, int exit_code,
							 const char *advice, const char *what, ...)
{
	va_list args;

	p->exit_code = exit_code;
	snprintf(p->advice, sizeof(p->advice), "%s", advice);
	va_start(args, what);
	vsnprintf(p->what, sizeof(p->what), what, args);
	va_end(args);
}

static int is_runnable_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

int wf_program_find(const char *name, char out_path[PATH_MAX])
{
	const char *dir = getenv("PATH");
	int ret = -ENOENT;

	if (!*name)
		return -ENOENT;
	if (strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (strchr(name, '/')) {
		memcpy(out_path, name, strlen(name) + 1);
		return is_runnable_file(name);
	}
	if (!dir)
		dir = "/bin:/usr/bin"; /* what execvp() of glibc takes */
	for (;;) {
		size_t len = strcspn(dir, ":");
		int written, found;

		/* An empty element is the current directory. */
		written = snprintf(out_path, PATH_MAX, "%.*s%s%s", (int)len, dir, len ? "/" : "./",
				   name);
		if (written < PATH_MAX) {
			found = is_runnable_file(out_path);
			if (found == 0)
				return 0;
			if (found != -ENOENT && found != -ENOTDIR)
				ret = -EACCES;
		}
		if (dir[len] == '\0')
			break;
		dir += len + 1;
	}
	snprintf(out_path, PATH_MAX, "%s", name);
	return ret;
}

static void refuse_unfound(struct wf_program *p, int error, const char *name)
{
	switch (error) {
	case -ENOENT:
	case -ENOTDIR:
		refuse(p, WF_EXIT_NOT_FOUND,
		       strchr(name, '/') ? "check the path" : "check the name and PATH",
		       "there is no such program");
		break;
	case -EISDIR:
		refuse(p, WF_EXIT_NOT_EXECUTABLE, "name a program inside it", "it is a directory");
		break;
	case -EACCES:
		refuse(p, WF_EXIT_NOT_EXECUTABLE,
		       "check the file's permissions and those of its directories",
		       "it is not executable");
		break;
	default:
		refuse(p, WF_EXIT_NOT_EXECUTABLE, "check the path", "%s", strerror(-error));
	}
}

/* As shells decide whether a file without a #! line is a script. */
static bool is_text(const struct wf_binary *b)
{
	return memchr(b->head, '\0', b->head_len) == NULL;
}

/* Takes the interpreter out of a #! line as the kernel does. Returns false where there is none. */
static bool script_interpreter(const struct wf_binary *b, char out_path[PATH_MAX])
{
	char line[sizeof(b->head) + 1];
	char *start;

	memcpy(line, b->head, b->head_len);
	line[b->head_len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	start = line + 2;
	start += strspn(start, " \t");
	start[strcspn(start, " \t")] = '\0';
	/* All of the line that the kernel sees is the name: it was cut, so the kernel refuses it. */
	if (!*start || start + strlen(start) == line + sizeof(b->head))
		return false;
	memcpy(out_path, start, strlen(start) + 1);
	return true;
}

/* The next word of an argument of env's, which -S has taken apart at spaces. */
static const char *next_word(const char **at, char out[PATH_MAX])
{
	size_t len;

	*at += strspn(*at, " \t");
	len = strcspn(*at, " \t");
	if (!len || len >= PATH_MAX)
		return NULL;
	memcpy(out, *at, len);
	out[len] = '\0';
	*at += len;
	return out;
}

/*
 * A script that begins with "#!/usr/bin/env python3" is python's: env only looks it up, and hands the preload on. False:
 * it does something else besides, and is judged itself.
 */
static bool program_of_env(const struct wf_binary *b, const char *interpreter,
			   char out_name[PATH_MAX])
{
	const char *base = strrchr(interpreter, '/');
	char line[sizeof(b->head) + 1], word[PATH_MAX];
	const char *at = line + 2;
	bool is_split = false;

	if (strcmp(base ? base + 1 : interpreter, "env") != 0)
		return false;
	memcpy(line, b->head, b->head_len);
	line[b->head_len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	(void)next_word(&at, word);
	while (next_word(&at, word)) {
		if (strcmp(word, "-S") == 0 && !is_split) {
			is_split = true;
		} else if (!is_split || !strchr(word, '=')) { /* else a variable for it */
			/* Without -S all of the rest is one name. */
			if (*word == '-' || strpbrk(word, "=\"'\\$") ||
			    (!is_split && at[strspn(at, " \t")]))
				return false;
			memcpy(out_name, word, strlen(word) + 1);
			return true;
		}
	}
	return false;
}

/*
 * Set-user-ID bits and file capabilities switch the dynamic loader to its secure mode, and that ignores
 * LD_PRELOAD. Whether they would change anything for the caller of now is not asked: an answer that
 * depends on who asks helps nobody.
 */
static bool check_privileges(struct wf_program *p, int fd)
{
	static const char advice[] = "the dynamic loader ignores LD_PRELOAD for such programs; "
				     "run it without weft, or a copy without the privilege";
	struct stat st;

	if (fstat(fd, &st) < 0)
		return true;
	if (st.st_mode & S_ISUID) {
		refuse(p, WF_EXIT_REFUSED, advice, "it is set-user-ID");
		return false;
	}
	/* Without the group's x bit, S_ISGID never meant set-group-ID. */
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP)) {
		refuse(p, WF_EXIT_REFUSED, advice, "it is set-group-ID");
		return false;
	}
	if (fgetxattr(fd, "security.capability", NULL, 0) > 0) {
		refuse(p, WF_EXIT_REFUSED, advice, "it has file capabilities");
		return false;
	}
	return true;
}

static const char *libc_of_loader(const char *path)
{
	if (strstr(path, "ld-musl"))
		return "musl";
	if (strstr(path, "uClibc") || strstr(path, "ld64-uClibc"))
		return "uClibc";
	if (strstr(path, "/system/bin/linker") || strstr(path, "/linker64"))
		return "Android's bionic";
	return NULL;
}

static void check_interp(struct wf_program *p)
{
	static const char advice[] = "weft knows only the loader and libc of glibc; "
				     "use a build of the program for glibc";
	const char *interp = p->binary.interp;
	const char *base = strrchr(interp, '/') ? strrchr(interp, '/') + 1 : interp;
	const char *libc = libc_of_loader(interp);
	char real[PATH_MAX];

	if (libc) {
		refuse(p, WF_EXIT_REFUSED, advice, "it is linked against %s (%s)", libc, interp);
		return;
	}
	if (strcmp(base, GLIBC_LOADER) != 0) {
		refuse(p, WF_EXIT_REFUSED, advice, "its loader %s is not glibc's", interp);
		return;
	}
	if (!realpath(interp, real)) {
		refuse(p, WF_EXIT_NOT_FOUND, "install the libc that the program was built for",
		       "its loader %s is missing", interp);
		return;
	}
	libc = libc_of_loader(real); /* musl's gcompat answers to glibc's name */
	if (libc)
		refuse(p, WF_EXIT_REFUSED, advice, "its loader %s is %s's", interp, libc);
}

static const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_AARCH64:
		return "AArch64";
	case EM_ARM:
		return "ARM";
	case EM_PPC64:
		return "PowerPC";
	case EM_RISCV:
		return "RISC-V";
	case EM_S390:
		return "s390";
	default:
		return "another machine";
	}
}

static void check_elf(struct wf_program *p)
{
	const struct wf_binary *b = &p->binary;

	if (b->machine == EM_386 || (!b->is_64bit && b->machine == EM_X86_64)) {
		refuse(p, WF_EXIT_REFUSED, "weft runs only 64-bit programs; use a 64-bit build",
		       "it is a 32-bit program%s", b->machine == EM_386 ? "" : " (x32)");
	} else if (!b->is_64bit || !b->is_little_endian || b->machine != EM_X86_64) {
		refuse(p, WF_EXIT_REFUSED, "weft runs only x86-64 programs; use a build for x86-64",
		       "it is for %s (ELF machine %u)", machine_name(b->machine), b->machine);
	} else if (b->type != ET_EXEC && b->type != ET_DYN) {
		refuse(p, WF_EXIT_NOT_EXECUTABLE, "link it first",
		       "it is an ELF file of type %u, not a program", b->type);
	} else if (b->is_go) {
		refuse(p, WF_EXIT_REFUSED,
		       "Go schedules its own threads and makes system calls without libc, so weft "
		       "could add nothing; run it without weft",
		       "it is a Go program");
	} else if (b->has_interp) {
		check_interp(p);
	} else if (b->type == ET_DYN && b->has_dynamic && !(b->flags_1 & DF_1_PIE) &&
		   (!b->soname || strcmp(b->soname, GLIBC_LOADER) != 0)) {
		refuse(p, WF_EXIT_NOT_EXECUTABLE, "name a program that uses it",
		       "it is a shared library, not a program");
	} else if (!b->soname || strcmp(b->soname, GLIBC_LOADER) != 0) {
		/* The loader itself has no loader, and does preload for the program that it is given. */
		refuse(p, WF_EXIT_REFUSED,
		       "a static program has no dynamic loader that could load weft; "
		       "link it dynamically",
		       "it is statically linked");
	}
}

/* Reads path into p->binary. Returns false after a refusal. */
static bool read_target(struct wf_program *p, const char *path)
{
	const char *damage;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int ret;

	if (fd < 0) {
		refuse(p, WF_EXIT_REFUSED, "weft must look at its ELF header; allow reading it",
		       "it cannot be read (%s)", strerror(errno));
		return false;
	}
	snprintf(p->target, sizeof(p->target), "%s", path);
	ret = wf_binary_open(&p->binary, fd, &damage);
	p->is_read = true;
	if (ret == -ENOEXEC)
		refuse(p, WF_EXIT_REFUSED, "the file is truncated or damaged; install it again",
		       "its ELF file is damaged: %s", damage);
	else if (ret < 0)
		refuse(p, WF_EXIT_REFUSED, "weft must look at its ELF header",
		       "it cannot be read (%s)", strerror(-ret));
	return ret == 0;
}

void wf_program_examine(struct wf_program *out_p, const char *name)
{
	char next[PATH_MAX], name_for_env[PATH_MAX];
	bool has_line;
	int ret;

	*out_p = (struct wf_program){ .binary.fd = -1 };
	ret = wf_program_find(name, out_p->path);
	if (ret < 0) {
		refuse_unfound(out_p, ret, name);
		return;
	}
	memcpy(next, out_p->path, sizeof(next));
	for (int depth = 0;; depth++) {
		if (!read_target(out_p, next))
			return;
		if (out_p->binary.is_elf)
			break;
		has_line = out_p->binary.head_len >= 2 && memcmp(out_p->binary.head, "#!", 2) == 0;
		if (!has_line && depth == 0 && is_text(&out_p->binary)) {
			out_p->needs_shell = true;
			memcpy(next, WF_PROGRAM_SHELL, sizeof(WF_PROGRAM_SHELL));
		} else if (!has_line) {
			refuse(out_p, WF_EXIT_NOT_EXECUTABLE,
			       "the kernel could not run it either; give a script a #! line",
			       "%s is neither an ELF program nor a script", depth ? next : "it");
			return;
		} else if (!script_interpreter(&out_p->binary, next)) {
			refuse(out_p, WF_EXIT_NOT_EXECUTABLE, "write the interpreter's path there",
			       "its #! line names no interpreter");
			return;
		}
		if (depth == MAX_SCRIPT_DEPTH) {
			refuse(out_p, WF_EXIT_NOT_EXECUTABLE, "name a program as interpreter",
			       "its interpreters are scripts more than %d deep", MAX_SCRIPT_DEPTH);
			return;
		}
		ret = is_runnable_file(next);
		if (ret == 0 && program_of_env(&out_p->binary, next, name_for_env))
			ret = wf_program_find(name_for_env, next);
		wf_binary_close(&out_p->binary);
		out_p->is_read = false;
		if (ret < 0) {
			refuse(out_p, ret == -ENOENT ? WF_EXIT_NOT_FOUND : WF_EXIT_NOT_EXECUTABLE,
			       "install it or correct the #! line", "its interpreter %s %s", next,
			       ret == -ENOENT ? "is missing" : "is not executable");
			return;
		}
	}
	if (check_privileges(out_p, out_p->binary.fd))
		check_elf(out_p);
}

void wf_program_done(struct wf_program *p)
{
	if (p->is_read)
		wf_binary_close(&p->binary);
	p->is_read = false;
}
