// SPDX-License-Identifier: Apache-2.0
/* Reasons of waiting in words; see wait.h. */
#include "target/wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "calls.h"
#include "text.h"

#define SIG_UNBLOCKABLE (1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1))
#define MAX_SOCKETS 200000u
#define NR_MUTEXES 512u
#define MAX_SINCE_S 3.2e9 /* a century: what is longer is a torn read */

struct wait_socket {
	unsigned long inode;
	char text[160];
};

/* A mutex that was looked at: thousands may wait for the same. */
struct wait_mutex {
	uint64_t address; /* 0: none */
	const struct wf_dump_thread *owner;
};

struct wf_waits {
	const struct wf_target *target;
	const struct wf_threads *threads;
	const struct wf_layout *layout;
	struct wf_unwind *unwind;
	struct wait_socket *sockets; /* by inode */
	size_t nr_sockets;
	bool has_sockets;
	uint64_t factor; /* odd, and unknown to the target */
	size_t mask;
	uint32_t *by_tid, *by_child_tid,
		*by_joined; /* open tables of places in threads, plus one; 0: empty */
	struct wait_mutex mutexes[NR_MUTEXES];
};

static uint64_t tid_key(const struct wf_dump_thread *d)
{
	return (uint64_t)d->tid;
}

static uint64_t child_tid_key(const struct wf_dump_thread *d)
{
	return d->child_tid;
}

static uint64_t joined_key(const struct wf_dump_thread *d)
{
	return d->joined;
}

/* With a factor that the target does not know, it cannot choose keys that fall into one place. */
static size_t place_of(const struct wf_waits *w, uint64_t value)
{
	return (size_t)((value * w->factor) >> 32) & w->mask;
}

/* Of threads with the same key the first counts, so a key that all have costs no more than another. */
static uint32_t *index_by(const struct wf_waits *w, uint64_t (*key)(const struct wf_dump_thread *))
{
	const struct wf_threads *s = w->threads;
	uint32_t *index = calloc(w->mask + 1, sizeof(*index));

	for (size_t i = 0; index && i < s->nr_threads; i++) {
		uint64_t value = key(&s->threads[i]);
		size_t at = place_of(w, value);

		while (value && index[at] && key(&s->threads[index[at] - 1]) != value)
			at = (at + 1) & w->mask;
		if (value && !index[at])
			index[at] = (uint32_t)i + 1;
	}
	return index;
}

static const struct wf_dump_thread *find(const struct wf_waits *w, const uint32_t *index,
					 uint64_t (*key)(const struct wf_dump_thread *),
					 uint64_t value)
{
	for (size_t at = place_of(w, value); value && index[at]; at = (at + 1) & w->mask) {
		const struct wf_dump_thread *d = &w->threads->threads[index[at] - 1];

		if (key(d) == value)
			return d;
	}
	return NULL;
}

struct wf_waits *wf_waits_new(const struct wf_target *t, const struct wf_threads *s,
			      const struct wf_layout *l, struct wf_unwind *u)
{
	struct wf_waits *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	*w = (struct wf_waits){ .target = t, .threads = s, .layout = l, .unwind = u, .mask = 15 };
	while (w->mask < 2 * s->nr_threads)
		w->mask = 2 * w->mask + 1;
	memcpy(&w->factor, (const void *)getauxval(AT_RANDOM), sizeof(w->factor));
	w->factor |= 1;
	w->by_tid = index_by(w, tid_key);
	w->by_child_tid = index_by(w, child_tid_key);
	w->by_joined = index_by(w, joined_key);
	if (!w->by_tid || !w->by_child_tid || !w->by_joined) {
		wf_waits_free(w);
		return NULL;
	}
	return w;
}

void wf_waits_free(struct wf_waits *w)
{
	if (!w)
		return;
	free(w->sockets);
	free(w->by_tid);
	free(w->by_child_tid);
	free(w->by_joined);
	free(w);
}

const char *wf_waits_call_name(long nr)
{
	for (size_t i = 0; i < wf_calls_nr_system; i++) {
		if (wf_calls_system[i].nr == nr)
			return wf_calls_system[i].name;
	}
	return NULL;
}

