#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The USDT probes: in the file as others expect them, and with the counts of the runtime's own counters."""
import glob
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

WEFT, ROUNDS, SCRIPTS = map(os.path.abspath, sys.argv[1:4])
LIBRARY = os.path.realpath(os.environ["WEFT_LIBRARY"])
LIMIT_S = 240 if os.environ.get("CI") else 60
ARGUMENTS = {"thread_new": 2, "thread_run": 1, "thread_park": 3, "thread_unpark": 3, "thread_exit": 1, "preempt": 2,
             "handoff": 3, "call": 3, "signal": 3}
TESTS = []


class Skip(Exception):
    pass


def test(function):
    TESTS.append(function)
    return function


def output(*command):
    if not shutil.which(command[0]):
        raise Skip(f"{command[0]} is not installed")
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout


@test
def readelf_lists_them():
    text = output("readelf", "-n", LIBRARY)
    notes = re.findall(r"Provider: (\S+)\s+Name: (\S+)\s+Location: (\S+), Base: (\S+), Semaphore: (\S+)\s+Arguments: (.*)", text)
    assert {name: args.count("8@") for _, name, _, _, _, args in notes} == ARGUMENTS, notes
    assert {provider for provider, *_ in notes} == {"weft"}
    places = [int(place, 16) for _, _, place, *_ in notes]
    assert len(set(places)) == len(places)
    assert len({semaphore for *_, semaphore, _ in notes}) == 1 and all(int(s, 16) for *_, s, _ in notes)
    # The base is that of the section it names, by which readers correct places of a file that was moved.
    section = re.search(r"\.stapsdt\.base\s+PROGBITS\s+([0-9a-f]+)", output("readelf", "-SW", LIBRARY))
    assert {int(base, 16) for _, _, _, base, *_ in notes} == {int(section[1], 16)}, section
    code = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", output("readelf", "-SW", LIBRARY))
    start, size = int(code[1], 16), int(code[2], 16)
    assert all(start <= place < start + size for place in places)


@test
def gdb_lists_them():
    text = output("gdb", "-nx", "-batch", "-ex", "info probes stap weft", LIBRARY)
    assert set(re.findall(r"^stap +weft +(\S+)", text, re.M)) == set(ARGUMENTS), text


class Program:
    def __init__(self):
        self.process = subprocess.Popen([WEFT, "run", "--workers", "2", "--", ROUNDS], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def play(self):
        self.process.stdin.write("x\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def counters(self):
        """Once everybody waits again."""
        before = None
        while True:
            text = output(WEFT, "metrics", str(self.process.pid))
            found = {name: int(n) for name, n in re.findall(r"^weft_(parks|switches|unparks)_total (\d+)", text, re.M)}
            if found == before:
                return found
            before = found

    def end(self):
        self.process.kill()
        self.process.communicate()


def traced(pid, source):
    """bpftrace, attached."""
    if not shutil.which("bpftrace"):
        raise Skip("bpftrace is not installed")
    b = subprocess.Popen(["bpftrace", "-p", str(pid), source] if os.path.exists(source) else
                         ["bpftrace", "-p", str(pid), "-e", source],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    b.text, end = "", time.monotonic() + LIMIT_S
    while "attached" not in b.text and b.poll() is None and time.monotonic() < end:
        if select.select([b.stdout], [], [], 0.1)[0]:
            b.text += os.read(b.stdout.fileno(), 4096).decode()
    if "attached" not in b.text:
        b.kill()
        b.text += b.communicate()[0]
        if re.search(r"permi|not supported|BTF|superuser|root", b.text):
            raise Skip("bpftrace may not run here: " + b.text.strip().splitlines()[-1])
        raise AssertionError(b.text)
    return b


def ended(b):
    b.send_signal(signal.SIGINT)
    return b.text + b.communicate(timeout=LIMIT_S)[0]


@test
def bpftrace_counts_what_the_runtime_counts():
    p = Program()
    try:
        b = traced(p.process.pid, 'usdt:*:weft:thread_park { @parks = count(); } usdt:*:weft:thread_run { @switches = count(); } '
                   'usdt:*:weft:thread_unpark { @unparks = count(); } BEGIN { printf("attached\\n"); }')
        before = p.counters()
        p.play()
        after = p.counters()
        text = ended(b)
    finally:
        p.end()
    counted = {name: int(n) for name, n in re.findall(r"^@(\w+): (\d+)", text, re.M)}
    expected = {name: after[name] - before[name] for name in after}
    assert expected["parks"] > 100, expected
    assert counted == expected, (counted, expected)


@test
def the_scripts_find_their_probes():
    names = sorted(glob.glob(os.path.join(SCRIPTS, "*.bt")))
    assert len(names) == 3
    for name in names:
        with open(name, encoding="utf-8") as f:
            probes = re.findall(r"^usdt:\*:weft:(\w+)", f.read(), re.M)
        assert probes and set(probes) <= set(ARGUMENTS), name
        for probe in probes:
            assert probe in ARGUMENTS
    if shutil.which("bpftrace"):
        p = Program()
        try:
            for name in names:
                done = subprocess.run(["bpftrace", "-d", "-p", str(p.process.pid), name], capture_output=True, text=True, check=False)
                if done.returncode and "attached" not in done.stdout:
                    assert re.search(r"permi|not supported|superuser|root", done.stderr), done.stderr
        finally:
            p.end()


print(f"1..{len(TESTS)}", flush=True)
failed = False
for number, function in enumerate(TESTS, 1):
    try:
        function()
        print(f"ok {number} - {function.__name__}", flush=True)
    except Skip as why:
        print(f"ok {number} - {function.__name__} # SKIP {why}", flush=True)
    except AssertionError as e:
        failed = True
        print(f"# {e!r} at line {e.__traceback__.tb_next.tb_lineno}\nnot ok {number} - {function.__name__}", flush=True)
sys.exit(failed)
