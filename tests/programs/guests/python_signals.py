# SPDX-License-Identifier: Apache-2.0
"""What Python programs do with signals, and what signals interrupt; see cases.py."""

import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from cases import case, in_threads, main


def interrupts_main(wait):
    """SIGINT while the main thread waits in wait() is KeyboardInterrupt there, and soon."""
    def later():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    t = threading.Thread(target=later)
    begin = time.monotonic()
    try:
        t.start()
        wait()
        assert False
    except KeyboardInterrupt:
        pass
    assert time.monotonic() - begin < 20
    t.join()


@case
def sigint_interrupts_sleep():
    interrupts_main(lambda: time.sleep(60))


@case
def sigint_interrupts_lock():
    lock = threading.Lock()
    lock.acquire()
    interrupts_main(lock.acquire)


@case
def sigint_interrupts_event_and_queue():
    interrupts_main(lambda: threading.Event().wait(60))
    interrupts_main(queue.Queue().get)


@case
def sigint_interrupts_read_and_select():
    r, w = os.pipe()
    interrupts_main(lambda: os.read(r, 1))
    interrupts_main(lambda: select.select([r], [], [], 60))
    os.close(w)


@case
def sigint_interrupts_computation():
    def compute():
        while True:
            pass
    interrupts_main(compute)


@case
def signal_handler_runs_in_main_thread():
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread()))
    in_threads(10, lambda _: os.kill(os.getpid(), signal.SIGUSR1))
    until = time.monotonic() + 10
    while not seen and time.monotonic() < until:
        time.sleep(0.01)
    assert seen and set(seen) == {threading.main_thread()}


@case
def signals_wake_a_file_descriptor():
    r, w = socket.socketpair()
    w.setblocking(False)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.set_wakeup_fd(w.fileno())
    t = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGUSR1])
    t.start()
    r.settimeout(20)
    assert r.recv(1) == bytes([signal.SIGUSR1])
    t.join()
    signal.set_wakeup_fd(-1)


@case
def sigwait_and_pthread_kill():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
    got = queue.Queue()
    t = threading.Thread(target=lambda: [got.put(signal.sigwait([signal.SIGUSR1, signal.SIGUSR2]))
                                         for _ in range(2)])
    t.start()
    signal.pthread_kill(t.ident, signal.SIGUSR1)
    assert got.get(timeout=20) == signal.SIGUSR1
    os.kill(os.getpid(), signal.SIGUSR2)
    assert got.get(timeout=20) == signal.SIGUSR2
    t.join()
    assert signal.sigtimedwait([signal.SIGUSR1], 0.05) is None


@case
def interval_timer_and_alarm():
    ticks = []
    signal.signal(signal.SIGALRM, lambda *_: ticks.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    until = time.monotonic() + 20
    while len(ticks) < 10 and time.monotonic() < until:
        time.sleep(0.5)
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(ticks) >= 10


@case
def default_action_of_sigterm():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs us with nohup ignores it, and so would the child
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
        code = "import threading, os, time\n" \
               "for _ in range(5): threading.Thread(target=time.sleep, args=(60,)).start()\n" \
               "print('up', flush=True); time.sleep(60)\n"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"up\n"
        child.send_signal(number)
        assert child.wait(20) == -number
        child.stdout.close()


if __name__ == "__main__":
    main()
