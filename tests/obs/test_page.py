#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft top` on a terminal: its keys and sizes, and that the terminal is as it was after every end."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unicodedata
import unittest

WEFT, VICTIM = map(os.path.abspath, sys.argv[1:3])
LIMIT_S = 240 if os.environ.get("CI") else 60
SEQUENCE = re.compile(rb"\x1b\[(\??)([\d;]*)([A-Za-z])")
LEAVE = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_") and k not in ("WEFT", "NO_COLOR")}
    env.update(LC_ALL="C.UTF-8", TERM="xterm")
    if "WEFT_LIBRARY" in os.environ:
        env["WEFT_LIBRARY"] = os.environ["WEFT_LIBRARY"]
    env.update(changes)
    return {k: v for k, v in env.items() if v is not None}


class Screen:
    """What a terminal shows. Anything that a terminal would have to guess is an error."""

    def __init__(self, rows, columns):
        self.alternate = self.hidden = self.is_stale = False
        self.wraps = True
        self.styles = set()
        self.written = b""  # all of it
        self.nr_bytes = 0
        self.left = b""
        self.resize(rows, columns)

    def resize(self, rows, columns):
        self.rows, self.columns, self.row, self.column = rows, columns, 0, 0
        self.cells = [[" "] * columns for _ in range(rows)]

    def put(self, c):
        if unicodedata.combining(c):
            return
        width = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        assert self.alternate and not self.wraps, "text on the page that was there before"
        if self.is_stale and (self.row >= self.rows or self.column + width > self.columns):
            return
        assert self.column + width <= self.columns, f"line {self.row} is too long"
        self.cells[self.row][self.column] = c
        if width == 2:
            self.cells[self.row][self.column + 1] = ""
        self.column += width

    def obey(self, private, numbers, final):
        first = int(numbers.split(";")[0] or 0) if numbers else 0
        if private:
            assert final in "hl" and first in (25, 7, 1049), (numbers, final)
            if first == 1049:
                self.alternate = final == "h"
                self.resize(self.rows, self.columns)
            elif first == 25:
                self.hidden = final == "l"
            else:
                self.wraps = final == "h"
        elif final == "H":
            self.row, self.column = first - 1, int(numbers.split(";")[1]) - 1
            assert self.is_stale or 0 <= self.row < self.rows and 0 <= self.column < self.columns, numbers
        elif final == "G":
            self.column = first - 1
        elif final == "K":
            assert self.is_stale or self.column < self.columns
            if self.row < self.rows:
                self.cells[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif final == "J":
            self.is_stale = False
            self.cells = [[" "] * self.columns for _ in range(self.rows)]
        else:
            assert final == "m", final
            self.styles.add(numbers)

    def feed(self, data):
        self.written += data
        data = self.left + data
        while data:
            m = SEQUENCE.match(data)
            if m:
                self.obey(m[1] == b"?", m[2].decode(), m[3].decode())
                data = data[m.end():]
                continue
            if data[0] < 32 or data[0] == 127:
                assert data[:1] == b"\x1b" and len(data) < 12, data[:20]
                break  # its end is to come
            size = 1 if data[0] < 0x80 else 2 if data[0] < 0xe0 else 3 if data[0] < 0xf0 else 4
            if len(data) < size:
                break
            self.put(data[:size].decode())
            data = data[size:]
        self.left = data

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())


