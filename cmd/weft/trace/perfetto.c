// SPDX-License-Identifier: Apache-2.0
/*
 * A trace as Perfetto reads it; see trace.h.
 *
 * Workers are CPUs and their switches are what the kernel's scheduler would have recorded (ftrace's sched_switch and
 * sched_waking), so that its lanes, thread states and latencies are those of user-level threads. Waits and calls are slices
 * on the threads' own tracks. The numbers are the fields' in Perfetto's schema (protos/perfetto/trace).
 */
#include "trace/counted.h"
#include "trace/proto.h"
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "target/wait.h"

/* trace, packet */
#define TRACE_PACKET 1
#define PACKET_FTRACE 1
#define PACKET_PROCESS_TREE 2
#define PACKET_CLOCKS 6
#define PACKET_TIMESTAMP 8
#define PACKET_SEQUENCE 10
#define PACKET_TRACK_EVENT 11
#define PACKET_INTERNED 12
#define PACKET_SEQUENCE_FLAGS 13
#define PACKET_TRACK 60
#define FLAG_CLEARED 1 /* what was interned before is forgotten */
#define FLAG_NEEDED 2  /* what was interned is used */

/* ftrace */
#define BUNDLE_CPU 1
#define BUNDLE_EVENT 2
#define EVENT_TIMESTAMP 1
#define EVENT_PID 2
#define EVENT_SWITCH 4
#define EVENT_WAKING 20
#define SWITCH_PREV_NAME 1
#define SWITCH_PREV 2
#define SWITCH_PREV_PRIO 3
#define SWITCH_PREV_STATE 4
#define SWITCH_NEXT_NAME 5
#define SWITCH_NEXT 6
#define SWITCH_NEXT_PRIO 7
#define WAKING_NAME 1
#define WAKING_PID 2
#define WAKING_PRIO 3
#define WAKING_SUCCESS 4
#define WAKING_CPU 5
#define PRIO 120 /* nice 0, as the kernel counts */

/* processes, clocks */
#define TREE_PROCESS 1
#define TREE_THREAD 2
#define PROCESS_PID 1
#define PROCESS_PARENT 2
#define PROCESS_COMMAND 3
#define THREAD_TID 1
#define THREAD_NAME 2
#define THREAD_PROCESS 3
#define CLOCKS_CLOCK 1
#define CLOCK_KIND 1
#define CLOCK_TIME 2
#define KIND_BOOTTIME 6

/* tracks and their events */
#define TRACK_UUID 1
#define TRACK_NAME 2
#define TRACK_PROCESS 3
#define TRACK_THREAD 4
#define TRACK_PARENT 5
#define TRACK_COUNTER 8
#define TRACK_PROCESS_PID 1
#define COUNTER_UNIT 3
#define UNIT_COUNT 2
#define UNIT_BYTES 3
#define TRACK_THREAD_PID 1
#define TRACK_THREAD_TID 2
#define TRACK_THREAD_NAME 5
#define EVENT_CATEGORY_IID 3
#define EVENT_NOTE 4
#define EVENT_TYPE 9
#define EVENT_NAME_IID 10
#define EVENT_TRACK 11
#define EVENT_VALUE 30
#define TYPE_BEGIN 1
#define TYPE_END 2
#define TYPE_INSTANT 3
#define TYPE_COUNTER 4
#define NOTE_INT 4
#define NOTE_POINTER 7
#define NOTE_NAME 10
#define INTERNED_CATEGORY 1
#define INTERNED_NAME 2
#define INTERNED_IID 1
#define INTERNED_TEXT 2

#define SEQUENCE_FTRACE 1
#define SEQUENCE_TRACKS 2

#define CATEGORY_WAIT 1
#define CATEGORY_CALL 2
#define CATEGORY_SCHED 3

#define UUID_PROCESS 0x7765667500000000u

#define BUNDLE_BYTES 65536
#define NAME_BYTES 128

struct name {
	char *text;
	uint64_t iid;
};

struct writer {
	FILE *out;
	const struct wf_take *take;
	struct wf_proto packet;   /* all that is under way */
	struct wf_proto *bundles; /* of each lane */
	unsigned nr_bundles;
	struct name *names; /* a table by their hash */
	size_t nr_places, nr_names;
	struct wf_counted counted;
	bool has_begun; /* the sequence of tracks */
	bool is_bad;
};

