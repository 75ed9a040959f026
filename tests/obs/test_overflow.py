#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stack overflow is reported, once and in whole lines; the program ends as it does natively.

    test_overflow.py WEFT OVERFLOWS       OVERFLOWS overflows the stack that its arguments name

CC names a compiler for the program with AddressSanitizer. Output is TAP.
"""
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

LIMIT_S = 240 if os.environ.get("CI") else 60
HEAD = re.compile(r'^weft: thread (\d+) "(.*)" has (probably )?overflowed its (alternate signal )?stack'
                  r" of (\d+) (KiB|MiB) \((0x[0-9a-f]+) to (0x[0-9a-f]+)\)$")
FAULT = re.compile(r"^weft:   (?:write to|read of) (0x[0-9a-f]+) at (\S+)\+(0x[0-9a-f]+)(?: (\S+))?, sp (0x[0-9a-f]+)")
REGISTERS = {"rip", "rsp", "rbp", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "efl", *(f"r{i}" for i in range(8, 16))}
PYTHON = """
import faulthandler, threading
t = threading.Thread(target=print)
t.start()
t.join()
faulthandler._stack_overflow()
"""
RUBY = """
def deep(n) [n].map { |x| deep(x + 1) } end
Thread.new do
  begin
    deep(0)
  rescue SystemStackError
    puts "rescued"
  end
