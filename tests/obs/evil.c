// SPDX-License-Identifier: Apache-2.0
/*
 * A process that describes itself to `weft dump` so that it does harm: a library that is preloaded into any program, as
 * anybody can write one. WEFT_EVIL says how; see the cases below.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_layout.h"

#define NR_KTHREADS 32768
#define NR_WORKERS 1024
#define NR_SLOTS (1u << 20)
#define PIECE (2u << 20) /* of the slots, mapped again and again */

static struct wf_inspect_field rows[FAKE_NR];
static struct wf_inspect_value values[FAKE_NR_VALUES];
static struct wf_inspect_root roots[4];
static char runtime[256], table[64], process[64], kthread[256], ring[64], places[2048], thread[512];
static char trace[512];
static uint64_t kthread_list[NR_KTHREADS];
static char workers[NR_WORKERS * 256];

struct wf_inspect weft_inspect __attribute__((visibility("default"))) = {
	.magic = WF_INSPECT_MAGIC,
	.version = WF_INSPECT_VERSION,
	.nr_fields = FAKE_NR,
	.nr_values = FAKE_NR_VALUES,
	.nr_roots = 4,
	.fields = rows,
	.values = values,
	.roots = roots,
};

static void put(void *o, enum fake_field f, uint64_t value)
{
	fake_put(rows, o, f, value);
}

static void build(void)
{
	fake_rows(rows);
	memcpy(values, fake_values, sizeof(fake_values));
	roots[0] = (struct wf_inspect_root){ "wf_runtime", runtime };
	roots[1] = (struct wf_inspect_root){ "wf_thread_table", table };
	roots[2] = (struct wf_inspect_root){ "lx_process", process };
	roots[3] = (struct wf_inspect_root){ "wf_trace", trace };
	put(trace, FAKE_TR_KEEPS, 1);
	put(trace, FAKE_TR_ON, 1);
	put(runtime, FAKE_RT_STARTED, 1);
	put(runtime, FAKE_RT_NR_WORKERS, 1);
	put(runtime, FAKE_RT_WORKERS, (uint64_t)workers);
	put(runtime, FAKE_RT_NR_KTHREADS, 1);
	put(runtime, FAKE_RT_KTHREADS, (uint64_t)kthread_list);
	kthread_list[0] = (uint64_t)kthread;
	put(kthread, FAKE_K_TID, (uint64_t)getpid());
	put(kthread, FAKE_K_CUR, (uint64_t)thread);
	put(kthread, FAKE_K_RING, (uint64_t)ring);
	put(ring, FAKE_RING_NEXT, 1);
	put(ring, FAKE_RING_MASK, FAKE_EVENTS - 1);
	put(ring, FAKE_RING_PLACES, (uint64_t)places);
	put(places, FAKE_E_EVENT, 1);
	put(table, FAKE_TABLE_SLOTS, (uint64_t)thread);
	put(table, FAKE_TABLE_OBJECT_BYTES, rows[FAKE_THREAD].size);
	put(table, FAKE_TABLE_NR_SLOTS, 1);
	put(thread, FAKE_T_TID, 1);
	put(thread, FAKE_T_STATE, 5);
	put(thread, FAKE_T_WAIT_KIND, 2);
}

/* Every name that the description has moves the cursor, colours, and sets the title of the window. */
static void names(void)
{
	for (size_t i = 0; i < FAKE_NR_VALUES; i++) {
		if (strcmp(values[i].set, "const") != 0)
			memcpy(values[i].name, "\033[31mPWN\033]0;pwn\007\302\233", 18);
	}
	memcpy(thread + rows[FAKE_LX_NAME].offset, "t\033[2J\302\233x\342\200\256", 12);
}

static void circle(void)
{
	put(runtime, FAKE_RT_NR_WORKERS, NR_WORKERS);
	put(thread, FAKE_T_NEXT, (uint64_t)thread);
	for (size_t i = 0; i < NR_WORKERS; i++)
		put(workers + i * rows[FAKE_WORKER].size, FAKE_W_INBOX, (uint64_t)thread);
}

