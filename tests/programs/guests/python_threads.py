# SPDX-License-Identifier: Apache-2.0
"""What Python programs do with threads alone: locks, queues, pools, locals, sleeps; see cases.py."""

import concurrent.futures
import hashlib
import os
import queue
import subprocess
import sys
import threading
import time
import zlib

from cases import case, in_threads, main


@case
def lock_protects_a_counter():
    lock, total = threading.Lock(), [0]

    def work(_):
        for _ in range(2000):
            with lock:
                total[0] += 1
    in_threads(16, work)
    assert total[0] == 32000


@case
def lock_timeouts_expire():
    lock = threading.Lock()
    lock.acquire()

    def work(_):
        begin = time.monotonic()
        assert not lock.acquire(timeout=0.1)
        assert time.monotonic() - begin >= 0.099
    in_threads(20, work)
    assert not lock.acquire(blocking=False)


@case
def rlock_is_reentrant_and_exclusive():
    lock, inside = threading.RLock(), []

    def work(i):
        for _ in range(200):
            with lock, lock:
                inside.append(i)
                assert len(inside) == 1
                inside.pop()
    in_threads(10, work)


@case
def condition_passes_a_baton():
    cond, turn, nr = threading.Condition(), [0], 20

    def work(i):
        for lap in range(50):
            with cond:
                cond.wait_for(lambda: turn[0] == lap * nr + i)
                turn[0] += 1
                cond.notify_all()
    in_threads(nr, work)
    assert turn[0] == nr * 50


@case
def condition_wait_times_out():
    cond = threading.Condition()

    def work(_):
        with cond:
            assert not cond.wait(0.05)
    in_threads(10, work)


@case
def event_wakes_all():
    event, woken = threading.Event(), []
    threads = [threading.Thread(target=lambda: woken.append(event.wait())) for _ in range(100)]
    for t in threads:
        t.start()
    assert not event.wait(0.05)
    event.set()
    for t in threads:
        t.join()
    assert woken == [True] * 100


@case
def semaphore_limits_entry():
    sem, lock, inside, peak = threading.BoundedSemaphore(3), threading.Lock(), [0], [0]

    def work(_):
        for _ in range(20):
            with sem:
                with lock:
                    inside[0] += 1
                    peak[0] = max(peak[0], inside[0])
                time.sleep(0.001)
                with lock:
                    inside[0] -= 1
    in_threads(20, work)
    assert 1 <= peak[0] <= 3


@case
def barrier_keeps_laps_together():
    barrier, laps, lock = threading.Barrier(20), [0], threading.Lock()

    def work(_):
        for lap in range(30):
            with lock:
                laps[0] += 1
            barrier.wait()
            assert laps[0] >= 20 * (lap + 1)
            barrier.wait()
    in_threads(20, work)
    assert laps[0] == 600


@case
def timers_fire_and_cancel():
    fired = queue.Queue()
    timers = [threading.Timer(0.01 * (i % 5), fired.put, [i]) for i in range(50)]
    never = threading.Timer(60, fired.put, [-1])
    for t in [*timers, never]:
        t.start()
    never.cancel()
    for t in [*timers, never]:
        t.join()
    assert sorted(fired.get_nowait() for _ in range(50)) == list(range(50)) and fired.empty()


@case
def five_hundred_threads():
    gate, done, lock = threading.Event(), set(), threading.Lock()

    def work(i):
        gate.wait()
        with lock:
            done.add((i, threading.get_ident(), threading.get_native_id()))
    threads = [threading.Thread(target=work, args=(i,)) for i in range(500)]
    for t in threads:
        t.start()
    assert threading.active_count() == 501
    gate.set()
    for t in threads:
        t.join()
    for column in range(3):
        assert len({d[column] for d in done}) == 500
    assert threading.active_count() == 1


@case
def five_hundred_threads_small_stacks():
    threading.stack_size(128 * 1024)
    total, lock = [0], threading.Lock()

    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    def work(i):
        value = deep(50)
        with lock:
            total[0] += value
    in_threads(500, work)
    assert total[0] == 25000


