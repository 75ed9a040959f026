// SPDX-License-Identifier: Apache-2.0
/*
 * The state that libc and the modules keep of a thread; see fresh.h.
 *
 * Whether destructors of thread-local objects are registered, and whether a key was ever set, libc keeps in a word each, in its
 * own thread-local block and in its structure of the thread. Where they are is no one's business, so a probe thread finds out:
 * it registers a destructor, sets a key, and looks which word has changed. Anything but one leaves us without shells.
 *
 * Modules that the program was started with lie at the same distance from each thread's pointer. Of later ones a thread has a
 * block or not; one that has ends for real.
 */
#include "native/fresh.h"
#include "gate/modules.h"
#include "native/glibc.h"
#include "native/join.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <resolv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef p_type /* of <resolv.h> */

#define MOST_LIBC 4096u  /* bytes of libc's block, and of its structure */
#define MOST_IMAGES 64u  /* modules with thread-local variables */
#define MOST_BYTES 8192u /* of all images: more takes longer than a new thread */

struct image {
	ptrdiff_t at; /* from the thread pointer */
	const char *from;
	size_t bytes, zeroes; /* behind them */
};

/* (c) once is_known is set, by the probe thread */
static struct {
	bool is_known;
	ptrdiff_t destructors; /* a pointer: the list's head */
	ptrdiff_t keys;        /* a byte: one was set */
	size_t nr_images;
	struct image image[MOST_IMAGES];
} known;

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle WF_HIDDEN;

static size_t last_module; /* (c) of those that the program was started with; 0: not known */
static uint32_t
	seen_changes; /* (a) of the loader's lists, when there were no others with thread-local variables */

/* --- modules --- */

static WF_FACE_CODE int find_last(struct dl_phdr_info *info, size_t bytes, void *last)
{
	(void)bytes;
	*(size_t *)last = WF_MAX(*(size_t *)last, info->dlpi_tls_modid);
	return 0;
}

/* Where we are loaded with the program, libc has not been told its environment. */
__attribute__((constructor)) static void note_modules(void)
{
	if (!environ)
		(void)dl_iterate_phdr(find_last, &last_module);
}

static WF_FACE_CODE bool has_address(const struct dl_phdr_info *info, const void *p)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && (uintptr_t)p >= start &&
		    (uintptr_t)p < start + ph->p_memsz)
			return true;
	}
	return false;
}

static WF_FACE_CODE const ElfW(Phdr) * tls_header(const struct dl_phdr_info *info)
{
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			return &info->dlpi_phdr[i];
	return NULL;
}

struct survey {
	const char *low, *tp; /* static blocks lie between */
	const void *loader;   /* an address in it */
	const char *libc_block;
	size_t libc_bytes, bytes;
	bool is_strange;
};

static WF_FACE_CODE int survey_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Phdr) *tls = tls_header(info);
	const char *block = info->dlpi_tls_data;
	struct survey *s = arg;
	bool is_libc = has_address(info, (void *)gnu_get_libc_version);

	(void)size;
	if (!tls || !info->dlpi_tls_modid || info->dlpi_tls_modid > last_module)
		return 0;
	if (block < s->low || block + tls->p_memsz > s->tp) {
		s->is_strange = true;
		return 0;
	}
	if (is_libc) {
		s->libc_block = block;
		s->libc_bytes = tls->p_memsz;
	}
	if (is_libc || has_address(info, s->loader) || has_address(info, &known))
		return 0;
	s->bytes += tls->p_memsz;
	s->is_strange |= known.nr_images == MOST_IMAGES || s->bytes > MOST_BYTES;
	if (!s->is_strange)
		known.image[known.nr_images++] = (struct image){
			.at = block - s->tp,
			.from = (const char *)info->dlpi_addr + tls->p_vaddr,
			.bytes = tls->p_filesz,
			.zeroes = tls->p_memsz - tls->p_filesz,
		};
	return 0;
}

static WF_FACE_CODE int find_later(struct dl_phdr_info *info, size_t bytes, void *arg)
{
	bool *found = arg;

	(void)bytes;
	if (info->dlpi_tls_modid <= last_module)
		return 0;
	found[0] = true;                         /* there is one */
	found[1] |= info->dlpi_tls_data != NULL; /* and the caller has variables of it */
	return 0;
}

static WF_FACE_CODE bool has_later_variables(void)
{
	uint32_t changes = wf_modules_changes();
	bool found[2] = { false, false };

	if (wf_load_relaxed(&seen_changes) == changes + 1)
		return false;
	(void)dl_iterate_phdr(find_later, found);
	if (!found[0])
		wf_store_relaxed(&seen_changes, changes + 1);
	return found[1];
}

/* --- the probe --- */

static WF_FACE_CODE void do_nothing(void *arg)
{
	(void)arg;
}

static WF_FACE_CODE bool register_destructor(void)
{
	static char object;

	return __cxa_thread_atexit_impl(do_nothing, &object, &__dso_handle) == 0;
}

