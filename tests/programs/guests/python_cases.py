# SPDX-License-Identifier: Apache-2.0
"""
What Python programs do with threads, one case per process: `python_cases.py CASE`, `--list`.

Run by ../python.py. A case checks itself with assert; its last line on stdout is `ok CASE`.
"""

import asyncio
import concurrent.futures
import hashlib
import multiprocessing
import os
import queue
import select
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def in_threads(nr_threads, work):
    """work(i) in so many threads at once; what they raise is raised here."""
    errors = []

    def run(i):
        try:
            work(i)
        except BaseException as err:
            errors.append(err)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(nr_threads)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


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
def futures_process_pool():
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        assert list(pool.map(abs, range(-100, 0), chunksize=10)) == list(range(100, 0, -1))


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
def subprocesses_from_threads():
    def work(i):
        for n in range(3):
            text = f"{i}.{n}\n"
            done = subprocess.run(["cat"], input=text, capture_output=True, text=True, timeout=30)
            assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
        assert subprocess.run(["sh", "-c", f"exit {i}"]).returncode == i
    in_threads(20, work)


@case
def subprocess_timeout_and_kill():
    begin = time.monotonic()
    try:
        subprocess.run(["sleep", "60"], timeout=0.2)
        assert False
    except subprocess.TimeoutExpired:
        pass
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    assert child.wait(10) == -signal.SIGTERM
    assert time.monotonic() - begin < 10


@case
def popen_pipeline_and_system():
    with os.popen("seq 1000 | tail -1") as pipe:
        assert pipe.read() == "1000\n"
    assert os.waitstatus_to_exitcode(os.system("exit 3")) == 3
    first = subprocess.Popen(["seq", "50000"], stdout=subprocess.PIPE)
    last = subprocess.Popen(["wc", "-l"], stdin=first.stdout, stdout=subprocess.PIPE)
    first.stdout.close()
    assert last.communicate()[0].strip() == b"50000" and first.wait() == 0


class Upper(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line.upper())


@case
def socketserver_serves_threads():
    socketserver.ThreadingTCPServer.request_queue_size = 128
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Upper) as server:
        runner = threading.Thread(target=server.serve_forever, args=(0.05,))
        runner.start()

        def client(i):
            with socket.create_connection(server.server_address, timeout=20) as sock:
                lines = sock.makefile("rwb")
                for n in range(20):
                    lines.write(f"line {i} {n}\n".encode())
                    lines.flush()
                    assert lines.readline() == f"LINE {i} {n}\n".encode()
        in_threads(50, client)
        server.shutdown()
        runner.join()


@case
def udp_and_unix_sockets():
    def echo(i):
        a, b = socket.socketpair()
        a.settimeout(10)
        t = threading.Thread(target=lambda: b.sendall(b.recv(100)))
        t.start()
        a.sendall(b"%d" % i)
        assert a.recv(100) == b"%d" % i
        t.join()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", 0))
            udp.settimeout(10)
            udp.sendto(b"x%d" % i, udp.getsockname())
            assert udp.recv(100) == b"x%d" % i
        a.close()
        b.close()
    in_threads(30, echo)


@case
def socket_timeouts_expire():
    def work(_):
        a, b = socket.socketpair()
        with a, b:
            a.settimeout(0.1)
            begin = time.monotonic()
            try:
                a.recv(1)
                assert False
            except TimeoutError:
                assert time.monotonic() - begin >= 0.099
    in_threads(20, work)


@case
def name_lookups_in_threads():
    def work(_):
        for _ in range(5):
            assert socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
    in_threads(20, work)


@case
def big_transfer_through_a_pipe():
    r, w = os.pipe()
    block, nr = os.urandom(100_000), 100
    sums = [hashlib.sha256(block * nr).hexdigest()]

    def write():
        for _ in range(nr):
            view = memoryview(block)
            while view:
                view = view[os.write(w, view):]
        os.close(w)
    t = threading.Thread(target=write)
    t.start()
    got = hashlib.sha256()
    while data := os.read(r, 65536):
        got.update(data)
    t.join()
    assert got.hexdigest() == sums[0]


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
    for number in signal.SIGTERM, signal.SIGHUP, signal.SIGKILL:
        code = "import threading, os, time\n" \
               "for _ in range(5): threading.Thread(target=time.sleep, args=(60,)).start()\n" \
               "print('up', flush=True); time.sleep(60)\n"
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"up\n"
        child.send_signal(number)
        assert child.wait(20) == -number
        child.stdout.close()


def square(n):
    return n * n


def put_all(q, n):
    for i in range(n):
        q.put(i)


def multiprocess(method):
    ctx = multiprocessing.get_context(method)
    with ctx.Pool(3) as pool:
        assert pool.map(square, range(100)) == [n * n for n in range(100)]
        pool.close()
        pool.join()
    q = ctx.Queue()
    child = ctx.Process(target=put_all, args=(q, 100))
    child.start()
    assert [q.get(timeout=20) for _ in range(100)] == list(range(100))
    child.join(20)
    assert child.exitcode == 0