/* A million threads, each on the last of as many kernel threads as there can be. */
static void crowd(void)
{
	uint32_t bytes = rows[FAKE_THREAD].size;
	size_t all = (size_t)NR_SLOTS * 512;
	int fd = memfd_create("slots", 0);
	char *slots = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			   0);

	if (bytes > 512 || fd < 0 || ftruncate(fd, PIECE) < 0 || slots == MAP_FAILED)
		_exit(3);
	for (size_t i = 0; i < all; i += PIECE) {
		if (mmap(slots + i, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			_exit(3);
	}
	for (size_t i = 0; i < PIECE; i += 512) {
		memcpy(slots + i, thread, sizeof(thread));
		put(slots + i, FAKE_T_KTHREAD, (uint64_t)kthread);
	}
	for (size_t i = 0; i < NR_KTHREADS; i++)
		kthread_list[i] = (uint64_t)kthread;
	put(runtime, FAKE_RT_NR_KTHREADS, NR_KTHREADS);
	put(table, FAKE_TABLE_SLOTS, (uint64_t)slots);
	put(table, FAKE_TABLE_OBJECT_BYTES, 512);
	put(table, FAKE_TABLE_NR_SLOTS, NR_SLOTS);
}

/* So many files that could be weft's library, each with as many headers as can be. WEFT_EVIL_DIR: where to put one. */
static void mappings(void)
{
	Elf64_Ehdr e = { .e_ident = ELFMAG,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 65535,
			 .e_phoff = sizeof(e) };
	char path[4096];
	int fd;

	e.e_ident[EI_CLASS] = ELFCLASS64;
	snprintf(path, sizeof(path), "%s/libweft-many.so", getenv("WEFT_EVIL_DIR"));
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || pwrite(fd, &e, sizeof(e), 0) < 0 || ftruncate(fd, 4 << 20) < 0)
		_exit(3);
	weft_inspect.magic[0] = 'x';
	for (int i = 0; i < 60000; i++) {
		if (mmap(NULL, 4096, PROT_READ | (i & 1 ? PROT_EXEC : 0), MAP_PRIVATE, fd, 0) ==
		    MAP_FAILED)
			break;
	}
}

/* The threads lie in a file: a core has its name, not its contents. */
static void secret(void)
{
	char path[4096];
	void *file;
	int fd;

	snprintf(path, sizeof(path), "%s/secret", getenv("WEFT_EVIL_DIR"));
	fd = open(path, O_RDONLY);
	file = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd < 0 || file == MAP_FAILED)
		_exit(3);
	put(table, FAKE_TABLE_SLOTS, (uint64_t)file);
}

__attribute__((constructor)) static void be_evil(void)
{
	const char *how = getenv("WEFT_EVIL");

	build();
	if (!how)
		return;
	if (strcmp(how, "running") == 0)
		put(thread, FAKE_T_KTHREAD, (uint64_t)kthread); /* so that its stack is walked */
	else if (strcmp(how, "offset") == 0)
		rows[FAKE_T_TID].offset = 0x7fffff00;
	else if (strcmp(how, "event") == 0)
		rows[FAKE_E_B].offset = 272;
	else if (strcmp(how, "timer") == 0)
		rows[FAKE_TIMER_DEADLINE].offset = 4000;
	else if (strcmp(how, "size") == 0)
		rows[FAKE_THREAD].size = 0xfffffff0;
	else if (strcmp(how, "names") == 0)
		names();
	else if (strcmp(how, "circle") == 0)
		circle();
	else if (strcmp(how, "crowd") == 0)
		crowd();
	else if (strcmp(how, "mappings") == 0)
		mappings();
	else if (strcmp(how, "secret") == 0)
		secret();
}
