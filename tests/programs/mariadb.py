#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MariaDB: 100 connections, as threads of their own and in its thread pool; shutdown by SIGTERM."""

import shutil
import signal
import socket

import clients
from harness import case, find_program, main

NR_CLIENTS = 100
SMALL = ["--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--key-buffer-size=1M",
         "--aria-pagecache-buffer-size=8M"]


def install(c, data, native):
    c.call(find_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--user=root",
           "--skip-test-db", "--auth-root-authentication-method=normal", *SMALL, native=native,
           limit_s=60)


def make_datadir(c):
    template = c.prepared("data", lambda path: install(c, path / "data", native=True))
    shutil.copytree(template / "data", c.home / "data")


def start(c, *options):
    server = c.start(find_program("mariadbd", "mysqld"), "--no-defaults", "--user=root",
                     f"--datadir={c.home}/data", f"--socket={c.home}/socket",
                     f"--pid-file={c.home}/pid", f"--log-error={c.home}/log.err",
                     "--skip-networking", "--max-connections=300",
                     "--innodb-flush-log-at-trx-commit=2", *SMALL, *options)
    server.wait_for("answers on its socket", lambda: greets(c), limit_s=30)
    c.runs_under_weft(server)
    return server


def greets(c):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        try:
            sock.connect(str(c.home / "socket"))
            return bool(sock.recv(100))
        except OSError:
            return False


def sql(c, statements, *, native=True, limit_s=40):
    client = find_program("mariadb", "mysql")
    return c.call(client, "--no-defaults", f"--socket={c.home}/socket", "--user=root", "-N", "-B",
                  "-e", statements, native=native, limit_s=limit_s).out.split()


def slap(c, nr_queries, *, native=True):
    c.call(find_program("mariadb-slap", "mysqlslap"), "--no-defaults", f"--socket={c.home}/socket",
           "--user=root", f"--concurrency={NR_CLIENTS}", "--iterations=2", "--auto-generate-sql",
           "--auto-generate-sql-load-type=mixed", f"--number-of-queries={nr_queries}",
           native=native, limit_s=80)


def log(c):
    path = c.home / "log.err"
    return path.read_text(errors="replace") if path.exists() else ""


def ends_clean(c, server):
    server.become_idle()
    c.same("exit status", server.stop(signal.SIGTERM, 20))
    c.check("Shutdown complete" in log(c), "no 'Shutdown complete' in the log")
    errors = [line for line in log(c).splitlines() if "[ERROR]" in line]
    c.equal(errors, [], "errors in the log")
    c.log_is_clean("log", log(c))


def count_together(c, server, nr_clients, nr_updates):
    """Row locks between connections: every increment must be there in the end."""
    sql(c, "create database d; create table d.t (n bigint) engine=innodb;"
           "insert into d.t values (0)")
    updates = "begin; update d.t set n = n + 1; commit;" * nr_updates
    clients.run_clients(server, nr_clients, lambda i: sql(c, updates))
    c.equal(sql(c, "select n from d.t"), [str(nr_clients * nr_updates)], "sum of all increments")


def serve(c, thread_handling):
    make_datadir(c)
    server = start(c, f"--thread-handling={thread_handling}")
    slap(c, c.load(4000, 400))
    count_together(c, server, 20, 50)
    c.idle(server)
    c.equal(sql(c, "select @@thread_handling"), [thread_handling], "thread model")
    ends_clean(c, server)


@case(compare=True)
def one_thread_per_connection(c):
    serve(c, "one-thread-per-connection")


@case(compare=True)
def pool_of_threads(c):
    serve(c, "pool-of-threads")


@case(compare=True)
def sleeping_and_killed_connections(c):
    make_datadir(c)
    # Whether a killed connection is logged as aborted depends on who comes first.
    server = start(c, "--log-warnings=1")

    def ask(i):
        if i % 2:
            sql(c, "select sleep(0.5), get_lock('l', 20), release_lock('l')")
        else:
            sql(c, "select benchmark(200000, md5('x'))")
    clients.run_clients(server, 20, ask)
    client = [find_program("mariadb", "mysql"), "--no-defaults", f"--socket={c.home}/socket",
              "--user=root", "-e", "select sleep(600)"]
    sleeper = c.start(*client, native=True)
    find = "select id from information_schema.processlist where info like 'select sleep(600)%'"
    server.wait_for("shows the sleeper", lambda: sql(c, find))
    sql(c, f"kill {sql(c, find)[0]}")
    c.check(sleeper.wait(20) != 0, "the killed connection ended well")
    # A statement that still runs must not hold up the shutdown.
    last = c.start(*client, native=True)
    server.wait_for("shows the last sleeper", lambda: sql(c, find))
    ends_clean(c, server)
    last.wait(20)


@case
def bootstrap_and_clients_under_weft(c):
    install(c, c.home / "data", native=False)
    server = start(c)
    slap(c, 1000, native=False)
    c.equal(sql(c, "select 6 * 7", native=False), ["42"], "answer of the command-line client")
    c.equal(server.stop(signal.SIGTERM, 20), 0, "exit status")


if __name__ == "__main__":
    main()