@case
def multiprocessing_fork():
    multiprocess("fork")


@case
def multiprocessing_spawn():
    multiprocess("spawn")


@case
def multiprocessing_forkserver():
    multiprocess("forkserver")


def add_shared(value, nr):
    for _ in range(nr):
        with value.get_lock():
            value.value += 1


@case
def multiprocessing_shared_lock():
    ctx = multiprocessing.get_context("fork")
    value = ctx.Value("i", 0)
    children = [ctx.Process(target=add_shared, args=(value, 500)) for _ in range(4)]
    for child in children:
        child.start()
    add_shared(value, 500)
    for child in children:
        child.join(30)
        assert child.exitcode == 0
    assert value.value == 2500


@case
def fork_in_a_thread():
    def work(i):
        pid = os.fork()
        if pid == 0:
            t = threading.Thread(target=lambda: None)
            t.start()
            t.join()
            os._exit(i)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == i
    in_threads(10, work)


@case
def fork_while_others_run():
    stop = threading.Event()

    def churn():
        while not stop.is_set():
            threading.Thread(target=lambda: None).start()
            time.sleep(0.001)
    t = threading.Thread(target=churn)
    t.start()
    for i in range(20):
        pid = os.fork()
        if pid == 0:
            os._exit(i)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == i
    stop.set()
    t.join()


@case
def asyncio_with_threads():
    async def echo(reader, writer):
        while data := await reader.readline():
            writer.write(data)
            await writer.drain()
        writer.close()

    async def client(port, i):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for n in range(10):
            writer.write(f"{i} {n}\n".encode())
            assert await reader.readline() == f"{i} {n}\n".encode()
        writer.close()
        await writer.wait_closed()

    async def story():
        values = await asyncio.gather(*[asyncio.to_thread(square, n) for n in range(100)])
        assert values == [n * n for n in range(100)]
        server = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=128)
        port = server.sockets[0].getsockname()[1]
        await asyncio.gather(*[client(port, i) for i in range(50)])
        server.close()
        await server.wait_closed()
        child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
        out, _ = await child.communicate(b"through cat")
        assert out == b"through cat" and child.returncode == 0
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.05)
            assert False
        except asyncio.TimeoutError:
            pass
        loop, called = asyncio.get_running_loop(), asyncio.Event()
        threading.Timer(0.05, loop.call_soon_threadsafe, [called.set]).start()
        await asyncio.wait_for(called.wait(), 20)
    asyncio.run(story())


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


def wait_and_wake(wait):
    """In 20 threads: nothing ready within a timeout, then one byte makes it ready."""
    def work(_):
        r, w = os.pipe()
        assert not wait(r, 0.05)
        t = threading.Timer(0.05, os.write, [w, b"x"])
        t.start()
        assert wait(r, 30)
        assert os.read(r, 1) == b"x"
        t.join()
        os.close(r)
        os.close(w)
    in_threads(20, work)


@case
def select_in_threads():
    wait_and_wake(lambda fd, limit_s: select.select([fd], [], [], limit_s)[0] == [fd])


@case
def poll_in_threads():
    def wait(fd, limit_s):
        p = select.poll()
        p.register(fd, select.POLLIN)
        return p.poll(limit_s * 1000) == [(fd, select.POLLIN)]
    wait_and_wake(wait)


@case
def epoll_in_threads():
    def wait(fd, limit_s):
        with select.epoll() as ep:
            ep.register(fd, select.EPOLLIN)
            return ep.poll(limit_s) == [(fd, select.EPOLLIN)]
    wait_and_wake(wait)


@case
def sqlite_in_threads():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "db")
        with sqlite3.connect(path) as db:
            db.execute("pragma journal_mode=wal")
            db.execute("create table t (thread int, n int)")
        db.close()

        def work(i):
            db = sqlite3.connect(path, timeout=60)
            for n in range(20):
                with db:
                    db.execute("insert into t values (?, ?)", (i, n))
            assert db.execute("select count(*) from t where thread = ?", (i,)).fetchone() == (20,)
            db.close()
        in_threads(10, work)
        db = sqlite3.connect(path)
        assert db.execute("select count(*), sum(n) from t").fetchone() == (200, 1900)
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)
        db.close()


@case
def files_in_threads():
    with tempfile.TemporaryDirectory() as folder:
        def work(i):
            path = os.path.join(folder, str(i))
            for n in range(10):
                with open(path, "a") as f:
                    f.write(f"{i} {n}\n")
                    f.flush()
                    os.fsync(f.fileno())
            with open(path) as f:
                assert f.read() == "".join(f"{i} {n}\n" for n in range(10))
        in_threads(20, work)
        assert sorted(os.listdir(folder), key=int) == [str(i) for i in range(20)]


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
    if sys.argv[1] == "--list":
        print("\n".join(CASES))
    else:
        CASES[sys.argv[1]]()
        print("ok", sys.argv[1])
