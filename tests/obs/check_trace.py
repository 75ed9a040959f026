# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the traces that `weft trace` writes: whatever is not as it has to be is an error.

    check_trace.py FILE        prints what is in it, or what is wrong

SCHEMA is the part of Perfetto's schema (protos/perfetto/trace) that weft writes; where the package perfetto is installed,
it is compared with the real one. Nothing else may be in a file, at any depth. Beyond that: times are in order, on each CPU
the thread that leaves is the one that came last, a thread is on one CPU at a time and is woken before it runs again, slices
are closed, names are interned and tracks declared before they are used, and a thread has the same name everywhere.
"""
import sys

# name: (number, kind), the kind being a message of the table, "int" or "str"
SCHEMA = {
    "Trace": {"packet": (1, "TracePacket")},
    "TracePacket": {"ftrace_events": (1, "FtraceEventBundle"), "process_tree": (2, "ProcessTree"),
                    "clock_snapshot": (6, "ClockSnapshot"), "timestamp": (8, "int"),
                    "trusted_packet_sequence_id": (10, "int"), "track_event": (11, "TrackEvent"),
                    "interned_data": (12, "InternedData"), "sequence_flags": (13, "int"),
                    "track_descriptor": (60, "TrackDescriptor")},
    "FtraceEventBundle": {"cpu": (1, "int"), "event": (2, "FtraceEvent")},
    "FtraceEvent": {"timestamp": (1, "int"), "pid": (2, "int"), "sched_switch": (4, "SchedSwitchFtraceEvent"),
                    "sched_waking": (20, "SchedWakingFtraceEvent")},
    "SchedSwitchFtraceEvent": {"prev_comm": (1, "str"), "prev_pid": (2, "int"), "prev_prio": (3, "int"),
                               "prev_state": (4, "int"), "next_comm": (5, "str"), "next_pid": (6, "int"),
                               "next_prio": (7, "int")},
    "SchedWakingFtraceEvent": {"comm": (1, "str"), "pid": (2, "int"), "prio": (3, "int"), "success": (4, "int"),
                               "target_cpu": (5, "int")},
    "ProcessTree": {"processes": (1, "ProcessTree.Process"), "threads": (2, "ProcessTree.Thread")},
    "ProcessTree.Process": {"pid": (1, "int"), "ppid": (2, "int"), "cmdline": (3, "str")},
    "ProcessTree.Thread": {"tid": (1, "int"), "name": (2, "str"), "tgid": (3, "int")},
    "ClockSnapshot": {"clocks": (1, "ClockSnapshot.Clock")},
    "ClockSnapshot.Clock": {"clock_id": (1, "int"), "timestamp": (2, "int")},
    "TrackDescriptor": {"uuid": (1, "int"), "name": (2, "str"), "process": (3, "ProcessDescriptor"),
                        "thread": (4, "ThreadDescriptor"), "parent_uuid": (5, "int"), "counter": (8, "CounterDescriptor")},
    "ProcessDescriptor": {"pid": (1, "int")},
    "CounterDescriptor": {"unit": (3, "int")},
    "ThreadDescriptor": {"pid": (1, "int"), "tid": (2, "int"), "thread_name": (5, "str")},
    "TrackEvent": {"category_iids": (3, "int"), "debug_annotations": (4, "DebugAnnotation"), "type": (9, "int"),
                   "name_iid": (10, "int"), "track_uuid": (11, "int"), "counter_value": (30, "int")},
    "DebugAnnotation": {"int_value": (4, "int"), "pointer_value": (7, "int"), "name": (10, "str")},
    "InternedData": {"event_categories": (1, "EventCategory"), "event_names": (2, "EventName")},
    "EventCategory": {"iid": (1, "int"), "name": (2, "str")},
    "EventName": {"iid": (1, "int"), "name": (2, "str")},
}
REPEATED = {"packet", "event", "processes", "threads", "cmdline", "clocks", "category_iids", "debug_annotations",
            "event_categories", "event_names"}
NUMBERS = {message: {number: (name, kind) for name, (number, kind) in fields.items()}
           for message, fields in SCHEMA.items()}
BOOTTIME = 6
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
COUNTERS = {"ready threads": 2, "running threads": 2, "memory": 3}  # and their units
STATES = {0: "R", 1: "S", 2: "D", 16: "X"}


class Bad(Exception):
    pass


def need(is_so, *what):
    if not is_so:
        raise Bad(" ".join(map(str, what)))


def number(data, at, end):
    value = shift = 0
    while True:
        need(at < end, "a number is cut off at", at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            need(byte or shift == 7, "a number has zeroes in front, at", at)
            need(value < 1 << 64, "a number has more than 64 bits, at", at)
            return value, at
        need(shift < 70, "a number is too long, at", at)


def message(data, at, end, kind):
    """As a dictionary; of a field that may be there more than once, a list."""
    out = {}
    while at < end:
        key, at = number(data, at, end)
        need(key >> 3 in NUMBERS[kind], f"{kind} has no field {key >> 3}, at", at)
        name, what = NUMBERS[kind][key >> 3]
        need(key & 7 == (0 if what == "int" else 2), f"{kind}.{name} has another type, at", at)
        value, at = number(data, at, end)
        if what != "int":
            need(value <= end - at, f"{kind}.{name} is cut off at", at)
            last = at + value
            if what == "str":
                try:
                    value = data[at:last].decode()
                except UnicodeDecodeError as e:
                    raise Bad(f"{kind}.{name}: {e}") from e
                need(value.isprintable(), f"{kind}.{name} moves the cursor:", repr(value))
            else:
                value = message(data, at, last, what)
            at = last
        if name in REPEATED:
            out.setdefault(name, []).append(value)
        else:
            need(name not in out, f"{kind}.{name} is there twice, at", at)
            out[name] = value
    return out


def only(fields, *names):
    need(set(fields) == set(names), "there are", sorted(fields), "and not", sorted(names))


class Trace:
    """switches, wakes: (ns, cpu, ...); run_ns, wait_ns by tid; slices: names and how many; names: of threads."""

    def __init__(self, data):
        self.names, self.tracks, self.pid = {}, {}, None
        self.switches, self.wakes, self.instants = [], [], 0
        self.run_ns, self.slices, self.slice_ns, self.returned = {}, {}, {}, {}
        self.kinds = {"wait": 0, "call": 0}
        self.counter_tracks, self.process_track, self.counters = {}, None, {name: [] for name in COUNTERS}
        self.interned = {"event_names": {}, "event_categories": {}}
        self.bundles, self.open, self.last, self.began = {}, {}, None, None
        packets = message(data, 0, len(data), "Trace").get("packet", [])
        need(packets, "there is nothing")
        need("clock_snapshot" in packets[0], "the clocks do not come first")
        for packet in packets:
            self.take(packet)
        need(self.pid is not None, "there is no process")
        for tid, stack in self.open.items():
            need(not stack, f"of thread {tid} there are slices that do not end:", stack)
        self.play()

    def take(self, packet):
        what = set(packet) - {"timestamp", "trusted_packet_sequence_id", "sequence_flags", "interned_data"}
        need(packet.get("trusted_packet_sequence_id") in (1, 2), "a packet is of no sequence")
        need(len(what) == 1 or (not what and "interned_data" in packet), "a packet has several things in it:", sorted(what))
        if packet["trusted_packet_sequence_id"] == 2:
            self.take_track_packet(packet, what)
        elif "clock_snapshot" in packet:
            only(packet, "clock_snapshot", "trusted_packet_sequence_id")
            need(self.began is None, "there are two snapshots of the clocks")
            (clock,) = packet["clock_snapshot"]["clocks"]
            need(clock.get("clock_id") == BOOTTIME, "another clock")
            self.began = clock["timestamp"]
        elif "process_tree" in packet:
            only(packet, "process_tree", "timestamp", "trusted_packet_sequence_id")
            self.take_processes(packet["process_tree"])
        else:
            only(packet, "ftrace_events", "trusted_packet_sequence_id")
            bundle = packet["ftrace_events"]
            only(bundle, "cpu", *(["event"] if "event" in bundle else []))
            self.bundles.setdefault(bundle["cpu"], []).extend(bundle.get("event", []))

    def take_processes(self, tree):
        need(self.pid is None, "there are two trees of processes")
        (process,) = tree["processes"]
        only(process, "pid", "ppid", "cmdline")
        self.pid = process["pid"]
        for thread in tree.get("threads", []):
            only(thread, "tid", "name", "tgid")
            need(thread["tgid"] == self.pid, "a thread is another process's")
            need(thread["tid"] not in self.names, "a thread is there twice:", thread["tid"])
            self.names[thread["tid"]] = thread["name"]

    def take_track_packet(self, packet, what):
        need("timestamp" in packet and "sequence_flags" in packet, "a packet has no time, or no flags")
        need(packet["sequence_flags"] == (3 if self.last is None else 2), "flags are", packet["sequence_flags"])
        need(self.last is None or packet["timestamp"] >= self.last, "time goes back on the tracks, to", packet["timestamp"])
        need(packet["timestamp"] >= self.began, "there is something before the beginning")
        self.last = packet["timestamp"]
        for kind, rows in packet.get("interned_data", {}).items():
            for row in rows:
                only(row, "iid", "name")
                need(row["iid"] and row["iid"] not in self.interned[kind], "interned twice:", row)
                need(row["name"] not in self.interned[kind].values(), "interned under two numbers:", row)
                self.interned[kind][row["iid"]] = row["name"]
        if "track_descriptor" in what:
            track = packet["track_descriptor"]
            need(track["uuid"] not in self.counter_tracks, "a track is there twice:", track)
            if "thread" not in track:
                self.take_other_track(track)
                return
            only(track, "uuid", "thread")
            only(track["thread"], "pid", "tid", "thread_name")
            tid = track["thread"]["tid"]
            need(track["thread"]["pid"] == self.pid, "a track of another process")
            need(self.names.get(tid) == track["thread"]["thread_name"], "a track has another name than its thread:", track)
            need(track["uuid"] not in self.tracks and tid not in self.tracks.values(), "a track is there twice:", track)
            self.tracks[track["uuid"]] = tid
            self.open[tid] = []
        elif "track_event" in what and packet["track_event"].get("type") == COUNTER:
            event = packet["track_event"]
            only(event, "type", "track_uuid", "counter_value")
            need(event["track_uuid"] in self.counter_tracks, "a counter is not declared:", event["track_uuid"])
            values = self.counters[self.counter_tracks[event["track_uuid"]]]
            need(not values or values[-1][1] != event["counter_value"], "a counter is written and has not changed:", event)
            values.append((packet["timestamp"], event["counter_value"]))
        elif "track_event" in what:
            self.take_slice(packet["timestamp"], packet["track_event"])

    def take_other_track(self, track):
        need(track["uuid"] not in self.tracks, "a track is there twice:", track)
        if "process" in track:
            only(track, "uuid", "process")
            need(track["process"] == {"pid": self.pid} and self.process_track is None, "a track of another process")
            self.process_track = track["uuid"]
            return
        only(track, "uuid", "parent_uuid", "name", "counter")
        need(track["parent_uuid"] == self.process_track, "a counter is of another process:", track)
        need(track["counter"] == {"unit": COUNTERS.get(track["name"])}, "a counter of another kind:", track)
        need(track["name"] not in self.counter_tracks.values(), "a counter is there twice:", track)
        self.counter_tracks[track["uuid"]] = track["name"]

    def check_counters(self, counted):
        """counted: (ns, ready, running) after each event of the CPUs. Nobody knows the order of those at the same moment."""
        for index, name in ((1, "ready threads"), (2, "running threads")):
            at, last = 0, 0
            for ns, value in self.counters[name]:
                while at < len(counted) and counted[at][0] < ns:
                    last = counted[at][index]
                    at += 1
                then = [last] + [c[index] for c in counted[at:at + 1000] if c[0] == ns]
                changes = [after - before for before, after in zip(then, then[1:])]
                least, most = (last + sum(c for c in changes if c * sign > 0) for sign in (-1, 1))
                need(least <= value <= most, f"{name} at {ns} are {value}, and not from {least} to {most}:", then)
            end = self.counters[name][-1][1] if self.counters[name] else 0
            need(not counted or end == counted[-1][index], f"{name} are {end} in the end, and not", counted[-1:])

    def take_slice(self, ns, event):
        need(event.get("track_uuid") in self.tracks, "an event is on a track that is not declared")
        tid = self.tracks[event["track_uuid"]]
        notes = event.get("debug_annotations", [])
        for note in notes:
            need(len(note) == 2 and note.get("name") in ("arg0", "at", "returned"), "a note says", note)
        if event.get("type") == END:
            need(not set(event) - {"type", "track_uuid", "debug_annotations"}, "an end has a name")
            need(self.open[tid], "something ends that has not begun, in thread", tid)
            name, category, began = self.open[tid].pop()
            self.slices[name] = self.slices.get(name, 0) + 1
            self.kinds[category] += 1
            self.slice_ns[category] = self.slice_ns.get(category, 0) + ns - began
            if notes:
                need(category == "call", "something returned that was not called:", name)
                self.returned[name] = self.returned.get(name, 0) + 1
            return
        need(event.get("type") in (BEGIN, INSTANT), "another kind of event:", event)
        (category,) = event.get("category_iids", [0])
        need(category in self.interned["event_categories"], "a category is not interned:", category)
        need(event.get("name_iid") in self.interned["event_names"], "a name is not interned:", event.get("name_iid"))
        name, category = self.interned["event_names"][event["name_iid"]], self.interned["event_categories"][category]
        if event["type"] == BEGIN:
            need(category in ("wait", "call"), "a slice is of category", category)
            need(not any(c == "wait" for _, c, _ in self.open[tid]), "something begins inside of a wait:", name)
            self.open[tid].append((name, category, ns))
        else:
            need(category == "sched", "an instant is of category", category)
            self.instants += 1

    def play(self):
        """The CPUs, all together in the order of time."""
        events = []
        for cpu, bundle in self.bundles.items():
            last = 0
            for event in bundle:
                need("timestamp" in event and "pid" in event, "an event has no time, or is nobody's")
                need(event["timestamp"] >= last, "time goes back on CPU", cpu, "to", event["timestamp"])
                need(event["timestamp"] >= self.began, "there is something before the beginning")
                last = event["timestamp"]
                events.append((event["timestamp"], len(events), cpu, event))
        events.sort(key=lambda e: e[:1])
        running, since, place, out, counted = {}, {}, {}, {}, []
        for ns, _, cpu, event in self.in_order(events):
            need(len(event) == 3, "an event has other fields:", sorted(event))
            if "sched_switch" in event:
                e = event["sched_switch"]
                only(e, *SCHEMA["SchedSwitchFtraceEvent"])
                prev, next_ = e["prev_pid"], e["next_pid"]
                need(e["prev_prio"] == e["next_prio"] == 120, "another priority")
                need(e["prev_state"] in STATES, "another state:", e["prev_state"])
                need(event["pid"] == prev, "a switch is not of the thread that leaves")
                self.check_name(prev, e["prev_comm"])
                self.check_name(next_, e["next_comm"])
                need(running.get(cpu, prev) == prev, f"on CPU {cpu} thread {prev} leaves, and {running.get(cpu)} came")
                need(prev != next_, f"thread {prev} follows itself on CPU {cpu}")
                if prev:
                    need(place.get(prev, cpu) == cpu, f"thread {prev} leaves CPU {cpu} and is on {place.get(prev)}")
                    self.run_ns[prev] = self.run_ns.get(prev, 0) + ns - since.get(cpu, self.began)
                    place.pop(prev, None)
                    out[prev] = STATES[e["prev_state"]]
                if next_:
                    need(next_ not in place, f"thread {next_} comes to CPU {cpu} and is on {place.get(next_)}")
                    need(out.get(next_, "R") == "R", f"thread {next_} runs, and nobody has woken it: {out.get(next_)}")
                    place[next_] = cpu
                    out.pop(next_, None)
                running[cpu], since[cpu] = next_, ns
                self.switches.append((ns, cpu, prev, STATES[e["prev_state"]], next_))
            else:
                need("sched_waking" in event, "another kind of event:", sorted(event))
                e = event["sched_waking"]
                only(e, *SCHEMA["SchedWakingFtraceEvent"])
                need(e["prio"] == 120 and e["success"] == 1 and e["target_cpu"] == cpu, "a wake of another kind:", e)
                need(e["pid"] and e["pid"] not in place, f"thread {e['pid']} is woken while it runs")
                need(out.get(e["pid"]) != "R", f"thread {e['pid']} is woken twice")
                self.check_name(e["pid"], e["comm"])
                need(not event["pid"] or event["pid"] in self.names, "a waker is nobody:", event["pid"])
                out[e["pid"]] = "R"
                self.wakes.append((ns, event["pid"], e["pid"]))
            counted.append((ns, sum(state == "R" for state in out.values()), sum(1 for tid in running.values() if tid)))
        self.check_counters(counted)
        self.running = {cpu: tid for cpu, tid in running.items() if tid}
        self.ended = events[-1][0] if events else self.began

    @staticmethod
    def in_order(events):
        """Of several CPUs at the same nanosecond nobody knows the order: leaving comes first, then wakes, then coming."""
        def rank(item):
            ns, place, _, event = item
            e = event.get("sched_switch")
            return (ns, 1 if e is None else 0 if not e.get("next_pid") else 2, place)

        return sorted(events, key=rank) if len({e[2] for e in events}) > 1 else sorted(events, key=lambda e: e[:2])

    def check_name(self, tid, name):
        need(name == ("swapper" if tid == 0 else self.names.get(tid)), f"thread {tid} is called", repr(name))


def check_schema():
    """The table against the package's. False: it is not installed."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema
    except ImportError:
        return False
    for kind, fields in SCHEMA.items():
        real = schema
        for part in kind.split("."):
            real = getattr(real, part)
        for name, (n, what) in fields.items():
            field = real.DESCRIPTOR.fields_by_name[name]
            need(field.number == n, f"{kind}.{name} is {field.number} and not {n}")
            if what not in ("int", "str"):
                need(field.message_type.full_name.endswith("." + what), f"{kind}.{name} is a {field.message_type.name}")
            need((what == "str") == (field.type == field.TYPE_STRING), f"{kind}.{name} is of another type")
    return True


def read(path):
    with open(path, "rb") as f:
        return Trace(f.read())


if __name__ == "__main__":
    trace = read(sys.argv[1])
    print(f"{len(trace.switches)} switches, {len(trace.wakes)} wakes, {sum(trace.slices.values())} slices, "
          f"{trace.instants} instants, {len(trace.names)} threads, {(trace.ended - trace.began) / 1e9:.3f} s; "
          f"schema {'compared' if check_schema() else 'not compared'}")
    for tid in sorted(trace.run_ns):
        print(f"{tid:10} {trace.names[tid]:16} ran {trace.run_ns[tid] / 1e6:.3f} ms")
