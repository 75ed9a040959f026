// SPDX-License-Identifier: Apache-2.0
/*
 * The site finder and the patcher, on the libc that runs this test and on any files named in
 * WEFT_TEST_MODULES (separated by colons), which are mapped but never run.
 *
 * What patches runs in a child: a mistake would take the harness down with it.
 */

/*
 * The files under test are part of this one, with an entry of the test's own, as small as it can
 * be: make the system call and go back. What it leaves below the red zone does not survive a child
 * on the same stack or on a new one, so clone, clone3 and vfork must not come here.
 */
#define wf_arch_gate_entry test_gate_entry
#include "gate/fde.c"
#include "gate/insn.c"
#include "gate/scan.c"
#include "gate/sites.c"
#include "gate/table.c"
#include "gate/tramp.c"
#include "gate/patch.c"

#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif
#define MDWE_REFUSE_EXEC_GAIN 1

static uint64_t gate_calls __attribute__((used));

__asm__(".text\n"
	".balign 4096\n"
	".globl wf_gate_pool_start, wf_gate_pool_end, test_gate_entry\n"
	".hidden wf_gate_pool_start, wf_gate_pool_end, test_gate_entry\n"
	"wf_gate_pool_start: .fill 131072, 1, 0xcc\n"
	"wf_gate_pool_end:\n"
	"test_gate_entry:\n"
	"	lock incq gate_calls(%rip)\n"
	"	pushq %rcx\n"
	"	syscall\n"
	"	popq %rcx\n"
	"	leaq 128(%rsp), %rsp\n"
	"	jmp *%rcx\n");

static bool every(int nr)
{
	(void)nr;
	return true;
}

/* All that the entry of this test can answer. */
static bool not_clone(int nr)
{
	return nr != 56 && nr != 58 && nr != 435;
}

/* About what a thread runtime wants: futexes, signals, threads and what may block. */
static bool blocking(int nr)
{
	static const uint64_t low = 0x7ull << 0 | 1ull << 3 | 1ull << 7 | 7ull << 13 | 1ull << 17 |
				    1ull << 18 | 3ull << 19 | 1ull << 23 | 1ull << 24 | 3ull << 34 |
				    0x1full << 39 | 0xfull << 43 | 0x7ull << 56 | 0xfull << 59;

	if (nr < 64)
		return low >> nr & 1;
	switch (nr) {
	case 72 ... 75:
	case 127 ... 131:
	case 186:
	case 200:
	case 202 ... 204:
	case 218:
	case 230 ... 234:
	case 247:
	case 257:
	case 270 ... 271:
	case 273:
	case 281 ... 299:
	case 307:
	case 327 ... 328:
	case 435:
		return true;
	default:
		return false;
	}
}

static int take_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/libc.so.6"))
		return 0;
	*(struct dl_phdr_info *)arg = *info;
	return 1;
}

static struct dl_phdr_info libc_module(void)
{
	struct dl_phdr_info info = { .dlpi_name = NULL };

	dl_iterate_phdr(take_libc, &info);
	return info;
}

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Run a function in a child: its exit status, or 128 + the signal. */
static int in_child(int (*run)(void))
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(run());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Load a shared object as bytes at the right distances, without running or relocating anything. */
static bool map_file(const char *path, struct dl_phdr_info *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const uint8_t *file;
	const ElfW(Ehdr) * eh;
	const ElfW(Phdr) * ph;
	size_t span = 0;
	uint8_t *base;

	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return false;
	eh = (const void *)file;
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	ph = (const void *)(file + eh->e_phoff);
	for (size_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > span)
			span = ph[i].p_vaddr + ph[i].p_memsz;
	base = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (base == MAP_FAILED)
		return false;
	for (size_t i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_LOAD)
			memcpy(base + ph[i].p_vaddr, file + ph[i].p_offset, ph[i].p_filesz);
	*out = (struct dl_phdr_info){ .dlpi_addr = (uintptr_t)base,
				      .dlpi_name = path,
				      .dlpi_phdr = ph,
				      .dlpi_phnum = eh->e_phnum };
	return true;
}

/* --- the decoder against another one --- */

#if __has_include(<capstone/capstone.h>)
#include <capstone/capstone.h>