class Page:
    """weft top on a terminal of its own, below a shell-like parent."""

    def __init__(self, *args, rows=24, columns=80, cwd=None, stdin=True, ignored=(), **changes):
        self.ours, theirs = pty.openpty()
        self.screen = Screen(rows, columns)
        self.size(rows, columns, tell=False)
        self.before = termios.tcgetattr(theirs)

        def own_terminal():
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)
            for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # nohup ignores one, a shell's `&` the others
                signal.signal(sig, signal.SIG_IGN if sig in ignored else signal.SIG_DFL)

        self.process = subprocess.Popen(
            [WEFT, "top", *map(str, args)], stdin=theirs if stdin else subprocess.DEVNULL, stdout=theirs,
            stderr=theirs, cwd=cwd, env=environment(**changes), preexec_fn=own_terminal)
        self.theirs = theirs

    def size(self, rows, columns, tell=True):
        if tell:
            self.screen.resize(rows, columns)
            self.screen.is_stale = True  # what is on its way is for the size before
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        self.screen.feed(os.read(self.ours, 65536))
        return True

    def until(self, test, what=""):
        """test: of the text, or words that stand in it."""
        words = test if isinstance(test, (list, tuple)) else None
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            text = self.screen.text()
            if all(w in text for w in words) if words else test(text):
                return text
            self.read(0.2)
        raise AssertionError(f"never {words or what}:\n{self.screen.text()}")

    def press(self, keys, *words):
        os.write(self.ours, keys if isinstance(keys, bytes) else keys.encode())
        return self.until(words) if words else None

    def end(self):
        """The status, once all that was written is read."""
        limit = time.monotonic() + LIMIT_S
        while self.process.poll() is None and time.monotonic() < limit:
            self.read(0.02)
        while self.read(0):
            pass
        return self.process.wait(1)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


