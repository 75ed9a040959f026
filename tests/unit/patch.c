// SPDX-License-Identifier: Apache-2.0
/*
 * The patcher, on the libc that runs this test.
 *
 * A test that patches runs in a child: a mistake would take the harness down with it.
 */

/*
 * The files under test are part of this one, with an entry of the test's own, as small as it can
 * be: make the system call and go back. Its traces below the red zone do not survive a child
 * on the same stack or on a new one, so clone, clone3 and vfork must not come here.
 */
#define wf_arch_gate_entry test_gate_entry
#define wf_arch_gate_entry_keeping test_gate_entry
#define wf_arch_gate_entry_clock test_gate_entry
#include "gate/fde.c"
#include "gate/known.c"
#include "gate/x86_64/insn.c"
#include "gate/x86_64/plain.c"
#include "gate/x86_64/scan.c"
#include "gate/x86_64/sites.c"
#include "gate/table.c"
#include "gate/x86_64/tramp.c"
#include "gate/say.c"
#include "gate/perfmap.c"
#include "gate/patch.c"

#include "gate.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* All that the entry of this test can answer. */
static bool not_clone(int nr)
{
	return nr != __NR_clone && nr != __NR_vfork && nr != __NR_clone3;
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
	MUST(syscall(__NR_getpid) == getpid());
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

/* The trampolines of a module that was closed serve the next, and say nothing any more. */
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