/* Opened at run time: this is the only test that wants it. */
struct capstone {
	cs_err (*open)(cs_arch, cs_mode, csh *);
	bool (*disasm_iter)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *);
	cs_insn *(*malloc)(csh);
	void (*free)(cs_insn *, size_t);
	cs_err (*close)(csh *);
	csh handle;
	cs_insn *insn;
};

static bool open_capstone(struct capstone *c)
{
	void *lib = dlopen("libcapstone.so.4", RTLD_NOW);

	if (!lib)
		return false;
	c->open = (cs_err(*)(cs_arch, cs_mode, csh *))dlsym(lib, "cs_open");
	c->disasm_iter = (bool (*)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *))dlsym(
		lib, "cs_disasm_iter");
	c->malloc = (cs_insn * (*)(csh)) dlsym(lib, "cs_malloc");
	c->free = (void (*)(cs_insn *, size_t))dlsym(lib, "cs_free");
	c->close = (cs_err(*)(csh *))dlsym(lib, "cs_close");
	if (!c->open || !c->disasm_iter || !c->malloc || !c->free || !c->close ||
	    c->open(CS_ARCH_X86, CS_MODE_64, &c->handle) != CS_ERR_OK)
		return false;
	c->insn = c->malloc(c->handle);
	return c->insn != NULL;
}

struct verdict {
	size_t nr;
	size_t nr_of_other_length;
	size_t nr_refused;
};

static void compare_function(struct capstone *c, const uint8_t *p, const uint8_t *end,
			     struct verdict *v)
{
	while (p < end) {
		const uint8_t *code = p;
		size_t left = (size_t)(end - p);
		uint64_t address = 0;
		struct wf_insn insn;
		int len = wf_insn_decode(p, end, &insn);

		if (!c->disasm_iter(c->handle, &code, &left, &address, c->insn))
			break;
		v->nr++;
		if (len == 0 && v->nr_refused++ < 10)
			tap_note("refused: %s %s", c->insn->mnemonic, c->insn->op_str);
		if (len != 0 && len != c->insn->size && v->nr_of_other_length++ < 10)
			tap_note("%02x %02x %02x %02x %02x: %d, capstone %d %s %s", p[0], p[1],
				 p[2], p[3], p[4], len, c->insn->size, c->insn->mnemonic,
				 c->insn->op_str);
		p = code;
	}
}

static void compare_module(struct capstone *c, const struct dl_phdr_info *m, struct verdict *v)
{
	for (size_t i = 0; i < m->dlpi_phnum; i++) {
		const uint8_t *hdr = (const uint8_t *)(m->dlpi_addr + m->dlpi_phdr[i].p_vaddr);
		const int32_t *table = (const int32_t *)(hdr + 12);

		if (m->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME)
			continue;
		for (uint32_t f = 0; f + 1 < ((const uint32_t *)hdr)[2]; f++)
			compare_function(c, hdr + table[2 * f], hdr + table[2 * f + 2], v);
	}
}

TEST(lengths_agree_with_capstone_on_all_of_libc)
{
	struct dl_phdr_info m = libc_module();
	struct verdict v = { 0 };
	struct capstone c;
	double start;

	if (!open_capstone(&c))
		SKIP("no libcapstone");
	start = now_ms();
	compare_module(&c, &m, &v);
	tap_note("%zu instructions in %.1f ms, refused %zu, of other length %zu", v.nr,
		 now_ms() - start, v.nr_refused, v.nr_of_other_length);
	c.free(c.insn, 1);
	c.close(&c.handle);
	CHECK(v.nr > 200000);
	CHECK_EQ(v.nr_of_other_length, 0);
	CHECK(v.nr_refused < v.nr / 1000);
}
#endif

/* --- the finder --- */

static void report(const char *name, const struct dl_phdr_info *m, bool (*wanted)(int nr),
		   const char *what)
{
	const struct wf_scan_wish wish = { .wanted = wanted };
	struct wf_gate_counts c;
	struct wf_site_list list;
	double best = 1e9;

	for (int round = 0; round < 5; round++) {
		double start = now_ms();

		if (!CHECK_EQ(wf_sites_find(m, &wish, &c, &list), 0))
			return;
		best = now_ms() - start < best ? now_ms() - start : best;
		wf_sites_free(&list);
	}
	tap_note("%s, %s: found %u (unknown number %u), wanted %u, left %u, doubtful %u, %.2f ms",
		 name, what, c.found, c.unknown, c.wanted, c.left, c.doubtful, best);
}