class PageTest(unittest.TestCase):
    def victim(self, *command):
        process = subprocess.Popen([WEFT, "run", "--workers", "2", "--", *(command or [VICTIM])], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def page(self, *args, **kwargs):
        p = Page(*args, **kwargs)
        self.addCleanup(p.close)
        return p

    def assert_left(self, page):
        """The terminal is as it was."""
        self.assertEqual(termios.tcgetattr(page.theirs), page.before)
        self.assertFalse(page.screen.alternate or page.screen.hidden)
        self.assertTrue(page.screen.wraps)
        self.assertIn(LEAVE, page.screen.written)

    def test_every_view_and_key(self):
        v = self.victim()
        d = tempfile.TemporaryDirectory(prefix="weft-page-")
        self.addCleanup(d.cleanup)
        p = self.page("-d", "0.1", v.pid, rows=50, columns=200, cwd=d.name)
        text = p.until(["ticks", "owner", "WAITS FOR", f" {v.pid}  up", "7 threads"])
        self.assertRegex(text, r"held by thread \d+ \"owner\"")
        p.until(lambda t: re.search(r"ticks +\w+ +\d+\.\d +\d+ +\d+ +\d+ +[1-9]", t), "switches of ticks")
        p.until(lambda t: re.search(r"ticks +\w+ +\d+\.\d +\d+ +\d+ +(9\d|100) ", t), "the share of its time that it waits")
        p.press("g", "THREADS STATE", "LONGEST")
        self.assertRegex(p.until(["sleep"]), r"\n +2 parked +[\d.]+ s \d+ .*mutex 0x")
        self.assertRegex(p.press("l", "HELD BY"), r"\n +2 +[\d.]+ s 0x[0-9a-f]+ +\d+ owner +parked: futex")
        self.assertRegex(p.press("w", "KERNEL TID"), r"worker 1")
        p.press("a", "Processes under weft", "odd_names")
        p.press("/" + str(v.pid) + "\r", f"/{v.pid}  1 ")
        p.press("\r", "WAITS FOR", f" {v.pid}  up")
        p.press("\x1b", "7 threads", "ticks")
        p.press("/tick", "/tick_  1")
        p.press("\r", "/tick  1 ")
        self.assertNotIn("owner  ", p.press("\r", "the process was stopped for", "usleep"))
        p.press("q", "WAITS FOR", "/tick  1 ")
        p.press("\x1b/x\x7f")  # what follows ESC is a key of its own
        p.press("\r")
        p.until(lambda t: "ticks" in t and "owner" in t and "_" not in t.splitlines()[-1], "no filter")
        p.press("/x\x15own\x7f\x7fwn\r", "/own  1 ")
        p.press("\x1b", "ticks")
        p.press("?", "leave columns out")
        p.press("q", "WAITS FOR")
        p.press(" ", "paused")
        p.press("p", "? help")
        p.press("+", "every 0.2 s")
        p.press("--", "every 0.1 s")
        p.press("D", "wrote weft-dump-")
        name = re.search(r"wrote (weft-dump-\S+)", p.screen.text())[1]
        with open(os.path.join(d.name, name), encoding="utf-8") as f:
            self.assertIn("usleep", f.read())
        self.assertEqual(os.listdir(d.name), [name])
        p.press("T", "no trace: weft: trace: ")
        p.press("q")
        self.assertEqual(p.end(), 0)
        self.assert_left(p)

    def test_a_trace_of_the_last_seconds(self):
        process = subprocess.Popen([WEFT, "run", "--record", "--", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   text=True, env=environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        with tempfile.TemporaryDirectory(prefix="weft-page-") as d:
            p = self.page("-d", "0.1", process.pid, cwd=d)
            p.until(["ticks"])
            p.press("T", "wrote weft-trace-")
            name = re.search(r"wrote (weft-trace-\S+\.pftrace)", p.screen.text())[1]
            self.assertGreater(os.path.getsize(os.path.join(d, name)), 100)

    def order(self, p):
        return [int(line.split()[0]) for line in p.screen.lines() if re.match(r" *\d+ .* (parked|ready|running) ", line)]

    def test_sorting_and_moving(self):
        v = self.victim()
        p = self.page("-d", "100", "--sort", "tid", v.pid)
        p.until(lambda t: len(self.order(p)) == 7, "seven threads")
        up = self.order(p)
        self.assertEqual(up, sorted(up))
        p.press("r")
        p.until(lambda t: self.order(p) == up[::-1], "the other order")
        p.press(">")  # by name, backwards
        p.until(lambda t: len(self.order(p)) == 7 and self.order(p) not in (up, up[::-1]), "by name")
        p.press("<r")
        p.until(lambda t: self.order(p) == up, "the first order")
        p.size(8, 80)
        text = p.until(lambda t: not p.screen.is_stale and len(self.order(p)) == 5, "five rows")
        self.assertEqual(self.order(p), up[:5])
        p.press("\x1b[B" * 5)
        p.until(lambda t: self.order(p) == up[1:6], "scrolled by one")
        p.press("\x1b[6~")
        p.until(lambda t: self.order(p) == up[2:], "the last page")
        p.press("\x1bOA" * 6)
        p.until(lambda t: self.order(p) == up[:5], "back at the top")
        p.press("\x1b[F")
        p.until(lambda t: self.order(p) == up[2:], "the end")
        p.press("\x1b[1~\x1b[C\x1b[C")
        p.until(lambda t: "NAME" not in t and "STATE" not in t and "TID" in t, "columns left out")
        p.press("\x1b[D\x1b[1;5Z\x1b[D", "NAME")
        self.assertIn("? help", text)

    def test_names_do_not_reach_the_terminal(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid)
        rows = {}
        for line in p.until(["?[2J?[31mred", "日本語", "e\u0301"[0] + "-acute", "?31m-c1"]).splitlines():
            if " parked " in line:
                rows[line[11:26].rstrip()] = line
        # The double width of three characters is in the emulator's cells: the column behind them is the same.
        for line in rows.values():
            cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line[:line.index(" parked ")])
            self.assertEqual(cells, 26, line)
        p = self.page("-d", "0.1", v.pid, LC_ALL="C")
        p.until(["???", "?[2J"])
        self.assertTrue(p.screen.written.isascii())

    def test_sizes(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid)
        p.until(["ticks"])
        for rows, columns in ((25, 80), (50, 200), (24, 40), (24, 12), (5, 10), (2, 10), (1, 1), (24, 10), (3, 300), (30, 100)):
            p.size(rows, columns)
            p.until(lambda t, rows=rows: not p.screen.is_stale and t.strip() and (rows < 5 or "TID" in t), f"a page of {rows}x{columns}")
            p.press("gl?qw/x\x1bt")
        self.assertIn(" RUN  RDY WAIT ", p.until(["WAITS FOR", "ticks", "? help"]))
        p.size(30, 99)
        self.assertNotIn(" RDY ", p.until(lambda t: not p.screen.is_stale and "WAITS FOR" in t and "ticks" in t, "99 columns"))

    def test_only_what_changed_is_written(self):
        v = self.victim()
        p = self.page("-d", "100", v.pid)
        p.until(lambda t: re.search(r"ticks +\w+ +\d+\.\d +[1-9]", t), "the second look")
        nr = len(p.screen.written)
        p.press("\x1b[B")
        p.press("p", "paused")
        self.assertLess(len(p.screen.written) - nr, 4 * 80)

    def test_the_end_of_the_process_is_told(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid)
        p.until(["ticks"])
        v.kill()
        p.until([f"process {v.pid} has ended"])
        p.size(30, 100)
        p.until([f"process {v.pid} has ended", "ticks"])
        p.press("g", "LONGEST")
        p.press("\rDt", "ticks")
        p.press("q")
        self.assertEqual(p.end(), 3)
        self.assert_left(p)

    def test_an_exec_is_told(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid, columns=300)
        p.until(["ticks"])
        v.stdin.write("exec\n")
        v.stdin.flush()
        self.assertEqual(v.stdout.readline(), "ready\n")
        p.until([f"process {v.pid} has executed odd_names", "7 threads"])

    def test_one_that_executes_without_weft(self):
        v = self.victim("sh", "-c", "echo ready; read x; WEFT=0 LD_PRELOAD= exec sleep 1000 2>&-")
        p = self.page("-d", "0.1", v.pid)
        p.until(["1 threads"])
        v.stdin.write("x\n")
        v.stdin.flush()
        p.until(["runs without weft"])

    def test_signals_leave_the_terminal_as_it_was(self):
        v = self.victim()
        for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT, "\x03", "\x1c"):
            p = self.page("-d", "0.1", v.pid, rows=12)
            p.until(["TID"])
            if isinstance(sig, str):
                p.press(sig)
                sig = {"\x03": signal.SIGINT, "\x1c": signal.SIGQUIT}[sig]
            else:
                p.process.send_signal(sig)
            self.assertEqual(p.end(), -sig)
            self.assert_left(p)

    def test_signals_that_were_ignored_stay_so(self):
        v = self.victim()
        ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        p = self.page("-d", "0.1", v.pid, ignored=ignored)
        p.until(["TID"])
        for sig in ignored:
            p.process.send_signal(sig)
        p.press("g", "LONGEST")
        p.process.send_signal(signal.SIGTERM)
        self.assertEqual(p.end(), -signal.SIGTERM)
        self.assert_left(p)

    def with_signal(self, pid, sig, at):
        """That comes right behind a change of the terminal's mode."""
        return self.page("-d", "0.1", pid, LD_PRELOAD=os.environ["RAISES_LIBRARY"], RAISES=str(int(sig)), AT=str(at),
                         ASAN_OPTIONS="verify_asan_link_order=0")

    def test_a_signal_while_the_page_begins_leaves_the_terminal_as_it_was(self):
        p = self.with_signal(self.victim().pid, signal.SIGTERM, 0)
        self.assertEqual(p.end(), -signal.SIGTERM)
        self.assert_left(p)

    def test_a_stop_while_the_page_ends_does_not_bring_it_back(self):
        v = self.victim()
        for sig in signal.SIGCONT, signal.SIGTSTP:
            p = self.with_signal(v.pid, sig, 1)
            p.until(["ticks"])
            p.press("q")
            self.assertEqual(p.end(), 0)
            self.assert_left(p)

    def test_a_terminal_that_takes_nothing_keeps_nobody_from_ending(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid)
        p.until(["ticks"])
        p.press("\x13")  # ^S
        p.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + LIMIT_S
        while not self.waits_in_handler(p.process.pid, signal.SIGCONT):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        p.process.send_signal(signal.SIGTERM)
        self.assertEqual(p.end(), -signal.SIGTERM)
        self.assertEqual(termios.tcgetattr(p.theirs), p.before)

    @staticmethod
    def waits_in_handler(pid, sig):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            status = dict(line.split(":\t", 1) for line in f if ":\t" in line)
        return status["State"].startswith("S") and int(status["SigBlk"], 16) >> (sig - 1) & 1

    def test_a_stop_gives_the_terminal_back(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid)
        p.until(["ticks"])
        # Its parent is in another session, so ^Z would not stop it: the signal that cannot be refused does.
        p.process.send_signal(signal.SIGTSTP)
        p.until(lambda t: LEAVE in p.screen.written, "left")
        p.until(["ticks"])
        p.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, p.process.pid, os.WSTOPPED)
        while p.read(0):
            pass
        p.screen.resize(24, 80)
        p.process.send_signal(signal.SIGCONT)
        p.until(["ticks", "WAITS FOR"])
        p.press("q")
        self.assertEqual(p.end(), 0)
        self.assert_left(p)

    def test_without_colours(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid, NO_COLOR="1")
        p.until(["ticks"])
        v.kill()
        p.until(["has ended"])
        self.assertFalse([s for s in p.screen.styles if "3" in s], p.screen.styles)

    def test_a_standard_input_that_is_none(self):
        v = self.victim()
        p = self.page("-d", "0.1", v.pid, stdin=False)
        p.until(["ticks"])
        p.press("q")
        self.assertEqual(p.end(), 0)
        self.assert_left(p)

    def test_a_dumb_terminal_gets_text(self):
        v = self.victim()
        for term in ("dumb", None):
            p = self.page("-d", "0.1", v.pid, TERM=term)
            p.screen.feed = lambda data, p=p: setattr(p.screen, "written", p.screen.written + data)
            self.assertEqual(p.end(), 0)
            self.assertNotIn(b"\x1b", p.screen.written)
            self.assertIn(b"WAITS FOR", p.screen.written)

    def test_a_process_that_is_none_gets_one_line(self):
        p = self.page("nonesuch")
        p.screen.feed = lambda data, p=p: setattr(p.screen, "written", p.screen.written + data)
        self.assertEqual(p.end(), 125)
        self.assertEqual(p.screen.written.count(b"\n"), 1)
        self.assertTrue(p.screen.written.startswith(b"weft: top: "))

    def test_a_stopped_process_is_shown(self):
        v = self.victim()
        v.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, v.pid, os.WSTOPPED | os.WNOWAIT)
        p = self.page("-d", "0.1", v.pid, columns=300)
        p.until(["ticks", "7 threads"])
        p.press("q")
        self.assertEqual(p.end(), 0)


