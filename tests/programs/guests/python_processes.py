# SPDX-License-Identifier: Apache-2.0
"""What Python programs with threads do with other processes: subprocess, multiprocessing, fork; see cases.py."""

import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import threading
import time

from cases import case, in_threads, main


@case
def futures_process_pool():
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        assert list(pool.map(abs, range(-100, 0), chunksize=10)) == list(range(100, 0, -1))


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


if __name__ == "__main__":
    main()
