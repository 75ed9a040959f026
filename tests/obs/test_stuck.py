#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft run --watchdog`: a program that does not get on is told, and ended where that is wanted; no other is."""
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

WEFT, STUCK = map(os.path.abspath, sys.argv[1:3])
LIMIT_S = 240 if os.environ.get("CI") else 60
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def start(way, *args, watchdog="200ms", options=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_") or k == "WEFT_LIBRARY"}
    p = subprocess.Popen([WEFT, "run", "--workers", "2", *options, "--watchdog", watchdog, "--", STUCK, way, *args], env=env,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    return p


def ended(p):
    """(status, standard error)"""
    try:
        err = p.communicate(timeout=LIMIT_S)[1]
    finally:
        p.kill()
        p.wait()
    return p.returncode, err


def line(p):
    assert select.select([p.stderr], [], [], LIMIT_S)[0], "nothing is told"
    return p.stderr.readline()


@test
def a_circle_ends_by_abort():
    status, err = ended(start("circle", watchdog="200ms=abort"))
    assert status == -signal.SIGABRT, (status, err)
    assert err.count("\n") == 1 and re.match(r"weft: watchdog: nobody can wake any of the threads: 3, for [\d.]+ ", err), err
    assert re.search(r'thread \d+ "one" at ', err) and 'two?" at ' in err and err.endswith("; ending it\n"), err
    assert "waits_first" in err or f"{os.path.basename(STUCK)}+0x" in err, err


@test
def a_circle_is_told_once():
    p = start("circle", watchdog="100ms")
    told = line(p)
    assert told.endswith(f"; see weft dump {p.pid}\n"), told
    assert not select.select([p.stderr], [], [], 0.4)[0]
    assert p.poll() is None
    p.kill()
    ended(p)


@test
def who_can_be_woken_is_not_told():
    p = start("handler", watchdog="100ms=abort")
    assert ended(start("sleeps", watchdog="100ms=abort")) == (0, "")
    assert p.poll() is None, p.stderr.read()
    p.kill()
    assert ended(p)[1] == ""


@test
def threads_that_wait_behind_a_call_are_told():
    with tempfile.TemporaryDirectory() as d:
        fifo = os.path.join(d, "fifo")
        os.mkfifo(fifo)
        p = start("call", fifo, options=["--model", "1:N", "--workers", "1"])
        told = line(p)
        with open(fifo, "w", encoding="ascii"):
            pass
        assert ended(p)[0] == 0
    assert re.match(r"weft: watchdog: threads are ready and none gets on: 1, for [\d.]+ ", told), told
    assert f'thread {p.pid} "stuck" in system call 257' in told, told


@test
def who_computes_is_not_told():
    assert ended(start("busy", watchdog="100ms=abort", options=["--workers", "1"])) == (0, "")


@test
def a_stop_is_not_a_stall():
    p = start("busy", watchdog="100ms=abort", options=["--workers", "1"])
    p.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, p.pid, os.WSTOPPED)
    time.sleep(0.5)
    p.send_signal(signal.SIGCONT)
    assert ended(p) == (0, "")


@test
def an_idle_program_is_looked_at_once():
    p = start("idle", watchdog="100ms")

    def switches():
        with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
            return int(re.search(r"^voluntary_ctxt_switches:\t(\d+)", f.read(), re.M)[1])

    def woken():
        """In five times the time after which it would be told."""
        before = switches()
        time.sleep(0.5)
        return switches() - before

    until = time.monotonic() + LIMIT_S
    while woken() > 1:
        assert time.monotonic() < until, "it is looked at again and again"
    p.stdin.close()
    p.stdin = None
    assert ended(p) == (0, "")


@test
def bad_values_get_one_line():
    for value in ("10", "99ms", "25h", "10s=restart", "s", "10s=", "-1s", "1.5s"):
        done = subprocess.run([WEFT, "run", "--watchdog", value, "--", "true"], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 125 and done.stderr.count("\n") == 1 and f"'{value}'" in done.stderr, done
    env = dict(os.environ, WEFT_WATCHDOG="soon", LD_PRELOAD=os.environ["WEFT_LIBRARY"], WEFT_WORKERS="1")
    done = subprocess.run([STUCK, "sleeps"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "weft: ignoring a bad value of WEFT_WATCHDOG\n", done


print(f"1..{len(TESTS)}", flush=True)
failed = False
for number, function in enumerate(TESTS, 1):
    try:
        function()
        print(f"ok {number} - {function.__name__}", flush=True)
    except AssertionError as e:
        failed = True
        print(f"# {e!r} at line {e.__traceback__.tb_next.tb_lineno}\nnot ok {number} - {function.__name__}", flush=True)
sys.exit(failed)
