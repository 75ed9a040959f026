// SPDX-License-Identifier: Apache-2.0
/*
 * Files that hold the value of a knob.
 *
 * Called by: the files of this folder. Invariant: below a root nothing is opened that lies outside it, whatever links a
 * copy of a machine holds: a link there names a file of that machine, not of this one.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tune/tune.h"

#define CPUS_MAX 8192

/* The root is a name, not a pattern. */
static void quote(char **at, const char *text)
{
	for (; *text; text++) {
		if (strchr("*?[]\\", *text))
			*(*at)++ = '\\';
		*(*at)++ = *text;
	}
}

/* The places found are the cards. False: no memory. */
static bool add_to_each(glob_t *found, const char *name)
{
	for (size_t i = 0; i < found->gl_pathc; i++) {
		char *longer = realloc(found->gl_pathv[i],
				       strlen(found->gl_pathv[i]) + strlen(name) + 1);

		if (!longer)
			return false;
		found->gl_pathv[i] = strcat(longer, name);
	}
	return true;
}

void wf_places_find(const struct wf_machine *m, const struct wf_knob *k, const char *name,
		    struct wf_places *out)
{
	char *pattern, *at, value[WF_TUNE_VALUE];
	const char *star = k->places ? strchr(k->places, '*') : NULL;

	*out = (struct wf_places){ .root_length = strlen(m->root) };
	if (!k->places || (*name && !star))
		return;
	at = pattern = malloc(2 * out->root_length + strlen(k->places) + strlen(name) + 1);
	if (!pattern)
		return;
	quote(&at, m->root);
	if (*name)
		sprintf(at, "%.*s%s%s", (int)(star - k->places), k->places, name, star + 1);
	else
		strcpy(at, k->places);
	at = k->card_get && wf_machine_is_live(m) ? strrchr(pattern, '/') : NULL;
	if (at)
		*at = '\0';
	if (glob(pattern, 0, NULL, &out->found) == 0 && at &&
	    !add_to_each(&out->found, strrchr(k->places, '/')))
		out->found.gl_pathc = 0;
	free(pattern);
	for (size_t i = 0; i < out->found.gl_pathc; i++) {
		char *path = out->found.gl_pathv[i];

		if ((k->accepts && !k->accepts(m, path + out->root_length)) ||
		    (at && wf_card_read(k, path, value) == -EOPNOTSUPP))
			continue;
		out->found.gl_pathv[i] = out->found.gl_pathv[out->nr];
		out->found.gl_pathv[out->nr++] = path;
	}
}

void wf_places_release(struct wf_places *p)
{
	globfree(&p->found);
}

const char *wf_places_get(const struct wf_places *p, size_t i)
{
	return i < p->nr ? p->found.gl_pathv[i] + p->root_length : NULL;
}

int wf_place_open(const struct wf_machine *m, const char *path, int flags)
{
	struct open_how how = { .flags = (unsigned int)(flags | O_CLOEXEC | O_NOCTTY),
				.resolve = RESOLVE_IN_ROOT };
	int root, fd, error;

	if (wf_machine_is_live(m)) {
		fd = open(path, (int)how.flags);
		if (fd < 0)
			return -errno;
		if (m->visit)
			m->visit(path, NULL, m->data);
		return fd;
	}
	root = open(m->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	error = errno;
	(void)close(root);
	return fd < 0 ? -error : fd;
}

static void make_one_line(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (!isspace((unsigned char)*from))
			*to++ = *from;
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	}
	if (to > text && to[-1] == ' ')
		to--;
	*to = '\0';
}

int wf_place_text(const struct wf_machine *m, const char *path, char *out, size_t bytes)
{
	int fd = wf_place_open(m, path, O_RDONLY | O_NONBLOCK), error = 0;
	size_t len = 0;
	ssize_t got;

	if (fd < 0)
		return fd;
	while (len < bytes - 1) {
		got = read(fd, out + len, bytes - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			error = got < 0 ? errno : 0;
			break;
		}
		len += (size_t)got;
	}
	(void)close(fd);
	out[len] = '\0';
	make_one_line(out);
	return -error;
}

/* "always [madvise] never": the one in brackets, or all of it where there are none. */
static void take_chosen(char *text)
{
	char *from = strpbrk(text, "[(");
	size_t len = from ? strcspn(from + 1, "])") : 0;

	if (!from)
		return;
	memmove(text, from + 1, len);
	text[len] = '\0';
}