/* Bytes with many of the interesting ones, at every distance from the end. */
TEST(bytes_are_found_as_one_by_one)
{
	static const uint8_t choice[] = { 0x0f, 0x05, 0x80, 0x8f, 0xe9, 0x90, 0x00, 0xff };
	uint8_t code[300];
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(code); i++) {
		random = random * 1664525u + 1013904223u;
		code[i] = choice[random >> 24 & 7];
	}
	for (size_t start = 0; start < 70; start++) {
		for (size_t end = start; end <= sizeof(code); end++) {
			const uint8_t *p = code + start;

			while (p + 1 < code + end && !(p[0] == 0x0f && p[1] == 0x05))
				p++;
			if (p + 1 >= code + end)
				p = code + end;
			if (!CHECK(wf_arch_find_syscall(code + start, code + end) == p))
				return;
		}
	}
	for (size_t start = 0; start < 70; start++) {
		uint64_t masks[3];

		wf_arch_mark_jumps(code + start, 3, masks);
		for (size_t i = 0; i < 192; i++) {
			const uint8_t *p = code + start + i;
			bool is_jump = *p == 0xe9 || (*p == 0x0f && (p[1] & 0xf0) == 0x80);

			if (!CHECK_EQ(masks[i / 64] >> (i % 64) & 1, is_jump))
				return;
		}
	}
}

TEST(every_site_of_libc_has_a_window)
{
	struct dl_phdr_info m = libc_module();
	struct wf_gate_counts c;
	struct wf_site_list list;

	report("libc", &m, blocking, "blocking");
	report("libc", &m, every, "all");
	if (!CHECK_EQ(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = every }, &c, &list), 0))
		return;
	CHECK(c.found > 300);
	CHECK_EQ(c.left, 0);
	CHECK_EQ(c.doubtful, 0);
	CHECK_EQ(list.nr, c.wanted);
	for (size_t i = 0; i < list.nr; i++) {
		const struct wf_site *s = &list.sites[i];

		CHECK(memcmp((const void *)s->addr, "\x0f\x05", 2) == 0);
		CHECK(s->window <= s->addr && s->addr + 2 <= s->window + s->window_len);
		CHECK(s->window_len >= JMP_LEN);
		CHECK(i == 0 ||
		      list.sites[i - 1].window + list.sites[i - 1].window_len <= s->window);
		CHECK(s->nr != 15);
	}
	wf_sites_free(&list);
}

TEST(modules_given_by_name_are_scanned)
{
	char *names = getenv("WEFT_TEST_MODULES");
	char *save = NULL;

	if (!names)
		SKIP("WEFT_TEST_MODULES names no files");
	names = strdup(names);
	for (char *path = strtok_r(names, ":", &save); path; path = strtok_r(NULL, ":", &save)) {
		struct dl_phdr_info m;

		if (!CHECK(map_file(path, &m)))
			continue;
		report(path, &m, blocking, "blocking");
		report(path, &m, every, "all");
	}
	free(names);
}

/* --- the patcher --- */

static int patch_libc(bool (*wanted)(int nr), struct wf_gate_counts *out)
{
	const struct wf_scan_wish wish = { .wanted = wanted };
	struct dl_phdr_info m = libc_module();

	return wf_gate_patch_module(&m, &wish, out);
}

