// SPDX-License-Identifier: Apache-2.0
/*
 * Facts of a descriptor's file: what it was told (O_NONBLOCK, timeouts), and whether it is known to be empty.
 *
 * Called by: linux/rw.c, which needs the first before every wait, and the second to spare the attempt that
 * would only say EAGAIN.
 *
 * Facts are kept only while the descriptor is the sole one of its file: made here by accept(), socket() and
 * the like, never duplicated, never sent away, no process forked since. Then nobody can tell the file
 * anything but through this number, and whoever does calls wf_fd_changed() afterwards. Facts that were asked
 * for meanwhile are used once but not kept: change differs.
 *
 * Emptiness. A read of a TCP socket that got less than it asked for has left nothing behind. Later data
 * is a new event, and events are counted (seq):
 *
 *	seq = wf_fd_seq(fd);
 *	n = recv(fd, buf, len, MSG_DONTWAIT);		0 < n < len: empty_at = seq
 *	...
 *	empty_at == seq: the next read may wait first, for an event after the seq-th.
 *
 * No event is lost: data that arrives after the recv() raises one, which is delivered either before the next
 * read looks at seq (they differ: it tries), or before it is on the list (wf_fd_enqueue() compares again), or
 * later (it finds the waiter). An event for data that the recv() got already only costs an attempt. The end of
 * a stream is no data, and may have come with the event that the recv() was made for: so nothing is known to
 * be empty once a hang-up, an error or urgent data (a read stops there) was seen; those stay seen. Only TCP:
 * elsewhere a short read can mean the end of a message, of a record or of somebody's credentials. Only where
 * the program did not ask for O_NONBLOCK: it may have learnt of new data before we do. Others that share the
 * socket can only take away from it, so it stays empty whoever has it; but what it was told is asked for then.
 *
 * A read that said EAGAIN has left nothing behind whatever the file is and whoever shares it, so poll() need not
 * look before it sleeps. It waits anyway, and looks when it wakes; so data that the program heard of before we do
 * makes it late by no more than that.
 */
#include "io/facts.h"

#include "base/die.h"
#include "sched/runtime.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define SOL_SOCKET 1
#define SO_RCVTIMEO_OLD 20
#define SO_SNDTIMEO_OLD 21
#define SO_PROTOCOL 38
#define IPPROTO_TCP 6
#define TCP_ULP 31

enum fd_known {
	KNOWN_FLAGS = 1,
	KNOWN_PROTOCOL = 2,
	KNOWN_RCVTIMEO = 4,
	KNOWN_SNDTIMEO = 8,
};

/* A copy of the fields of an entry, to work on without its lock. */
struct facts {
	int64_t timeout_ns[2];
	uint32_t change;
	uint8_t known;
	bool is_nonblocking, is_tcp;
};

static uint32_t share_epoch; /* (a) grows whenever the process shares all of its files */

void wf_facts_reset(struct fd_entry *e)
{
	e->known = 0;
	e->change++;
	e->is_sole = false;
	e->is_ended = false;
	e->empty_at = e->seq - 1;
	wf_store_relaxed(&e->file_notes, (uint8_t)0);
}

static bool has_note(int fd, uint8_t note)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	return e && wf_load_relaxed(&e->file_notes) & note;
}

static void set_note(int fd, uint8_t note, bool is_set)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (e)
		wf_fdtab_note(e, note, is_set);
}

bool wf_fd_is_direct(int fd)
{
	if (!has_note(fd, WF_FD_NOTE_FLAGS)) {
		long flags = sys2(__NR_fcntl, fd, F_GETFL);

		set_note(fd, WF_FD_NOTE_DIRECT, flags >= 0 && flags & O_DIRECT);
		set_note(fd, WF_FD_NOTE_FLAGS, true);
	}
	return has_note(fd, WF_FD_NOTE_DIRECT);
}

bool wf_fd_lacks_nowait(int fd)
{
	return has_note(fd, WF_FD_NOTE_NO_NOWAIT);
}

void wf_fd_note_lacks_nowait(int fd)
{
	set_note(fd, WF_FD_NOTE_NO_NOWAIT, true);
}

void wf_facts_begin(struct fd_entry *e, bool is_nonblocking)
{
	wf_facts_reset(e);
	e->is_sole = true;
	e->share_epoch = wf_load_relaxed(&share_epoch);
	e->is_nonblocking = is_nonblocking;
	e->known = KNOWN_FLAGS;
}

void wf_fd_changed(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	e->known &= KNOWN_PROTOCOL;
	e->change++;
	wf_store_relaxed(&e->file_notes, (uint8_t)(e->file_notes & ~WF_FD_NOTE_FLAGS));
	wf_spin_unlock(&e->lock);
}