static size_t begin_packet(struct writer *w)
{
	w->packet.len = 0;
	return wf_proto_begin(&w->packet, TRACE_PACKET);
}

static void end_packet(struct writer *w, size_t begun)
{
	wf_proto_end(&w->packet, begun);
	w->is_bad |= w->packet.is_bad;
	if (!w->is_bad)
		(void)fwrite(w->packet.data, 1, w->packet.len, w->out);
}

/* --- the lanes --- */

static const char *name_of(const struct writer *w, int64_t tid, char buf[32])
{
	const char *name = tid ? wf_take_thread(w->take, tid) : "swapper";

	if (name)
		return name;
	snprintf(buf, 32, "thread %lld", (long long)tid);
	return buf;
}

static void flush_lane(struct writer *w, unsigned lane)
{
	struct wf_proto *b = &w->bundles[lane];
	size_t packet = begin_packet(w), bundle;

	w->is_bad |= b->is_bad;
	bundle = wf_proto_begin(&w->packet, PACKET_FTRACE);
	wf_proto_number(&w->packet, BUNDLE_CPU, lane);
	wf_proto_raw(&w->packet, b->data, b->len);
	b->len = 0;
	wf_proto_end(&w->packet, bundle);
	wf_proto_number(&w->packet, PACKET_SEQUENCE, SEQUENCE_FTRACE);
	end_packet(w, packet);
}

static struct wf_proto *lane_of(struct writer *w, unsigned lane)
{
	if (lane >= w->nr_bundles) {
		void *p = realloc(w->bundles, (lane + 1) * sizeof(*w->bundles));

		if (!p) {
			w->is_bad = true;
			return NULL;
		}
		w->bundles = p;
		memset(&w->bundles[w->nr_bundles], 0,
		       (lane + 1 - w->nr_bundles) * sizeof(*w->bundles));
		w->nr_bundles = lane + 1;
	}
	if (w->bundles[lane].len > BUNDLE_BYTES)
		flush_lane(w, lane);
	return &w->bundles[lane];
}

/* The kernel's bits of a thread's state. */
static uint64_t state_bits(enum wf_story_state state)
{
	return state == WF_STORY_WAITS     ? 1
	       : state == WF_STORY_IN_CALL ? 2
	       : state == WF_STORY_DEAD    ? 16
					   : 0;
}

/* An event of the scheduler's, made by a thread; NULL: out of memory. */
static struct wf_proto *begin_event(struct writer *w, const struct wf_story_item *i, unsigned kind,
				    size_t begun[2])
{
	struct wf_proto *b = lane_of(w, i->cpu);

	if (!b)
		return NULL;
	begun[0] = wf_proto_begin(b, BUNDLE_EVENT);
	wf_proto_number(b, EVENT_TIMESTAMP, (uint64_t)i->ns);
	wf_proto_number(b, EVENT_PID, (uint64_t)i->prev);
	begun[1] = wf_proto_begin(b, kind);
	return b;
}

static void end_event(struct wf_proto *b, const size_t begun[2])
{
	wf_proto_end(b, begun[1]);
	wf_proto_end(b, begun[0]);
}

static void write_switch(struct writer *w, const struct wf_story_item *i)
{
	size_t begun[2];
	struct wf_proto *b = begin_event(w, i, EVENT_SWITCH, begun);
	char buf[32];

	if (!b)
		return;
	wf_proto_text(b, SWITCH_PREV_NAME, name_of(w, i->prev, buf));
	wf_proto_number(b, SWITCH_PREV, (uint64_t)i->prev);
	wf_proto_number(b, SWITCH_PREV_PRIO, PRIO);
	wf_proto_number(b, SWITCH_PREV_STATE, state_bits(i->state));
	wf_proto_text(b, SWITCH_NEXT_NAME, name_of(w, i->tid, buf));
	wf_proto_number(b, SWITCH_NEXT, (uint64_t)i->tid);
	wf_proto_number(b, SWITCH_NEXT_PRIO, PRIO);
	end_event(b, begun);
}