static int compare_ints(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *add_one(void *arg)
{
	usleep(1000);
	++*(int *)arg;
	return NULL;
}

#define MUST(expr)                                                                                 \
	do {                                                                                       \
		if (!(expr)) {                                                                     \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #expr);                       \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int uses_of_libc(void)
{
	struct addrinfo *found = NULL;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char line[64] = "";
	int numbers[1000];
	int one = 0;
	pthread_t thread;
	FILE *f;

	MUST(printf("# printf from patched libc\n") > 0 && fflush(stdout) == 0);
	MUST(getpid() > 1 && getppid() > 1);
	f = popen("echo hello | tr a-z A-Z", "r");
	MUST(f && fgets(line, sizeof(line), f) && strcmp(line, "HELLO\n") == 0);
	MUST(pclose(f) == 0);
	MUST(system("exit 3") == 3 << 8);
	MUST(getaddrinfo("localhost", "80", &hints, &found) == 0 && found);
	freeaddrinfo(found);
	for (int i = 0; i < 1000; i++)
		numbers[i] = (i * 7919) % 1000;
	qsort(numbers, 1000, sizeof(numbers[0]), compare_ints);
	MUST(numbers[0] == 0 && numbers[999] == 999);
	f = fopen("/proc/self/cmdline", "r");
	MUST(f && fread(line, 1, sizeof(line), f) > 0 && fclose(f) == 0);
	MUST(open("/nonexistent", O_RDONLY) == -1 && errno == ENOENT);
	MUST(syscall(39) == getpid());
	MUST(pthread_create(&thread, NULL, add_one, &one) == 0 && pthread_join(thread, NULL) == 0 &&
	     one == 1);
	return 0;
}

static int patched_libc_works(void)
{
	struct wf_gate_counts c;
	double start = now_ms();
	double end;

	MUST(patch_libc(not_clone, &c) == 0);
	end = now_ms();
	printf("# patched %u of %u wanted in %.2f ms\n", c.patched, c.wanted, end - start);
	MUST(c.patched == c.wanted && c.left == 0);
	MUST(uses_of_libc() == 0);
	MUST(gate_calls > 10);
	return 0;
}

TEST(a_libc_with_all_sites_patched_works)
{
	CHECK_EQ(in_child(patched_libc_works), 0);
}

static int nr_maps_writable_and_executable(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int nr = 0;

	while (f && fgets(line, sizeof(line), f)) {
		char prot[8] = "";

		if (sscanf(line, "%*s %7s", prot) == 1 && strchr(prot, 'w') && strchr(prot, 'x'))
			nr++;
	}
	if (f)
		fclose(f);
	return f ? nr : -1;
}

static int patch_and_count_maps(void)
{
	struct wf_gate_counts c;

	MUST(patch_libc(not_clone, &c) == 0 && c.patched > 0);
	return nr_maps_writable_and_executable();
}

TEST(no_page_is_writable_and_executable)
{
	CHECK_EQ(in_child(patch_and_count_maps), 0);
}

/* What a module leaves behind when it is closed serves the next, and says nothing any more. */
static int the_room_of_a_module_that_is_gone(void)
{
	struct dl_phdr_info m = libc_module();
	struct wf_gate_counts c;
	struct wf_site_list list;
	struct wf_batch *b;

	MUST(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = not_clone }, &c, &list) == 0);
	MUST(patch_libc(not_clone, &c) == 0);
	MUST(wf_table_reuse(1, WF_PAGE, m.dlpi_addr, m.dlpi_addr + 1) == NULL);
	MUST(wf_gate_to_tramp(list.sites[3].addr) != list.sites[3].addr);
	wf_gate_forget(m.dlpi_addr, m.dlpi_addr + (64 << 20));
	MUST(wf_gate_to_tramp(list.sites[3].addr) == list.sites[3].addr);
	b = wf_table_reuse(list.nr, WF_PAGE, m.dlpi_addr, m.dlpi_addr + 1);
	MUST(b != NULL && b->is_gone && wf_gate_in_pool(b->pool));
	MUST(wf_table_reuse(100000, WF_PAGE, m.dlpi_addr, m.dlpi_addr + 1) == NULL);
	return 0;
}

TEST(what_a_closed_module_leaves_serves_the_next)
{
	CHECK_EQ(in_child(the_room_of_a_module_that_is_gone), 0);
}

static int patch_under_mdwe(void)
{
	struct dl_phdr_info m = libc_module();
	struct wf_gate_counts c;
	uint64_t before = gate_calls;
	struct wf_site_list list;

	MUST(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = not_clone }, &c, &list) == 0);
	if (prctl(PR_SET_MDWE, MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0)
		return 77;
	MUST(patch_libc(not_clone, &c) < 0);
	MUST(c.patched == 0 && c.left == c.wanted && c.wanted > 0);
	for (size_t i = 0; i < list.nr; i++)
		MUST(*(const uint8_t *)list.sites[i].addr == 0x0f);
	MUST(wf_gate_to_tramp(list.sites[0].window) == list.sites[0].window);
	MUST(uses_of_libc() == 0);
	MUST(gate_calls == before);
	return 0;
}