static int by_inode(const void *a, const void *b)
{
	const struct wait_socket *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

static void add_socket(struct wf_waits *w, unsigned long inode, const char *text)
{
	struct wait_socket *s;

	if (!inode || w->nr_sockets == MAX_SOCKETS)
		return;
	if ((w->nr_sockets & (w->nr_sockets - 1)) == 0) {
		size_t room = w->nr_sockets ? w->nr_sockets * 2 : 1;
		void *p = realloc(w->sockets, room * sizeof(*w->sockets));

		if (!p)
			return;
		w->sockets = p;
	}
	s = &w->sockets[w->nr_sockets++];
	s->inode = inode;
	snprintf(s->text, sizeof(s->text), "%s", text);
}

/* "0100007F:1F90", 32-bit groups in the machine's byte order. */
static void address_text(const char *hex, char *out, size_t bytes)
{
	unsigned int group[4] = { 0 }, port = 0;
	size_t len = strcspn(hex, ":");
	char text[INET6_ADDRSTRLEN] = "?";
	unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (size_t i = 0; i < 4 && i * 8 < len; i++)
		(void)sscanf(hex + i * 8, "%8x", &group[i]);
	if (hex[len] == ':')
		(void)sscanf(hex + len + 1, "%x", &port);
	if (len == 8)
		(void)inet_ntop(AF_INET, group, text, sizeof(text));
	else if (memcmp(group, mapped, sizeof(mapped)) == 0)
		(void)inet_ntop(AF_INET, &group[3], text, sizeof(text));
	else
		(void)inet_ntop(AF_INET6, group, text, sizeof(text));
	snprintf(out, bytes, strchr(text, ':') ? "[%s]:%u" : "%s:%u", text, port);
}

static void read_inet(struct wf_waits *w, const char *name)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", w->target->pid, name);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char local[64], remote[64], here[80], there[80], text[160];
		unsigned int state;
		unsigned long inode;

		if (sscanf(line, " %*u: %63s %63s %x %*s %*s %*s %*u %*d %lu", local, remote,
			   &state, &inode) != 4)
			continue;
		address_text(local, here, sizeof(here));
		address_text(remote, there, sizeof(there));
		if (strncmp(name, "tcp", 3) == 0 && state == 10)
			snprintf(text, sizeof(text), "tcp, listens on %.70s", here);
		else if (strspn(remote, "0:") == strlen(remote))
			snprintf(text, sizeof(text), "%.3s, bound to %.70s", name, here);
		else
			snprintf(text, sizeof(text), "%.3s, to %.70s", name, there);
		add_socket(w, inode, text);
	}
	fclose(f);
}

static void read_unix(struct wf_waits *w)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", w->target->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char text[160];
		unsigned long inode;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %n", &inode, &at) != 1)
			continue;
		snprintf(text, sizeof(text), at && line[at] ? "unix, %.120s" : "unix",
			 at ? line + at : "");
		add_socket(w, inode, text);
	}
	fclose(f);
}

static const char *socket_text(struct wf_waits *w, unsigned long inode)
{
	struct wait_socket key = { .inode = inode }, *s;

	if (!w->has_sockets) {
		static const char *const names[] = { "tcp", "tcp6", "udp", "udp6" };

		w->has_sockets = true;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			read_inet(w, names[i]);
		read_unix(w);
		if (w->sockets)
			qsort(w->sockets, w->nr_sockets, sizeof(*w->sockets), by_inode);
	}
	s = w->sockets ? bsearch(&key, w->sockets, w->nr_sockets, sizeof(key), by_inode) : NULL;
	return s ? s->text : NULL;
}