static void write_wake(struct writer *w, const struct wf_story_item *i)
{
	size_t begun[2];
	struct wf_proto *b = begin_event(w, i, EVENT_WAKING, begun);
	char buf[32];

	if (!b)
		return;
	wf_proto_text(b, WAKING_NAME, name_of(w, i->tid, buf));
	wf_proto_number(b, WAKING_PID, (uint64_t)i->tid);
	wf_proto_number(b, WAKING_PRIO, PRIO);
	wf_proto_number(b, WAKING_SUCCESS, 1);
	wf_proto_number(b, WAKING_CPU, i->cpu);
	end_event(b, begun);
}

/* --- the tracks --- */

static size_t place_of(const struct writer *w, const char *text)
{
	uint64_t h = 1469598103934665603u;
	size_t at;

	for (const char *c = text; *c; c++)
		h = (h ^ (unsigned char)*c) * 1099511628211u;
	for (at = h & (w->nr_places - 1); w->names[at].text; at = (at + 1) & (w->nr_places - 1)) {
		if (strcmp(w->names[at].text, text) == 0)
			break;
	}
	return at;
}

static bool grow_names(struct writer *w)
{
	struct writer old = *w;

	if (2 * (w->nr_names + 1) <= w->nr_places)
		return true;
	w->nr_places = old.nr_places ? 2 * old.nr_places : 64;
	w->names = calloc(w->nr_places, sizeof(*w->names));
	if (!w->names) {
		w->names = old.names;
		w->nr_places = old.nr_places;
		return false;
	}
	for (size_t i = 0; i < old.nr_places; i++) {
		if (old.names[i].text)
			w->names[place_of(w, old.names[i].text)] = old.names[i];
	}
	free(old.names);
	return true;
}

static void write_interned(struct writer *w, unsigned kind, uint64_t iid, const char *text)
{
	size_t name = wf_proto_begin(&w->packet, kind);

	wf_proto_number(&w->packet, INTERNED_IID, iid);
	wf_proto_text(&w->packet, INTERNED_TEXT, text);
	wf_proto_end(&w->packet, name);
}

/* The name's number, which the packet introduces where it is new. 0: out of memory. */
static uint64_t intern(struct writer *w, const char *text)
{
	struct name *n;
	size_t data;

	if (!grow_names(w)) {
		w->is_bad = true;
		return 0;
	}
	n = &w->names[place_of(w, text)];
	if (n->text)
		return n->iid;
	n->text = strdup(text);
	if (!n->text) {
		w->is_bad = true;
		return 0;
	}
	n->iid = ++w->nr_names;
	data = wf_proto_begin(&w->packet, PACKET_INTERNED);
	write_interned(w, INTERNED_NAME, n->iid, text);
	wf_proto_end(&w->packet, data);
	return n->iid;
}

static size_t begin_track_packet(struct writer *w, int64_t ns)
{
	size_t packet = begin_packet(w);

	wf_proto_number(&w->packet, PACKET_TIMESTAMP, (uint64_t)ns);
	wf_proto_number(&w->packet, PACKET_SEQUENCE, SEQUENCE_TRACKS);
	wf_proto_number(&w->packet, PACKET_SEQUENCE_FLAGS,
			w->has_begun ? FLAG_NEEDED : FLAG_CLEARED | FLAG_NEEDED);
	w->has_begun = true;
	return packet;
}

static uint64_t uuid_of(int64_t tid)
{
	return 0x7765667400000000u ^ (uint64_t)tid;
}

static void write_note(struct writer *w, const char *name, unsigned field, uint64_t value)
{
	size_t note = wf_proto_begin(&w->packet, EVENT_NOTE);

	wf_proto_text(&w->packet, NOTE_NAME, name);
	wf_proto_number(&w->packet, field, value);
	wf_proto_end(&w->packet, note);
}

static void write_slice(struct writer *w, const struct wf_story_item *i, unsigned type,
			unsigned category, const char *text)
{
	size_t packet = begin_track_packet(w, i->ns), event;
	uint64_t iid = text ? intern(w, text) : 0;

	event = wf_proto_begin(&w->packet, PACKET_TRACK_EVENT);
	if (category)
		wf_proto_number(&w->packet, EVENT_CATEGORY_IID, category);
	if (category == CATEGORY_CALL)
		write_note(w, "arg0", NOTE_POINTER, i->b);
	if (category == CATEGORY_SCHED)
		write_note(w, "at", NOTE_POINTER, i->a);
	if (type == TYPE_END && i->has_value)
		write_note(w, "returned", NOTE_INT, i->a);
	wf_proto_number(&w->packet, EVENT_TYPE, type);
	if (iid)
		wf_proto_number(&w->packet, EVENT_NAME_IID, iid);
	wf_proto_number(&w->packet, EVENT_TRACK, uuid_of(i->tid));
	wf_proto_end(&w->packet, event);
	end_packet(w, packet);
}