void wf_fd_shared(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	e->is_sole = false;
	wf_spin_unlock(&e->lock);
}

void wf_fd_all_shared(void)
{
	(void)wf_fetch_add(&share_epoch, 1u);
}

void wf_fd_make_private(void)
{
	wf_fd_all_shared(); /* what it tells a file is told to ours */
	wf_self()->has_own_files = true;
	wf_store_release(&wf_fdtab.has_private, 1u);
}

/* Under the entry's lock. */
static bool may_keep(const struct fd_entry *e)
{
	return e->is_sole && e->share_epoch == wf_load_relaxed(&share_epoch);
}

static int64_t ask_timeout(int fd, int option)
{
	int64_t tv[2] = { 0, 0 };
	int len = sizeof(tv);

	if (sys5(__NR_getsockopt, fd, SOL_SOCKET, option, tv, &len) < 0)
		return 0;
	return tv[0] * WF_SEC + tv[1] * WF_US;
}

/* With TLS in the kernel there are records, and a short read may mean the end of one: TCP no more, as far as we care. */
static bool ask_whether_tcp(int fd)
{
	int protocol = 0, len = sizeof(protocol);
	char layer[16];

	if (sys5(__NR_getsockopt, fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) < 0 ||
	    protocol != IPPROTO_TCP)
		return false;
	len = sizeof(layer);
	return sys5(__NR_getsockopt, fd, IPPROTO_TCP, TCP_ULP, layer, &len) < 0 || !len;
}

/* A timeout is for those that wait. */
static uint8_t without_need(const struct facts *f)
{
	return f->known & KNOWN_FLAGS && f->is_nonblocking ? KNOWN_RCVTIMEO | KNOWN_SNDTIMEO : 0;
}

/* Ask the kernel for what is not known of wanted. */
static void ask(int fd, struct facts *out, uint8_t wanted)
{
	uint8_t missing = wanted & (uint8_t)~out->known;
	long flags;

	if (missing & KNOWN_FLAGS) {
		flags = sys2(__NR_fcntl, fd, F_GETFL);
		out->is_nonblocking = flags >= 0 && flags & O_NONBLOCK;
		out->known |= KNOWN_FLAGS;
	}
	missing &= (uint8_t)~without_need(out);
	if (missing & KNOWN_PROTOCOL)
		out->is_tcp = ask_whether_tcp(fd);
	if (missing & KNOWN_RCVTIMEO)
		out->timeout_ns[0] = ask_timeout(fd, SO_RCVTIMEO_OLD);
	if (missing & KNOWN_SNDTIMEO)
		out->timeout_ns[1] = ask_timeout(fd, SO_SNDTIMEO_OLD);
	out->known |= missing;
}

static uint8_t facts_for(uint32_t events, enum wf_fd_kind kind, bool is_kept)
{
	if (kind != WF_FD_SOCKET)
		return KNOWN_FLAGS;
	if (!(events & EPOLLIN))
		return KNOWN_FLAGS | KNOWN_SNDTIMEO;
	/* Whether it is TCP matters only for what is kept. */
	return is_kept ? KNOWN_FLAGS | KNOWN_RCVTIMEO | KNOWN_PROTOCOL
		       : KNOWN_FLAGS | KNOWN_RCVTIMEO;
}

/* False: they are nobody's to keep, out is empty. */
static bool load_facts(struct fd_entry *e, struct facts *out)
{
	bool is_kept;

	*out = (struct facts){ 0 };
	if (!e)
		return false;
	wf_spin_lock(&e->lock);
	is_kept = may_keep(e);
	if (is_kept)
		*out = (struct facts){
			.timeout_ns = { e->timeout_us[0] * WF_US, e->timeout_us[1] * WF_US },
			.change = e->change,
			.known = e->known,
			.is_nonblocking = e->is_nonblocking,
			.is_tcp = e->is_tcp,
		};
	wf_spin_unlock(&e->lock);
	return is_kept;
}

static void keep_facts(struct fd_entry *e, const struct facts *facts)
{
	wf_spin_lock(&e->lock);
	if (may_keep(e) && e->change == facts->change) {
		uint8_t known = facts->known;

		/* A time-out of more than an hour does not fit: it is asked for each time. */
		if (facts->timeout_ns[0] / WF_US > UINT32_MAX)
			known &= (uint8_t)~KNOWN_RCVTIMEO;
		if (facts->timeout_ns[1] / WF_US > UINT32_MAX)
			known &= (uint8_t)~KNOWN_SNDTIMEO;
		if (known & KNOWN_RCVTIMEO)
			e->timeout_us[0] = (uint32_t)(facts->timeout_ns[0] / WF_US);
		if (known & KNOWN_SNDTIMEO)
			e->timeout_us[1] = (uint32_t)(facts->timeout_ns[1] / WF_US);
		if (facts->known & KNOWN_FLAGS)
			e->is_nonblocking = facts->is_nonblocking;
		if (facts->known & KNOWN_PROTOCOL)
			e->is_tcp = facts->is_tcp;
		e->known |= known; /* another thread may have asked for other ones */
	}
	wf_spin_unlock(&e->lock);
}