static void describe_fd(struct wf_waits *w, int fd, char *out, size_t bytes)
{
	char path[64], link[256];
	unsigned long inode;
	const char *text;
	ssize_t len;

	out[0] = '\0';
	if (w->target->is_core)
		return;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", w->target->pid, fd);
	len = readlink(path, link, sizeof(link) - 1);
	if (len < 0) {
		snprintf(out, bytes, "closed");
		return;
	}
	link[len] = '\0';
	if (sscanf(link, "socket:[%lu]", &inode) == 1) {
		text = socket_text(w, inode);
		snprintf(out, bytes, "socket, %s", text ? text : "not connected");
		return;
	}
	if (strncmp(link, "pipe:", 5) == 0 || strncmp(link, "anon_inode:", 11) == 0)
		snprintf(out, bytes, "%s", strncmp(link, "pipe:", 5) == 0 ? link : link + 11);
	else
		snprintf(out, bytes, "%s", link);
}

static void say_thread(char *out, size_t bytes, const char *prefix, const struct wf_dump_thread *d)
{
	snprintf(out, bytes, d->name[0] ? "%s thread %lld \"%s\"" : "%s thread %lld", prefix,
		 (long long)d->tid, d->name);
}

/* Which glibc primitive it is, by the functions that the thread is in. */
static const char *kind_by_frames(struct wf_waits *w, const struct wf_dump_thread *d)
{
	static const struct {
		const char *part, *kind;
	} known[] = {
		{ "pthread_mutex", "mutex" },     { "lll_lock_wait", "mutex" },
		{ "pthread_cond", "condition" },  { "sem_", "semaphore" },
		{ "new_sem_", "semaphore" },      { "pthread_rwlock", "rwlock" },
		{ "pthread_barrier", "barrier" }, { "pthread_join", "join" },
		{ "pthread_clockjoin", "join" },  { "pthread_timedjoin", "join" },
		{ "pthread_once", "once" },       { "std::__atomic_wait", "atomic" },
	};

	for (size_t i = 0; i < d->nr_frames && i < 24; i++) {
		struct wf_unwind_name n;

		wf_unwind_name(w->unwind, &d->frames[i], &n);
		if (!n.function || n.is_runtime)
			continue;
		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++) {
			const char *name = n.function + strspn(n.function, "_");

			if (strncmp(name, known[j].part, strlen(known[j].part)) == 0)
				return known[j].kind;
		}
		if (n.object && strncmp(n.object, "libc.", 5) != 0 &&
		    strncmp(n.object, "libpthread", 10) != 0)
			break; /* the program's own code: what follows did not ask for this wait */
	}
	return NULL;
}

/* The words that glibc keeps at a mutex: lock word, count, owner, number of users, kind. */
struct glibc_mutex {
	uint32_t lock, count, owner, nr_users;
	int32_t kind;
};

/* "NAME+0x8 at 0x..." for what lies in a variable with a symbol. */
static void say_address(struct wf_waits *w, uint64_t address, char *out, size_t bytes)
{
	const char *symbol;
	char plus[24] = "";
	uint64_t offset;

	if (!w->unwind || !wf_unwind_data(w->unwind, address, &symbol, &offset)) {
		snprintf(out, bytes, "%#llx", (unsigned long long)address);
		return;
	}
	if (offset)
		snprintf(plus, sizeof(plus), "+%#llx", (unsigned long long)offset);
	snprintf(out, bytes, "%.128s%s at %#llx", symbol, plus, (unsigned long long)address);
}

/* An address that belongs to something else may look like a mutex: the owner must be a thread of ours. */
static const struct wf_dump_thread *read_owner(struct wf_waits *w, uint64_t address)
{
	struct glibc_mutex m;

	if (!wf_target_read(w->target, address, &m, sizeof(m)) || !m.lock || !m.owner ||
	    !m.nr_users || m.kind < 0 || m.kind >= 1024)
		return NULL;
	return find(w, w->by_tid, tid_key, m.owner);
}

static const struct wf_dump_thread *mutex_owner(struct wf_waits *w, uint64_t address)
{
	struct wait_mutex *m = &w->mutexes[(address * w->factor >> 32) % NR_MUTEXES];

	if (m->address != address)
		*m = (struct wait_mutex){ address, read_owner(w, address) };
	return m->owner;
}