static void write_counter(void *arg, enum wf_counted_what c, int64_t ns, uint64_t value)
{
	struct writer *w = arg;
	size_t packet = begin_track_packet(w, ns), event;

	event = wf_proto_begin(&w->packet, PACKET_TRACK_EVENT);
	wf_proto_number(&w->packet, EVENT_TYPE, TYPE_COUNTER);
	wf_proto_number(&w->packet, EVENT_TRACK, UUID_PROCESS + 1 + c);
	wf_proto_number(&w->packet, EVENT_VALUE, value);
	wf_proto_end(&w->packet, event);
	end_packet(w, packet);
}

static void write_item(void *arg, const struct wf_story_item *i)
{
	struct writer *w = arg;
	char text[NAME_BYTES];
	const char *call;

	wf_counted_before(&w->counted, i);
	switch (i->kind) {
	case WF_STORY_SWITCH:
		write_switch(w, i);
		break;
	case WF_STORY_WAKE:
		write_wake(w, i);
		break;
	case WF_STORY_WAIT:
		wf_take_wait(w->take, i->a, i->b, text, sizeof(text));
		write_slice(w, i, TYPE_BEGIN, CATEGORY_WAIT, text);
		break;
	case WF_STORY_CALL:
		call = i->a <= INT32_MAX ? wf_waits_call_name((long)i->a) : NULL;
		snprintf(text, sizeof(text), "call %llu", (unsigned long long)i->a);
		write_slice(w, i, TYPE_BEGIN, CATEGORY_CALL, call ? call : text);
		break;
	case WF_STORY_END:
		write_slice(w, i, TYPE_END, 0, NULL);
		break;
	case WF_STORY_PREEMPT:
		write_slice(w, i, TYPE_INSTANT, CATEGORY_SCHED, "preempted");
		break;
	}
	wf_counted_after(&w->counted, i);
}

/* --- what comes first --- */

static void write_clocks(struct writer *w)
{
	size_t packet = begin_packet(w), clocks, clock;

	clocks = wf_proto_begin(&w->packet, PACKET_CLOCKS);
	clock = wf_proto_begin(&w->packet, CLOCKS_CLOCK);
	wf_proto_number(&w->packet, CLOCK_KIND, KIND_BOOTTIME);
	wf_proto_number(&w->packet, CLOCK_TIME, (uint64_t)w->take->begin_ns);
	wf_proto_end(&w->packet, clock);
	wf_proto_end(&w->packet, clocks);
	wf_proto_number(&w->packet, PACKET_SEQUENCE, SEQUENCE_FTRACE);
	end_packet(w, packet);
}

static void write_processes(struct writer *w, const int64_t *tids)
{
	const struct wf_target *t = w->take->target;
	size_t packet = begin_packet(w), tree, one;
	char buf[32];

	wf_proto_number(&w->packet, PACKET_TIMESTAMP, (uint64_t)w->take->begin_ns);
	tree = wf_proto_begin(&w->packet, PACKET_PROCESS_TREE);
	one = wf_proto_begin(&w->packet, TREE_PROCESS);
	wf_proto_number(&w->packet, PROCESS_PID, (uint64_t)t->inner_pid);
	wf_proto_number(&w->packet, PROCESS_PARENT, 0);
	wf_proto_text(&w->packet, PROCESS_COMMAND, w->take->program);
	wf_proto_end(&w->packet, one);
	for (; *tids; tids++) {
		one = wf_proto_begin(&w->packet, TREE_THREAD);
		wf_proto_number(&w->packet, THREAD_TID, (uint64_t)*tids);
		wf_proto_text(&w->packet, THREAD_NAME, name_of(w, *tids, buf));
		wf_proto_number(&w->packet, THREAD_PROCESS, (uint64_t)t->inner_pid);
		wf_proto_end(&w->packet, one);
	}
	wf_proto_end(&w->packet, tree);
	wf_proto_number(&w->packet, PACKET_SEQUENCE, SEQUENCE_FTRACE);
	end_packet(w, packet);
}