/* The bytes that hold the bit, the lowest first. */
static int read_bytes(int fd, const struct wf_knob *k, unsigned char bytes[8])
{
	ssize_t got = pread(fd, bytes, k->width, k->offset);

	return got < 0 ? -errno : got < (ssize_t)k->width ? -ENODATA : 0;
}

static int read_bit(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		    char out[WF_TUNE_VALUE])
{
	int fd = wf_place_open(m, path, O_RDONLY | O_NONBLOCK), ret;
	unsigned char bytes[8];

	if (fd < 0)
		return fd;
	ret = read_bytes(fd, k, bytes);
	(void)close(fd);
	if (ret == 0)
		strcpy(out, bytes[k->bit / 8] >> k->bit % 8 & 1 ? "1" : "0");
	return ret;
}

/* The other bits stay as they are. */
static int write_bit(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		     const char *value)
{
	int fd = wf_place_open(m, path, O_RDWR), ret;
	unsigned char bytes[8], mask = (unsigned char)(1 << k->bit % 8);
	ssize_t done;

	if (fd < 0)
		return fd;
	ret = read_bytes(fd, k, bytes);
	if (ret == 0) {
		bytes[k->bit / 8] &= (unsigned char)~mask;
		bytes[k->bit / 8] |= *value == '1' ? mask : 0;
		done = pwrite(fd, bytes, k->width, k->offset);
		ret = done < 0 ? -errno : done < (ssize_t)k->width ? -EIO : 0;
	}
	(void)close(fd);
	return ret;
}

int wf_place_read(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		  char out[WF_TUNE_VALUE])
{
	char text[4096];
	int ret;

	if (k->width)
		return read_bit(m, k, path, out);
	if (k->card_get && wf_machine_is_live(m)) {
		ret = wf_card_read(k, path, out);
		if (ret == 0 && m->visit)
			m->visit(path, out, m->data);
		return ret;
	}
	ret = wf_place_text(m, path, text, sizeof(text));
	if (ret < 0)
		return ret;
	if (k->form == WF_KNOB_WORD)
		take_chosen(text);
	if (strlen(text) >= WF_TUNE_VALUE)
		return -EMSGSIZE;
	if (!*text)
		return -ENODATA;
	strcpy(out, text);
	return 0;
}

int wf_place_write(const struct wf_machine *m, const struct wf_knob *k, const char *path,
		   const char *value)
{
	char line[WF_TUNE_VALUE + 1];
	int fd, ret = 0;
	size_t len = (size_t)snprintf(line, sizeof(line), "%s\n", value);
	struct stat st;
	ssize_t done;

	if (k->width)
		return write_bit(m, k, path, value);
	if (k->card_get && wf_machine_is_live(m))
		return wf_card_write(k, path, value);
	fd = wf_place_open(m, path, O_WRONLY);
	if (fd < 0)
		return fd;
	done = write(fd, line, len);
	if (done < 0)
		ret = -errno;
	else if ((size_t)done != len)
		ret = -EIO;
	/* A copy is made of ordinary files, which keep what was behind. */
	else if (!wf_machine_is_live(m) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		 ftruncate(fd, (off_t)len) < 0)
		ret = -errno;
	if (close(fd) < 0 && ret == 0)
		ret = -errno;
	return ret;
}

bool wf_place_numbers(const char *text, unsigned int nr, long long out[WF_TUNE_NUMBERS])
{
	char *end;

	for (unsigned int i = 0; i < nr; i++) {
		errno = 0;
		out[i] = strtoll(text, &end, 10);
		if (errno || end == text || (*end && *end != ' '))
			return false;
		text = end + strspn(end, " ");
	}
	return !*text;
}