end.join
"""


class Tests:
    def __init__(self, weft, program):
        self.weft, self.program = weft, program
        self.nr = self.nr_bad = 0

    def tell(self, good, what, said=""):
        self.nr += 1
        self.nr_bad += not good
        for line in [] if good else said.splitlines()[:20]:
            print("#", line)
        print(f"{'ok' if good else 'not ok'} {self.nr} - {what}", flush=True)

    def skip(self, what, why):
        self.nr += 1
        print(f"ok {self.nr} - {what} # SKIP {why}", flush=True)

    def native(self, *command, **env):
        return subprocess.run(command, env={**os.environ, **env}, text=True, errors="replace",
                              capture_output=True, timeout=LIMIT_S, check=False)

    def run(self, *command, **env):
        return self.native(self.weft, "run", "--workers", "2", "--", *command, **env)

    def kind(self, *args, bytes_kib=None, probably=False, calls=(), name="recurser", advice="the program chose"):
        """One way to overflow: the report is there, and says what is so."""
        native, done = self.native(self.program, *args), self.run(self.program, *args)
        lines = [x for x in done.stderr.splitlines() if x.startswith("weft:")]
        head = HEAD.match(lines[0]) if len(lines) == 6 else None
        fault = FAULT.match(lines[1]) if head else None
        good = bool(head and fault) and done.returncode == native.returncode == -signal.SIGSEGV
        if good:
            low, high = int(head[7], 16), int(head[8], 16)
            kib = int(head[5]) << (10 if head[6] == "MiB" else 0)
            shown = dict(zip(*[iter(" ".join(lines[2:5]).replace("weft:", "").split())] * 2))
            good = (head[2] == name and bool(head[3]) == probably and high - low == kib << 10
                    and (bytes_kib is None or kib == bytes_kib)
                    and (probably or 0 <= low - int(fault[1], 16) <= 64 << 10)
                    and set(shown) == REGISTERS and shown["rsp"] == fault[5]
                    and all(re.search(x, lines[1]) for x in calls) and advice in lines[5])
        self.tell(good, f"{' '.join(args)}: reported", f"{native.returncode} {done.returncode}\n{done.stderr}")
        return done

    def stack_size(self):
        for kind, name in (("main", "overflows"), ("thread", "recurser")):
            done = self.native(self.weft, "run", "--workers", "2", "--stack-size", "300K", "--", self.program, kind)
            self.tell(f'"{name}" has overflowed its stack of 300 KiB' in done.stderr
                      and "--stack-size 1200K" in done.stderr, f"--stack-size is the size of the stack of {kind}",
                      done.stderr)

    def own_handler(self):
        done = self.run(self.program, "own-handler")
        self.tell(done.returncode == 7 and not done.stderr, "a handler on a stack of its own runs, and nothing is said",
                  done.stderr)
        done = self.run(self.program, "own-handler", WEFT_OVERFLOW="always")
        self.tell(done.returncode == 7 and done.stderr.count("has overflowed") == 1,
                  "WEFT_OVERFLOW=always says it before that handler runs", done.stderr)
        for kind in ("wild", "guard", "coroutine"):
            done = self.run(self.program, kind, "256", WEFT_OVERFLOW="always")
            self.tell(done.returncode == -signal.SIGSEGV and "weft" not in done.stderr,
                      f"that is no overflow of the thread's stack: {kind}", done.stderr)

    def full_pipe(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True:
                os.write(writer, b"x" * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        done = subprocess.run([self.weft, "run", "--", self.program, "thread", "64"], stderr=writer, timeout=LIMIT_S,
                              check=False)
        self.tell(done.returncode == -signal.SIGSEGV, "a standard error that nobody reads keeps nobody alive")
        os.close(reader)
        os.close(writer)

    def filtered(self):
        what = "a report asks nothing that a filter may kill for"
        native = self.native(self.program, "filtered")
        if native.returncode == 7:
            return self.skip(what, "no seccomp filters here")
        done = self.run(self.program, "filtered")
        self.tell(done.returncode == native.returncode == -signal.SIGSEGV
                  and done.stderr.count("has overflowed") == 1 and "program+0x" in done.stderr
                  and "ulimit -s or weft run" in done.stderr, what, f"{done.returncode} {done.stderr}")

    def region(self):
        done = self.run(self.program, "region")
        if "guard: inner" not in done.stderr:
            return self.skip("in a region of stacks", "no guard regions in this kernel")
        self.tell(done.returncode == -signal.SIGSEGV and done.stderr.count("has overflowed its stack of 512 KiB") == 1
                  and "deep x " in done.stderr, "in a region of stacks: reported", done.stderr)

    def sanitizer(self, folder):
        what = "AddressSanitizer's handler wins"
        built = os.path.join(folder, "sanitized")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "overflows.c")
        cc = shlex.split(os.environ.get("CC", "cc"))
        done = self.native(*cc, "-fsanitize=address", "-D_GNU_SOURCE", "-O1", "-g", "-pthread", source, "-o",
                           built)
        if done.returncode or "AddressSanitizer" not in self.native(built, "thread", "256").stderr:
            return self.skip(what, "no AddressSanitizer here")
        done = self.run(built, "thread", "256")
        self.tell("AddressSanitizer: stack-overflow" in done.stderr and "weft:" not in done.stderr
                  and done.returncode == self.native(built, "thread", "256").returncode, what, done.stderr)

    def ruby(self):
        what = "Ruby raises SystemStackError"
        if not shutil.which("ruby"):
            return self.skip(what, "no ruby")
        native = self.native("ruby", "-e", RUBY)
        if native.stdout != "rescued\n":
            return self.skip(what, "natively it does not")
        done = self.run("ruby", "-e", RUBY)
        self.tell(done.stdout == native.stdout and done.returncode == 0 and "weft:" not in done.stderr, what,
                  done.stdout + done.stderr)

    def python(self):
        what = "Python's faulthandler wins"
        native = self.native(sys.executable, "-X", "faulthandler", "-c", PYTHON)
        if native.returncode != -signal.SIGSEGV or "Fatal Python error" not in native.stderr:
            return self.skip(what, "natively it does not")
        done = self.run(sys.executable, "-X", "faulthandler", "-c", PYTHON)
        first = done.stderr.find("weft:")
        self.tell(done.returncode == native.returncode and "Fatal Python error" in done.stderr
                  and (first < 0 or done.stderr.find("Fatal Python error") < first), what, done.stderr)


def main():
    t = Tests(*map(os.path.abspath, sys.argv[1:3]))
    usual = ["deep x [0-9]{2,}"]
    print("1..27")
    with tempfile.TemporaryDirectory(prefix="weft-overflow-") as d:
        os.chdir(d)  # where a core may go
        t.kind("thread", "64", bytes_kib=64, calls=usual)
        t.kind("thread", "16", bytes_kib=16, calls=usual)
        t.kind("thread", calls=usual, advice="ulimit -s (now ")
        t.kind("main", name="overflows", calls=[*usual, "main"], advice="--stack-size")
        t.kind("main-alloca", name="overflows", probably=True, advice="--stack-size")
        t.kind("alloca", "64", bytes_kib=64, probably=True)
        t.kind("malloc", "64", calls=[r"at libc\S+", "allocate x [0-9]{3,}"])
        t.kind("format", "16", calls=["format x [0-9]{2,}"])
        t.kind("pair", "64", calls=["(odd, even|even, odd) in turn, x [0-9]{3,}"])
        t.kind("in-handler", "64", calls=usual)
        t.kind("no-room", "64", calls=usual)
        done = t.kind("at-once", "64", bytes_kib=64, calls=usual)
        t.tell(done.stderr.count("has overflowed") == 1, "of many at once one is reported", done.stderr)
        t.stack_size()
        t.own_handler()
        t.kind("signal-stack", bytes_kib=64, calls=usual, advice="sigaltstack()")
        t.full_pipe()
        t.filtered()
        t.region()
        t.sanitizer(d)
        t.ruby()
        t.python()
    return t.nr_bad > 0


sys.exit(main())
