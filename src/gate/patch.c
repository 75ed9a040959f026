// SPDX-License-Identifier: Apache-2.0
/*
 * The jumps to the trampolines: see patch.h.
 *
 * The order of things makes failing safe. The pool goes through writable and back to executable
 * first, so that whatever forbids that (PR_SET_MDWE, seccomp, SELinux) does so before the module's
 * text is touched. A page of the module's own file goes through it next, because SELinux judges by
 * file. Only then the text itself does.
 *
 * The text of libc is not executable while it is written: that stretch, poke(), calls nothing else and
 * has all signals blocked.
 *
 * Considered and dropped: RWX for a moment (systems that care forbid it); one mprotect per page (66
 * calls instead of 2); /proc/self/mem (gets around what an administrator has forbidden).
 */
#include "gate/patch.h"

#include "base/base.h"
#include "base/san.h"
#include "gate/jump.h"
#include "gate/known.h"
#include "gate/perfmap.h"
#include "gate/table.h"
#include "gate/tramp.h"
#include "sys/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

extern char wf_gate_pool_start[] WF_HIDDEN;
extern char wf_gate_pool_end[] WF_HIDDEN;

/* --- the module's text --- */

/* No file but the kernel's own pages. */
static bool is_vdso(const struct dl_phdr_info *module)
{
	static const char name[] = "linux-vdso";
	const char *p = module->dlpi_name ? module->dlpi_name : "";

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		if (p[i] != name[i])
			return false;
	return true;
}

/*
 * Would text of the module's file become executable again? Tried on a page of it that nobody uses.
 */
static long rehearse(const struct dl_phdr_info *module, const ElfW(Phdr) * text)
{
	const char *name = module->dlpi_name && *module->dlpi_name ? module->dlpi_name
								   : "/proc/self/exe";
	/* Not waiting: another file, a FIFO too, may have taken the name. */
	long fd = is_vdso(module)
			  ? -ENOENT
			  : sys4(__NR_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	long offset = (long)WF_ALIGN_DOWN(text->p_offset, WF_PAGE);
	long at;
	long ret;

	if (sys_failed(fd))
		return 0; /* no file to ask: the pool has answered for all */
	at = sys6(__NR_mmap, 0, WF_PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, offset);
	(void)sys1(__NR_close, fd);
	if (sys_failed(at))
		return 0;
	ret = sys_protect((uintptr_t)at, (uintptr_t)at + WF_PAGE, PROT_READ | PROT_WRITE);
	if (!sys_failed(ret)) {
		*(volatile uint8_t *)at = WF_JUMP_TRAP;
		ret = sys_protect((uintptr_t)at, (uintptr_t)at + WF_PAGE, PROT_READ | PROT_EXEC);
	}
	(void)sys2(__NR_munmap, at, WF_PAGE);
	return sys_failed(ret);
}

static WF_NORETURN void die_without_libc(void)
{
	static const char text[] =
		"weft: the system took back the permission to execute patched text\n";

	(void)sys3(__NR_write, 2, text, sizeof(text) - 1);
	for (;;)
		(void)sys1(__NR_exit_group, 127);
}

/*
 * Write the jumps at sites [0, nr), which lie in [start, end). Calls nothing: libc may be what is
 * being written, and a sanitizer has no shadow for text.
 */
static WF_SAN_PLAIN long poke(const struct wf_site *sites, size_t nr, uintptr_t start,
			      uintptr_t end)
{
	uint64_t all = ~0ull;
	uint64_t mask;
	long ret;

	(void)sys_sigprocmask(SIG_SETMASK, &all, &mask);
	ret = sys3(__NR_mprotect, start, end - start, PROT_READ | PROT_WRITE);
	if ((unsigned long)ret <= -4096ul) {
		for (size_t i = 0; i < nr; i++) {
			const struct wf_site *s = &sites[i];

			wf_jump_write(s->window, s->window_len, s->tramp);
		}
		ret = sys3(__NR_mprotect, start, end - start, PROT_READ | PROT_EXEC);
		if ((unsigned long)ret > -4096ul)
			die_without_libc();
	}
	(void)sys_sigprocmask(SIG_SETMASK, &mask, NULL);
	return ret;
}

/*
 * All of its pages change their protection at once, or none: the kernel does not split them. It maps the whole image,
 * which may go on behind the text: its section headers come last.
 */
static uintptr_t vdso_end(uintptr_t start, size_t text_bytes)
{
	const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)start;
	size_t bytes = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;

	return WF_ALIGN_UP(start + WF_MAX(bytes, text_bytes), WF_PAGE);
}

/* The number of sites from first on that lie in the same segment, and that segment. */
static size_t same_segment(const struct dl_phdr_info *module, const struct wf_site *first,
			   size_t nr, const ElfW(Phdr) * *out_text)
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];
		uintptr_t start = module->dlpi_addr + ph->p_vaddr;
		size_t n = 0;

		if (ph->p_type != PT_LOAD)
			continue;
		while (n < nr && first[n].window - start < ph->p_filesz)
			n++;
		if (n) {
			*out_text = ph;
			return n;
		}
	}
	return 0;
}

