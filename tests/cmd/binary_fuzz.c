// SPDX-License-Identifier: Apache-2.0
/*
 * The ELF reader against files that were cut and files with flipped bytes: it may refuse them, but it may
 * not crash, hang or read outside its memory (the sanitizers watch).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "binary.h"
#include "tap.h"

#define MAX_VICTIM_BYTES (4u << 20)

struct victim {
	unsigned char *bytes;
	size_t len;
};

static struct victim load_victim(const char *path)
{
	struct victim v = { .bytes = malloc(MAX_VICTIM_BYTES) };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	while (fd >= 0 && v.bytes && v.len < MAX_VICTIM_BYTES &&
	       (got = read(fd, v.bytes + v.len, MAX_VICTIM_BYTES - v.len)) > 0)
		v.len += (size_t)got;
	if (fd >= 0)
		(void)close(fd);
	return v;
}

static int file_of(const unsigned char *bytes, size_t len)
{
	int fd = memfd_create("victim", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, bytes, len) != (ssize_t)len) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static void touch_name(const char *name, void *data)
{
	*(size_t *)data += strlen(name);
}

static void touch_number(int nr, void *data)
{
	*(size_t *)data += (size_t)nr;
}

/* Reads everything that the reader offers; the sum keeps the compiler from dropping it. */
static int read_all(int fd, size_t *out_sum)
{
	const char *damage = NULL;
	unsigned int traits;
	struct wf_binary b;
	int ret = wf_binary_open(&b, fd, &damage);

	if (ret == -ENOEXEC && !damage)
		ret = -EINVAL; /* a refusal must say what is broken */
	*out_sum = strlen(b.interp) + b.tls_bytes + b.flags;
	if (ret == 0) {
		wf_binary_imports(&b, touch_name, out_sum);
		for (size_t i = 0; i < b.nr_needed; i++)
			*out_sum += strlen(b.needed[i]);
		*out_sum += b.soname ? strlen(b.soname) : 0;
		*out_sum += b.rpath ? strlen(b.rpath) : 0;
		*out_sum += b.runpath ? strlen(b.runpath) : 0;
		*out_sum += (size_t)wf_binary_syscall_pairs(&b, touch_number, out_sum);
		if (wf_binary_traits(&b, &traits) == 0)
			*out_sum += traits;
	}
	wf_binary_close(&b);
	return ret;
}

static bool is_expected(int ret)
{
	return ret == 0 || ret == -ENOEXEC;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t seed_of_run(void)
{
	const char *text = getenv("WEFT_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 20090413;

	tap_note("WEFT_SEED=%llu", (unsigned long long)seed);
	return seed ? seed : 1;
}

TEST(a_whole_file_is_read)
{
	const char *damage;
	struct wf_binary b;
	size_t name_bytes = 0;
	int ret = wf_binary_open(&b, open("/bin/true", O_RDONLY | O_CLOEXEC), &damage);

	CHECK_EQ(ret, 0);
	CHECK(b.is_elf && b.is_64bit && b.has_interp && b.has_dynamic && !b.is_go);
	CHECK(b.nr_needed >= 1);
	wf_binary_imports(&b, touch_name, &name_bytes);
	CHECK(name_bytes > 100);
	wf_binary_close(&b);
	wf_binary_close(&b); /* twice is allowed */
}

TEST(a_cut_file_is_refused_or_read)
{
	struct victim v = load_victim("/bin/true");
	size_t sum, step;

	CHECK(v.len > 4096);
	for (size_t len = 0; len < v.len; len += step) {
		step = len < 2048 ? 1 : 61; /* all of the headers, then a prime */
		if (!CHECK(is_expected(read_all(file_of(v.bytes, len), &sum))))
			break;
	}
	free(v.bytes);
}

TEST(a_cut_segment_is_refused)
{
	struct victim v = load_victim("/bin/true");
	size_t sum;

	CHECK_EQ(read_all(file_of(v.bytes, v.len / 2), &sum), -ENOEXEC);
	free(v.bytes);
}

/* Flips bytes in places [0, bound) of the file, many times over. */
static void flip_below(size_t bound, int rounds, uint64_t *state)
{
	struct victim v = load_victim("/bin/true");
	unsigned char *copy = malloc(v.len);
	size_t sum;

	if (bound == 0 || bound > v.len)
		bound = v.len;
	for (int i = 0; copy && i < rounds; i++) {
		int nr = 1 + (int)(next_random(state) % 8);

		memcpy(copy, v.bytes, v.len);
		while (nr--) {
			uint64_t r = next_random(state);

			/* Extreme bytes find more than random ones. */
			copy[r % bound] = (r >> 40) % 3 == 0   ? 0xff
					  : (r >> 40) % 3 == 1 ? 0
							       : (unsigned char)(r >> 48);
		}
		if (!CHECK(is_expected(read_all(file_of(copy, v.len), &sum))))
			break;
	}
	free(copy);
	free(v.bytes);
}

TEST(flipped_headers_do_no_harm)
{
	uint64_t state = seed_of_run();

	flip_below(64 + 13 * 56, 4000, &state);
}

TEST(flipped_bytes_anywhere_do_no_harm)
{
	uint64_t state = seed_of_run();

	flip_below(0, 1000, &state);
}

/* The dynamic section holds most of the offsets that the reader follows. */
TEST(flipped_dynamic_sections_do_no_harm)
{
	struct victim v = load_victim("/bin/true");
	uint64_t state = seed_of_run();
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)v.bytes;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(v.bytes + e->e_phoff);
	unsigned char *copy = malloc(v.len);
	size_t sum, at = 0, len = 0;

	for (int i = 0; i < e->e_phnum; i++) {
		if (p[i].p_type == PT_DYNAMIC) {
			at = p[i].p_offset;
			len = p[i].p_filesz;
		}
	}
	CHECK(len > 0);
	for (int i = 0; copy && len && i < 2000; i++) {
		memcpy(copy, v.bytes, v.len);
		for (int k = 0; k < 3; k++) {
			uint64_t r = next_random(&state);

			copy[at + r % len] = (unsigned char)(r >> 48);
		}
		if (!CHECK(is_expected(read_all(file_of(copy, v.len), &sum))))
			break;
	}
	free(copy);
	free(v.bytes);
}