/* False: it is no list of CPUs. */
static bool take_cpus(const char *text, unsigned char out[CPUS_MAX])
{
	memset(out, 0, CPUS_MAX);
	for (;;) {
		char *end;
		unsigned long first, last;

		if (!isdigit((unsigned char)*text))
			return false;
		first = last = strtoul(text, &end, 10);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return false;
			last = strtoul(end + 1, &end, 10);
		}
		if (last < first || last >= CPUS_MAX)
			return false;
		memset(out + first, 1, last - first + 1);
		if (!*end)
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static void plain_mask(const char *text, char out[WF_TUNE_VALUE])
{
	size_t len = 0;

	for (; *text; text++) {
		if (*text != ',' && (len || *text != '0'))
			out[len++] = (char)tolower((unsigned char)*text);
	}
	out[len] = '\0';
}

bool wf_place_is_same(const struct wf_knob *k, const char *a, const char *b)
{
	static unsigned char cpus_a[CPUS_MAX], cpus_b[CPUS_MAX]; /* static for their size */
	char mask_a[WF_TUNE_VALUE], mask_b[WF_TUNE_VALUE];
	long long x[WF_TUNE_NUMBERS], y[WF_TUNE_NUMBERS];

	if (strcmp(a, b) == 0)
		return true;
	switch (k->form) {
	case WF_KNOB_NUMBER:
		if (!wf_place_numbers(a, k->nr_numbers, x) ||
		    !wf_place_numbers(b, k->nr_numbers, y))
			return false;
		return memcmp(x, y, k->nr_numbers * sizeof(x[0])) == 0;
	case WF_KNOB_MASK:
		plain_mask(a, mask_a);
		plain_mask(b, mask_b);
		return strcmp(mask_a, mask_b) == 0;
	case WF_KNOB_LIST:
		if (take_cpus(a, cpus_a) && take_cpus(b, cpus_b))
			return memcmp(cpus_a, cpus_b, CPUS_MAX) == 0;
		break;
	default:
		break;
	}
	return false;
}

static void complain_of_number(const struct wf_knob *k, const char *value, char *out, size_t bytes)
{
	long long x[WF_TUNE_NUMBERS];
	bool is_good = !value[strspn(value, "-0123456789 ")] &&
		       wf_place_numbers(value, k->nr_numbers, x);

	for (unsigned int i = 0; is_good && i < k->nr_numbers; i++)
		is_good = x[i] >= k->min && x[i] <= k->max && (i == 0 || x[i] >= x[i - 1]);
	if (is_good)
		return;
	if (k->nr_numbers == 1)
		snprintf(out, bytes, "takes a number from %lld to %lld", k->min, k->max);
	else
		snprintf(out, bytes, "takes %u numbers from %lld to %lld in rising order",
			 k->nr_numbers, k->min, k->max);
}

static bool has_word(char *list, const char *word)
{
	for (char *at = strtok(list, " []()"); at; at = strtok(NULL, " []()")) {
		if (strcmp(at, word) == 0)
			return true;
	}
	return false;
}

/* The words that the machine itself lists. */
static void complain_of_word(const struct wf_machine *m, const struct wf_item *item, char *out,
			     size_t bytes)
{
	char path[512], text[1024] = "", list[1024];
	struct wf_places places;
	const char *place;

	wf_places_find(m, item->knob, item->name, &places);
	for (size_t i = 0; !*out && (place = wf_places_get(&places, i)); i++) {
		int dir = (int)(strrchr(place, '/') - place) + 1;

		if (item->knob->choices)
			snprintf(path, sizeof(path), "%.*s%s", dir, place, item->knob->choices);
		else
			snprintf(path, sizeof(path), "%s", place);
		if (wf_place_text(m, path, text, sizeof(text)) < 0)
			text[0] = '\0';
		strcpy(list, text);
		if (!has_word(list, item->value))
			snprintf(out, bytes, "takes one of: %s",
				 *text ? text : "(nothing is offered)");
	}
	wf_places_release(&places);
}

void wf_place_complaint(const struct wf_machine *m, const struct wf_item *item, char *out,
			size_t bytes)
{
	static unsigned char cpus[CPUS_MAX]; /* static for its size */
	const char *value = item->value;

	out[0] = '\0';
	switch (item->knob->form) {
	case WF_KNOB_NUMBER:
		complain_of_number(item->knob, value, out, bytes);
		break;
	case WF_KNOB_WORD:
		complain_of_word(m, item, out, bytes);
		break;
	case WF_KNOB_MASK:
		if (!*value || value[strspn(value, "0123456789abcdefABCDEF,")])
			snprintf(out, bytes, "takes a mask of CPUs in hexadecimal, such as f");
		break;
	case WF_KNOB_LIST:
		if (!take_cpus(value, cpus))
			snprintf(out, bytes, "takes a list of CPUs, such as 0-3,8");
		break;
	case WF_KNOB_ADVICE:
		if (!*value || strpbrk(value, " \"'"))
			snprintf(out, bytes, "takes one word");
		break;
	}
}