@case
def thread_locals_stay_apart():
    local = threading.local()

    def work(i):
        local.value = i
        for _ in range(50):
            time.sleep(0)
            assert local.value == i
    in_threads(50, work)
    assert not hasattr(local, "value")


@case
def errno_stays_apart():
    def work(i):
        for _ in range(200):
            try:
                os.open("/nonexistent/x" if i % 2 else "/", os.O_RDONLY if i % 2 else os.O_RDWR)
            except FileNotFoundError:
                assert i % 2
            except IsADirectoryError:
                assert not i % 2
            else:
                assert False
    in_threads(20, work)


@case
def daemon_threads_do_not_hold_the_exit():
    for _ in range(20):
        threading.Thread(target=threading.Event().wait, daemon=True).start()

    def compute():
        while True:
            pass
    threading.Thread(target=compute, daemon=True).start()
    time.sleep(0.05)


@case
def exit_joins_other_threads():
    code = ("import threading, time\n"
            "threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "late\n", "")


@case
def computing_thread_lets_others_run():
    stop, beats = threading.Event(), []

    def compute():
        n = 0
        while not stop.is_set():
            n += 1

    def beat():
        for _ in range(20):
            time.sleep(0.005)
            beats.append(time.monotonic())
        stop.set()
    threads = [threading.Thread(target=compute) for _ in range(3)] + [threading.Thread(target=beat)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(beats) == 20


@case
def native_code_without_the_gil():
    data = bytes(range(256)) * 4096
    digest, packed = hashlib.sha256(data).hexdigest(), zlib.compress(data)

    def work(i):
        for _ in range(3):
            assert hashlib.sha256(data).hexdigest() == digest
            assert zlib.compress(data) == packed
    in_threads(8, work)


@case
def futures_thread_pool():
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        assert list(pool.map(lambda n: n * n, range(2000))) == [n * n for n in range(2000)]
        may_end = threading.Event()
        late = pool.submit(may_end.wait)
        try:
            late.result(timeout=0.05)
            assert False
        except concurrent.futures.TimeoutError:
            pass
        may_end.set()
        done, left = concurrent.futures.wait([late])
        assert done == {late} and not left
        failed = pool.submit(lambda: 1 // 0)
        assert isinstance(failed.exception(), ZeroDivisionError)


@case
def queue_delivers_everything_once():
    jobs, results = queue.Queue(maxsize=10), queue.SimpleQueue()

    def produce(i):
        for n in range(200):
            jobs.put(i * 200 + n)

    def consume(_):
        while (n := jobs.get()) is not None:
            results.put(n)
            jobs.task_done()
    consumers = threading.Thread(target=in_threads, args=(10, consume))
    consumers.start()
    in_threads(10, produce)
    jobs.join()
    for _ in range(10):
        jobs.put(None)
    consumers.join()
    assert sorted(results.get() for _ in range(2000)) == list(range(2000))
    try:
        jobs.get(timeout=0.05)
        assert False
    except queue.Empty:
        pass


@case
def priority_queue_orders():
    q = queue.PriorityQueue()
    in_threads(10, lambda i: [q.put(i * 10 + n) for n in range(10)])
    assert [q.get() for _ in range(100)] == list(range(100))


@case
def sleep_is_accurate():
    late = []

    def work(i):
        want = 0.02 + 0.002 * i
        begin = time.monotonic()
        time.sleep(want)
        took = time.monotonic() - begin
        assert took >= want, (took, want)
        late.append(took - want)
    in_threads(50, work)
    assert sorted(late)[25] < 0.5, late


@case
def sleeps_overlap():
    begin = time.monotonic()
    in_threads(200, lambda _: time.sleep(0.5))
    assert 0.5 <= time.monotonic() - begin < 10


@case
def imports_in_threads():
    names = ["decimal", "xml.dom.minidom", "email.message", "csv", "ctypes", "lzma", "bz2", "uuid"]

    def work(i):
        __import__(names[i % len(names)])
    in_threads(32, work)


@case
def warnings_free_shutdown_after_load():
    code = ("import threading, time\n"
            "def f():\n"
            "    for _ in range(20): time.sleep(0.001)\n"
            "for _ in range(100): threading.Thread(target=f, daemon=True).start()\n")
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


if __name__ == "__main__":
    main()