TEST(where_patching_is_refused_everything_stays_native)
{
	int ret = in_child(patch_under_mdwe);

	if (ret == 77)
		SKIP("kernel without PR_SET_MDWE");
	CHECK_EQ(ret, 0);
}

/* The instructions in [from, to) start at the same distances in both places. */
static bool is_same_shape(uintptr_t from, uintptr_t copy, size_t len)
{
	struct wf_insn a;
	struct wf_insn b;

	for (size_t i = 0; i < len; i += a.len) {
		const uint8_t *p = (const uint8_t *)from + i;
		const uint8_t *q = (const uint8_t *)copy + i;

		if (!wf_insn_decode(p, p + 15, &a) || !wf_insn_decode(q, q + 15, &b) ||
		    a.len != b.len)
			return false;
	}
	return true;
}

static int addresses_map_both_ways(void)
{
	struct dl_phdr_info m = libc_module();
	struct wf_gate_counts c;
	struct wf_site_list list;
	uint8_t saved[WF_SITE_WINDOW_MAX * 600];
	struct wf_insn insn;

	MUST(wf_sites_find(&m, &(struct wf_scan_wish){ .wanted = not_clone }, &c, &list) == 0 &&
	     list.nr <= 600);
	for (size_t i = 0; i < list.nr; i++)
		memcpy(saved + i * WF_SITE_WINDOW_MAX, (const void *)list.sites[i].window,
		       WF_SITE_WINDOW_MAX);
	MUST(patch_libc(not_clone, &c) == 0 && c.patched == list.nr);
	for (size_t i = 0; i < list.nr; i++) {
		const struct wf_site *s = &list.sites[i];
		uintptr_t original = (uintptr_t)(saved + i * WF_SITE_WINDOW_MAX);
		uintptr_t entry = wf_gate_to_tramp(s->addr);
		uintptr_t resume = wf_gate_to_tramp(s->addr + 2);
		size_t nr_pre = s->addr - s->window;
		size_t nr_post = s->window_len - nr_pre - 2;

		/* A resume address at the very end of the window is outside of it. */
		if (nr_post == 0)
			resume = entry + 24;
		MUST(wf_gate_in_pool(entry) && !wf_gate_in_pool(s->addr));
		MUST(wf_gate_from_tramp(entry) == s->addr);
		MUST(wf_gate_from_tramp(resume) == s->addr + 2);
		MUST(resume == entry + 24);
		for (size_t k = 1; k < 24; k++)
			MUST(wf_gate_from_tramp(entry + k) == 0);
		for (size_t k = 0; k < nr_pre; k++)
			MUST(wf_gate_from_tramp(wf_gate_to_tramp(s->window + k)) == s->window + k);
		for (size_t k = 0; k < nr_post; k++)
			MUST(wf_gate_from_tramp(wf_gate_to_tramp(s->addr + 2 + k)) ==
			     s->addr + 2 + k);
		MUST(wf_gate_from_tramp(resume + nr_post) == s->window + s->window_len);
		MUST(wf_gate_to_tramp(s->window + s->window_len) == s->window + s->window_len ||
		     list.sites[i + 1].window == s->window + s->window_len);
		MUST(wf_gate_to_tramp(s->window - 1) == s->window - 1 || i > 0);
		MUST(is_same_shape(original, entry - nr_pre, nr_pre));
		MUST(is_same_shape(original + nr_pre + 2, resume, nr_post));
		MUST(wf_insn_decode((const uint8_t *)s->window, (const uint8_t *)s->window + 15,
				    &insn) == 5);
		MUST((insn.flags & WF_INSN_JUMP) &&
		     s->window + 5 + (uintptr_t)(intptr_t)insn.rel == entry - nr_pre);
	}
	MUST(wf_gate_from_tramp((uintptr_t)&list) == (uintptr_t)&list);
	wf_gate_forget(list.sites[0].addr, list.sites[0].addr + 1);
	MUST(wf_gate_to_tramp(list.sites[0].addr) == list.sites[0].addr);
	return 0;
}

TEST(addresses_map_to_the_trampoline_and_back)
{
	CHECK_EQ(in_child(addresses_map_both_ways), 0);
}