/* The one word that has changed, but for those that `ignored` allows; -1: none, or several. */
static WF_FACE_CODE ptrdiff_t changed_word(const uintptr_t *before, const uintptr_t *after,
					   size_t bytes, const void *value)
{
	ptrdiff_t found = -1;

	for (size_t i = 0; i < bytes / sizeof(*before); i++) {
		if (before[i] == after[i])
			continue;
		/* A key's value, and the number before it which says of which use of the key. */
		if (value && (after[i] == (uintptr_t)value || (i + 1 < bytes / sizeof(*before) &&
							       after[i + 1] == (uintptr_t)value)))
			continue;
		if (found >= 0)
			return -1;
		found = (ptrdiff_t)(i * sizeof(*before));
	}
	return found;
}

/* Twice: the first one may make libc find out something that it keeps. */
static WF_FACE_CODE bool find_destructors(const struct survey *s)
{
	uintptr_t first[MOST_LIBC / 8], second[MOST_LIBC / 8], third[MOST_LIBC / 8];
	ptrdiff_t at;

	memcpy(first, s->libc_block, s->libc_bytes);
	if (!register_destructor())
		return false;
	memcpy(second, s->libc_block, s->libc_bytes);
	if (!register_destructor())
		return false;
	memcpy(third, s->libc_block, s->libc_bytes);
	at = changed_word(second, third, s->libc_bytes, NULL);
	if (at < 0 || first[at / 8] || !second[at / 8])
		return false;
	known.destructors = s->libc_block + at - s->tp;
	return true;
}

static WF_FACE_CODE bool find_keys(const char *tp, size_t bytes)
{
	uintptr_t before[MOST_LIBC / 8], after[MOST_LIBC / 8], change;
	static char value;
	pthread_key_t key;
	ptrdiff_t at;

	if (pthread_key_create(&key, NULL))
		return false;
	memcpy(before, tp, bytes);
	if (pthread_setspecific(key, &value)) {
		(void)pthread_key_delete(key);
		return false;
	}
	memcpy(after, tp, bytes);
	(void)pthread_setspecific(key, NULL);
	(void)pthread_key_delete(key);
	at = changed_word(before, after, bytes, &value);
	if (at < 0)
		return false;
	/* false has become true */
	change = before[at / 8] ^ after[at / 8];
	for (size_t i = 0; i < sizeof(change); i++)
		if (change == (uintptr_t)1 << 8 * i && !(before[at / 8] & 0xfful << 8 * i)) {
			known.keys = at + (ptrdiff_t)i;
			return true;
		}
	return false;
}

/* The mapping of a stack ends behind libc's structure of the thread. */
static WF_FACE_CODE bool find_bounds(struct survey *s, size_t *out_bytes)
{
	pthread_attr_t attr;
	size_t bytes = 0;
	void *low = NULL;

	if (pthread_getattr_np(pthread_self(), &attr))
		return false;
	(void)pthread_attr_getstack(&attr, &low, &bytes);
	(void)pthread_attr_destroy(&attr);
	s->low = low;
	if (s->tp <= s->low || s->tp >= s->low + bytes)
		return false;
	*out_bytes = WF_ALIGN_DOWN((size_t)(s->low + bytes - s->tp), 8ul);
	return *out_bytes <= MOST_LIBC;
}

static WF_FACE_CODE void *probe(void *arg)
{
	struct survey s = { .tp = __builtin_thread_pointer(),
			    .loader = dlsym(RTLD_DEFAULT, "_r_debug") };
	size_t bytes;

	free(malloc(1)); /* what malloc keeps is there then */
	if (!s.loader || !find_bounds(&s, &bytes))
		return arg;
	(void)dl_iterate_phdr(survey_module, &s);
	s.libc_bytes = WF_ALIGN_DOWN(s.libc_bytes, 8ul);
	known.is_known = !s.is_strange && s.libc_block && s.libc_bytes <= MOST_LIBC &&
			 (uintptr_t)s.libc_block % 8 == 0 && find_destructors(&s) &&
			 find_keys(s.tp, bytes);
	return arg;
}

static WF_FACE_CODE void learn(void)
{
	pthread_t t;

	/* Sanitizers know a thread by its beginning and its end. */
	if (!last_module || dlsym(RTLD_DEFAULT, "__tsan_init") ||
	    dlsym(RTLD_DEFAULT, "__asan_init"))
		return;
	if (pthread_create(&t, NULL, probe, NULL) == 0)
		wf_join_surely(t);
}

void wf_fresh_learn(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, learn);
}

/* --- a shell --- */

bool wf_fresh_reset(void)
{
	char *tp = __builtin_thread_pointer();
	int old;

	if (!known.is_known || *(void **)(tp + known.destructors) || tp[known.keys] ||
	    has_later_variables() || _res.options & RES_INIT)
		return false;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	(void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
	pthread_testcancel(); /* one that was asked to end, and did not wait, ends now */
	for (size_t i = 0; i < known.nr_images; i++) {
		const struct image *image = &known.image[i];

		memcpy(tp + image->at, image->from, image->bytes);
		memset(tp + image->at + image->bytes, 0, image->zeroes);
	}
	(void)uselocale(LC_GLOBAL_LOCALE);
	(void)dlerror();
	h_errno = 0;
	errno = 0;
	return true;
}