/* The thread whose end is waited for there: by libc's way of joining, or by libweft's. */
static const struct wf_dump_thread *joined_thread(const struct wf_waits *w, uint64_t what)
{
	const struct wf_dump_thread *d = find(w, w->by_child_tid, child_tid_key, what);

	return d ? d : find(w, w->by_joined, joined_key, what);
}

bool wf_waits_is_join(const struct wf_dump_thread *owner, const struct wf_dump_thread *d)
{
	return owner->child_tid == d->wait_what || owner->joined == d->wait_what;
}

const struct wf_dump_thread *wf_waits_owner(struct wf_waits *w, const struct wf_dump_thread *d)
{
	const struct wf_dump_thread *joined;

	if (!d->wait_what || d->state != w->layout->parked ||
	    d->wait_kind != w->layout->waits_futex)
		return NULL;
	joined = joined_thread(w, d->wait_what);
	return joined ? joined : mutex_owner(w, d->wait_what);
}

static void describe_futex(struct wf_waits *w, const struct wf_dump_thread *d,
			   struct wf_wait_text *out)
{
	const struct wf_dump_thread *other = joined_thread(w, d->wait_what);
	const char *kind = kind_by_frames(w, d);
	char object[256], owner[96] = "";

	snprintf(out->kind, sizeof(out->kind), "%s", kind ? kind : "futex");
	if (other && other != d && d->wait_what) {
		snprintf(out->kind, sizeof(out->kind), "join");
		out->owner = other->tid;
		say_thread(out->what, sizeof(out->what), "end of", other);
		return;
	}
	say_address(w, d->wait_what, object, sizeof(object));
	other = !kind || strcmp(kind, "mutex") == 0 ? mutex_owner(w, d->wait_what) : NULL;
	if (other) {
		snprintf(out->kind, sizeof(out->kind), "mutex");
		out->owner = other->tid;
		say_thread(owner, sizeof(owner), ", held by", other);
	}
	snprintf(out->what, sizeof(out->what), "%s%s", object, owner);
}

static void describe_signals(uint64_t set, char *out, size_t bytes)
{
	size_t len = 0;

	if ((set | SIG_UNBLOCKABLE) == UINT64_MAX) {
		snprintf(out, bytes, "any");
		return;
	}
	out[0] = '\0';
	for (int s = 1; s <= 64 && len + 16 < bytes; s++) {
		const char *name = s < 32 ? sigabbrev_np(s) : NULL;

		if (!(set & (1ull << (s - 1))))
			continue;
		len += (size_t)(name ? snprintf(out + len, bytes - len, "%s%s", len ? " " : "",
						name)
				     : snprintf(out + len, bytes - len, "%s%d", len ? " " : "", s));
	}
}

/* "channel jobs, 3 of 8 items". The name is the program's memory, and may be anything. */
static void describe_channel(struct wf_waits *w, uint64_t address, char *out, size_t bytes)
{
	char name[64], number[32], items[64] = "";
	uint64_t name_at = wf_layout_fetch(w->layout, w->target, address, WF_L_CHAN_NAME);
	uint64_t count = wf_layout_fetch(w->layout, w->target, address, WF_L_CHAN_COUNT);
	uint64_t capacity = wf_layout_fetch(w->layout, w->target, address, WF_L_CHAN_CAPACITY);
	size_t len = name_at ? wf_target_read_some(w->target, name_at, name, sizeof(name) - 1) : 0;

	name[len] = '\0';
	snprintf(number, sizeof(number), "at %#llx", (unsigned long long)address);
	if (capacity)
		snprintf(items, sizeof(items), ", %llu of %llu items", (unsigned long long)count,
			 (unsigned long long)capacity);
	snprintf(out, bytes, "channel %s%s", name[0] ? name : number, items);
}

/* "crawl, 3 left" */
static void describe_group(struct wf_waits *w, uint64_t address, char *out, size_t bytes)
{
	const uint64_t scope = address + w->layout->field[WF_L_GROUP_SCOPE].offset;
	uint64_t name_at;
	char name[48];
	size_t len;

	if (!w->layout->has_groups)
		return;
	name_at = wf_layout_fetch(w->layout, w->target, scope, WF_L_SCOPE_NAME);
	len = name_at ? wf_target_read_some(w->target, name_at, name, sizeof(name) - 1) : 0;
	name[len] = '\0';
	snprintf(out, bytes, name[0] ? "%s, %llu left" : "%s%llu left", name,
		 (unsigned long long)wf_layout_fetch(w->layout, w->target, address, WF_L_GROUP_NR));
}