struct wf_fd_facts wf_fd_facts(int fd, uint32_t events)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	struct facts facts;
	bool is_kept = load_facts(e, &facts);
	uint8_t wanted = facts_for(events, wf_fd_kind(fd), is_kept);

	wanted &= (uint8_t)~without_need(&facts);
	if ((facts.known & wanted) != wanted) {
		ask(fd, &facts, wanted);
		if (is_kept)
			keep_facts(e, &facts);
	}
	return (struct wf_fd_facts){
		.is_nonblocking = facts.is_nonblocking,
		.timeout_ns = facts.timeout_ns[events & EPOLLIN ? 0 : 1],
	};
}

void wf_fd_note_tcp(int fd, bool is_tcp)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e)
		return;
	wf_spin_lock(&e->lock);
	e->is_tcp = is_tcp;
	e->known |= KNOWN_PROTOCOL;
	e->change++;
	wf_spin_unlock(&e->lock);
}

/* Unlike the other facts a socket's protocol is kept for shared ones too. */
bool wf_fd_is_tcp(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	struct facts facts = { 0 };

	if (!e || wf_fd_kind(fd) != WF_FD_SOCKET)
		return false;
	wf_spin_lock(&e->lock);
	facts.known = e->known & KNOWN_PROTOCOL;
	facts.is_tcp = e->is_tcp;
	facts.change = e->change;
	wf_spin_unlock(&e->lock);
	if (facts.known)
		return facts.is_tcp;
	ask(fd, &facts, KNOWN_PROTOCOL);
	wf_spin_lock(&e->lock);
	if (e->change == facts.change) {
		e->is_tcp = facts.is_tcp;
		e->known |= KNOWN_PROTOCOL;
	}
	wf_spin_unlock(&e->lock);
	return facts.is_tcp;
}

static void note_empty(int fd, uint32_t seq, bool is_sure)
{
	struct fd_entry *e = wf_fdtab_entry(fd);

	if (!e || !wf_load_relaxed(&e->is_registered))
		return;
	wf_spin_lock(&e->lock);
	wf_fdtab_note_empty(e, seq, is_sure);
	wf_spin_unlock(&e->lock);
}

void wf_fd_drained(int fd, uint32_t seq)
{
	note_empty(fd, seq, false);
}

void wf_fd_found_empty(int fd, uint32_t seq)
{
	note_empty(fd, seq, true);
}

/* Under the entry's lock: since the event with that number nothing has come, and nothing has gone wrong. */
static bool has_stayed_empty(const struct fd_entry *e, uint32_t seq)
{
	return e->is_registered && e->empty_at == seq && e->seq == seq && !e->is_ended;
}

/* Under the entry's lock. */
static bool is_empty_tcp(const struct fd_entry *e, uint32_t seq)
{
	return has_stayed_empty(e, seq) && e->known & KNOWN_PROTOCOL && e->is_tcp;
}

bool wf_facts_is_empty_for_good(const struct fd_entry *e, uint32_t seq)
{
	const uint8_t needed = KNOWN_FLAGS | KNOWN_RCVTIMEO;

	return is_empty_tcp(e, seq) && may_keep(e) && (e->known & needed) == needed &&
	       !e->is_nonblocking && !e->timeout_us[0];
}

bool wf_fd_is_empty(int fd, uint32_t seq)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	bool is_empty;

	if (!e || wf_load_relaxed(&e->empty_at) != seq || !wf_fd_is_tcp(fd))
		return false;
	wf_spin_lock(&e->lock);
	is_empty = is_empty_tcp(e, seq);
	wf_spin_unlock(&e->lock);
	return is_empty;
}

bool wf_fd_is_ended(int fd)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	bool is_ended;

	if (!e)
		return false;
	wf_spin_lock(&e->lock);
	is_ended = e->is_ended;
	wf_spin_unlock(&e->lock);
	return is_ended;
}

bool wf_fd_is_quiet(int fd, uint32_t seq)
{
	struct fd_entry *e = wf_fdtab_entry(fd);
	bool is_quiet;

	if (!e || wf_load_relaxed(&e->empty_at) != seq)
		return false;
	wf_spin_lock(&e->lock);
	is_quiet = is_empty_tcp(e, seq) || (e->is_surely_empty && has_stayed_empty(e, seq));
	wf_spin_unlock(&e->lock);
	return is_quiet;
}