static uintptr_t text_start(const struct wf_site *sites)
{
	return WF_ALIGN_DOWN(sites[0].window, WF_PAGE);
}

static uintptr_t text_end(const struct wf_site *sites, size_t nr)
{
	return WF_ALIGN_UP(sites[nr - 1].window + sites[nr - 1].window_len, WF_PAGE);
}

/* All segments are rehearsed before the first is written. */
static long write_jumps(const struct dl_phdr_info *module, const struct wf_site_list *list)
{
	const ElfW(Phdr) * text;
	size_t n;
	long ret = 0;

	for (size_t i = 0; i < list->nr; i += n) {
		n = same_segment(module, list->sites + i, list->nr - i, &text);
		if (!n)
			return -EINVAL;
		ret = rehearse(module, text);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < list->nr; i += n) {
		const struct wf_site *sites = list->sites + i;
		uintptr_t start = text_start(sites), end;

		n = same_segment(module, sites, list->nr - i, &text);
		end = text_end(sites, n);
		if (is_vdso(module)) {
			start = module->dlpi_addr + text->p_vaddr;
			end = vdso_end(start, text->p_memsz);
		}
		ret = poke(sites, n, start, end);
		if (sys_failed(ret) && i == 0)
			return ret;
		/*
		 * Half a module would be in force: nothing known does this between two segments of
		 * one file.
		 */
		if (sys_failed(ret))
			die_without_libc();
	}
	return 0;
}

/* --- a module --- */

static bool is_our_own(const struct dl_phdr_info *module)
{
	for (size_t i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &module->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD &&
		    (uintptr_t)wf_gate_pool_start - (module->dlpi_addr + ph->p_vaddr) < ph->p_memsz)
			return true;
	}
	return false;
}

/* Trampolines where those of a module were that is gone. */
static long patch_again(const struct dl_phdr_info *module, struct wf_site_list *list,
			struct wf_batch *b)
{
	const struct wf_pool pool = { b->pool, b->pool_hi,
				      b->pool - (uintptr_t)wf_gate_pool_start <
					      (size_t)(wf_gate_pool_end - wf_gate_pool_start) };
	long ret = wf_pool_fill(&pool, list);

	if (ret)
		return ret;
	wf_table_fill(b, list);
	ret = write_jumps(module, list);
	if (ret == 0)
		wf_table_publish(b);
	return ret;
}

static long patch(const struct dl_phdr_info *module, struct wf_site_list *list)
{
	uintptr_t lo = list->sites[0].window - WF_PAGE;
	uintptr_t hi = list->sites[list->nr - 1].window + WF_PAGE;
	size_t bytes = wf_pool_bytes(list);
	struct wf_batch *b = wf_table_reuse(list->nr, bytes, lo, hi);
	struct wf_pool pool;
	long ret;

	if (b)
		return patch_again(module, list, b);
	if (!wf_pool_find(lo, hi, bytes, &pool))
		return -ENOMEM;
	ret = wf_pool_fill(&pool, list);
	if (ret)
		goto out_pool;
	ret = -ENOMEM;
	b = wf_table_new(list->nr, pool.start, pool.end);
	if (!b)
		goto out_pool;
	wf_table_fill(b, list);
	ret = write_jumps(module, list);
	if (ret)
		goto out_batch;
	wf_pool_keep(&pool);
	wf_table_publish(b);
	wf_perfmap_note(pool.start, pool.start + bytes, module->dlpi_name);
	return 0;
out_batch:
	wf_table_drop(b);
out_pool:
	wf_pool_drop(&pool);
	return ret;
}

int wf_gate_patch_module(const struct dl_phdr_info *module, const struct wf_scan_wish *wish,
			 struct wf_gate_counts *out_counts)
{
	struct wf_site_list list;
	int ret = 0;

	*out_counts = (struct wf_gate_counts){ .found = 0 };
	if (is_our_own(module))
		return -EINVAL;
	if (!wish->known || !wf_known_find(wish->known, module, wish, out_counts, &list))
		ret = wf_sites_find(module, wish, out_counts, &list);
	if (ret != 0 || list.nr == 0)
		return ret;
	list.entry = wish->entry;
	ret = (int)patch(module, &list);
	if (ret == 0)
		out_counts->patched = (unsigned int)list.nr;
	else
		out_counts->left = out_counts->wanted;
	wf_sites_free(&list);
	return ret;
}

int wf_gate_redirect(uintptr_t function, uintptr_t to)
{
	const struct wf_site site = { .window = function,
				      .tramp = to,
				      .window_len = WF_JUMP_BYTES };

	if (!wf_gate_reaches(function, function + WF_JUMP_BYTES, to, to + 1))
		return -ERANGE;
	return (int)sys_failed(poke(&site, 1, text_start(&site), text_end(&site, 1)));
}