bool wf_waits_is_waiting(const struct wf_layout *l, const struct wf_dump_thread *d)
{
	return d->is_direct || d->state == l->parked || d->state == l->parking ||
	       d->wait_kind == l->waits_call;
}

void wf_waits_describe(struct wf_waits *w, const struct wf_dump_thread *d, struct wf_wait_text *out)
{
	const char *kind = wf_layout_name(w->layout, "wait", d->wait_kind), *name;
	int64_t deadline = d->deadline;

	*out = (struct wf_wait_text){ .fd = -1, .since_s = -1 };
	snprintf(out->kind, sizeof(out->kind), "%s", kind);
	if (strcmp(kind, "futex") == 0) {
		describe_futex(w, d, out);
	} else if (strcmp(kind, "fd") == 0) {
		char text[320];

		out->fd = (int)d->wait_what;
		describe_fd(w, out->fd, text, sizeof(text));
		snprintf(out->what, sizeof(out->what), text[0] ? "%d (%s)" : "%d%s", out->fd, text);
	} else if (strcmp(kind, "poll") == 0) {
		snprintf(out->what, sizeof(out->what), "%llu descriptors",
			 (unsigned long long)d->wait_what);
	} else if (strcmp(kind, "event") == 0) {
		say_address(w, d->wait_what, out->what, sizeof(out->what));
	} else if (strcmp(kind, "recv") == 0 || strcmp(kind, "send") == 0) {
		describe_channel(w, d->wait_what, out->what, sizeof(out->what));
	} else if (strcmp(kind, "group") == 0) {
		describe_group(w, d->wait_what, out->what, sizeof(out->what));
	} else if (strcmp(kind, "select") == 0) {
		snprintf(out->what, sizeof(out->what), "over %llu",
			 (unsigned long long)d->wait_what);
	} else if (strcmp(kind, "child") == 0) {
		snprintf(out->what, sizeof(out->what), "%d", (int)d->wait_what);
	} else if (strcmp(kind, "signal") == 0) {
		describe_signals(d->wait_what, out->what, sizeof(out->what));
	} else if (strcmp(kind, "call") == 0) {
		name = wf_waits_call_name((long)d->wait_what);
		snprintf(out->what, sizeof(out->what), "%s", name ? name : "");
		if (!name)
			snprintf(out->what, sizeof(out->what), "%llu",
				 (unsigned long long)d->wait_what);
	}
	if (d->wait_since && w->threads->now >= d->wait_since)
		out->since_s = ((double)w->threads->now - (double)d->wait_since) / 1e9;
	if (out->since_s > MAX_SINCE_S)
		out->since_s = -1;
	if (!deadline && strcmp(kind, "sleep") == 0 && (int64_t)d->wait_what > 0 &&
	    d->wait_what != INT64_MAX)
		deadline = (int64_t)d->wait_what;
	if (deadline && deadline != INT64_MAX) {
		out->has_deadline = true;
		out->left_s = ((double)deadline - (double)w->threads->now) / 1e9;
	}
}

void wf_waits_json(const struct wf_wait_text *w, struct wf_text_json *j)
{
	wf_text_json_begin(j, "waits_for", '{');
	wf_text_json_string(j, "kind", w->kind);
	wf_text_json_string(j, "what", w->what);
	if (w->owner)
		wf_text_json_number(j, "owner", w->owner);
	if (w->fd >= 0)
		wf_text_json_number(j, "fd", w->fd);
	if (w->since_s >= 0)
		wf_text_json_number(j, "since_ms", (long long)(w->since_s * 1e3));
	if (w->has_deadline)
		wf_text_json_number(j, "left_ms", (long long)(w->left_s * 1e3));
	wf_text_json_end(j, '}');
}