class ManyTest(PageTest):
    """With `many` behind the programs: what takes long."""

    def test_of_very_many_threads_a_part_is_looked_at(self):
        v = self.victim(VICTIM, "60000")
        p = self.page("-d", "0.2", v.pid, columns=200)
        p.until(["60007 threads (1 in 8 read)"])
        p.press("/tick\r", "/tick  1 ")
        figures = set()

        def is_renewed(text):
            figures.update(re.findall(r"ticks +\w+ +\d+\.\d +\d+ +\d+ +\d+ +([1-9]\d*)", text))
            return len(figures) > 2
        p.until(is_renewed, "new figures of a thread that a part of the looks is at")
        p.press("\x1b")
        p.press("g")
        p.until(lambda t: re.search(r"\n +600\d\d parked ", t), "all in a group")
        self.assertLess(max(map(int, figures)), 1500)


def main():
    wanted = ManyTest if "many" in sys.argv[3:] else PageTest
    own = [name for name in vars(wanted) if name.startswith("test_")]
    tests = [wanted(name) for name in sorted(own)]
    failed = False
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        result = unittest.TestResult()
        began = time.monotonic()
        test.run(result)
        for _, text in result.errors + result.failures:
            print("#", text.replace("\n", "\n# "))
        ok = result.wasSuccessful()
        failed |= not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {test.id().split('.')[-1].removeprefix('test_')}"
              f" # {time.monotonic() - began:.2f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