static void write_categories(struct writer *w)
{
	size_t packet = begin_track_packet(w, w->take->begin_ns);
	size_t data = wf_proto_begin(&w->packet, PACKET_INTERNED);

	write_interned(w, INTERNED_CATEGORY, CATEGORY_WAIT, "wait");
	write_interned(w, INTERNED_CATEGORY, CATEGORY_CALL, "call");
	write_interned(w, INTERNED_CATEGORY, CATEGORY_SCHED, "sched");
	wf_proto_end(&w->packet, data);
	end_packet(w, packet);
}

static void write_track(struct writer *w, int64_t tid)
{
	size_t packet = begin_track_packet(w, w->take->begin_ns), track, thread;
	char buf[32];

	track = wf_proto_begin(&w->packet, PACKET_TRACK);
	wf_proto_number(&w->packet, TRACK_UUID, uuid_of(tid));
	thread = wf_proto_begin(&w->packet, TRACK_THREAD);
	wf_proto_number(&w->packet, TRACK_THREAD_PID, (uint64_t)w->take->target->inner_pid);
	wf_proto_number(&w->packet, TRACK_THREAD_TID, (uint64_t)tid);
	wf_proto_text(&w->packet, TRACK_THREAD_NAME, name_of(w, tid, buf));
	wf_proto_end(&w->packet, thread);
	wf_proto_end(&w->packet, track);
	end_packet(w, packet);
}

static void write_counter_tracks(struct writer *w)
{
	static const unsigned units[WF_COUNTED_NR] = {
		[WF_COUNTED_READY] = UNIT_COUNT,
		[WF_COUNTED_RUNNING] = UNIT_COUNT,
		[WF_COUNTED_MEMORY] = UNIT_BYTES,
	};
	size_t packet = begin_track_packet(w, w->take->begin_ns), track, what;

	track = wf_proto_begin(&w->packet, PACKET_TRACK);
	wf_proto_number(&w->packet, TRACK_UUID, UUID_PROCESS);
	what = wf_proto_begin(&w->packet, TRACK_PROCESS);
	wf_proto_number(&w->packet, TRACK_PROCESS_PID, (uint64_t)w->take->target->inner_pid);
	wf_proto_end(&w->packet, what);
	wf_proto_end(&w->packet, track);
	end_packet(w, packet);
	for (unsigned c = 0; c < WF_COUNTED_NR; c++) {
		packet = begin_track_packet(w, w->take->begin_ns);
		track = wf_proto_begin(&w->packet, PACKET_TRACK);
		wf_proto_number(&w->packet, TRACK_UUID, UUID_PROCESS + 1 + c);
		wf_proto_number(&w->packet, TRACK_PARENT, UUID_PROCESS);
		wf_proto_text(&w->packet, TRACK_NAME, wf_counted_names[c]);
		what = wf_proto_begin(&w->packet, TRACK_COUNTER);
		wf_proto_number(&w->packet, COUNTER_UNIT, units[c]);
		wf_proto_end(&w->packet, what);
		wf_proto_end(&w->packet, track);
		end_packet(w, packet);
	}
}

static void release(struct writer *w)
{
	for (unsigned i = 0; i < w->nr_bundles; i++)
		wf_proto_done(&w->bundles[i]);
	for (size_t i = 0; i < w->nr_places; i++)
		free(w->names[i].text);
	free(w->bundles);
	free(w->names);
	wf_proto_done(&w->packet);
}

bool wf_trace_perfetto(FILE *out, const struct wf_take *k)
{
	struct writer w = { .out = out, .take = k };
	struct wf_story *s = wf_story_new(k);
	const int64_t *tids;

	if (!s)
		return false;
	w.counted = (struct wf_counted){ .take = k, .write = write_counter, .arg = &w };
	tids = wf_story_threads(s);
	write_clocks(&w);
	write_processes(&w, tids);
	write_categories(&w);
	for (; *tids; tids++)
		write_track(&w, *tids);
	write_counter_tracks(&w);
	wf_story_tell(s, write_item, &w);
	wf_counted_end(&w.counted);
	for (unsigned i = 0; i < w.nr_bundles; i++)
		flush_lane(&w, i);
	wf_story_free(s);
	release(&w);
	return !w.is_bad;
}
