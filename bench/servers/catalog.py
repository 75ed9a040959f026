# SPDX-License-Identifier: Apache-2.0
"""
The servers that are measured: how each is configured and started, and which load it gets.

Used by: run. A class per server. prepare() makes files and native back ends, command() is what runs natively or
under weft, load() is the command of the load generator for so many clients, and read() turns its output into
(requests per second, p50 us, p99 us). Everything lives in a scratch directory and on free ports.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin:/bin"


class Missing(Exception):
    """A program that this row needs is not installed."""


def find(*names):
    for name in names:
        found = shutil.which(name, path=PATH)
        if found:
            return found
    raise Missing(f"{names[0]} is not installed")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        return True
    except OSError:
        return False


class Server:
    """Defaults: an HTTP server on self.port that keeps connections, asked by bench/loadgen."""

    name = ""
    clients = (10, 1000)
    path = "/"
    stop_signal = "SIGTERM"
    unit = "requests"

    def __init__(self, build, home, nr_clients):
        self.build, self.home, self.nr_clients = Path(build), Path(home), nr_clients
        self.port = free_port()
        self.natives = []

    def prepare(self):
        pass

    def command(self):
        raise NotImplementedError

    def env(self):
        return {}

    def is_up(self):
        return accepts(self.port)

    def warm(self):
        """After the start and before the load: what must not be counted."""

    def load(self, seconds):
        return [self.build / "bench/loadgen/loadgen", "--port", self.port, "--path", self.path,
                "--connections", self.nr_clients, "--warmup", "0.5", "--duration", seconds,
                "--connect-timeout", "40", "--timeout", seconds + 60, "--progress"]

    def read(self, output, _seconds):
        result = json.loads(output.strip().splitlines()[-1])
        return result["rps"], result["p50_us"], result["p99_us"]

    def total(self, rps, took):
        """Requests in the whole of the load, which took so many seconds."""
        return rps * took

    def native(self, argv, **options):
        """A back end or a feeder: always native, ended by run."""
        process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True, **options)
        self.natives.append(process)
        return process

    def write(self, name, text):
        path = self.home / name
        path.write_text(text)
        return path

    def back_end(self):
        """nginx with one process: it answers from memory and costs little."""
        port = free_port()
        (self.home / "www").mkdir()
        (self.home / "www/index.html").write_text("It works.\n" * 20)
        config = self.write("nginx.conf", f"""
daemon off; master_process off; worker_processes 1; pid {self.home}/nginx.pid; error_log stderr crit;
events {{ worker_connections 4000; }}
http {{ access_log off; keepalive_requests 100000000; tcp_nodelay on;
  client_body_temp_path {self.home}/n1; proxy_temp_path {self.home}/n2;
  fastcgi_temp_path {self.home}/n3; uwsgi_temp_path {self.home}/n4; scgi_temp_path {self.home}/n5;
  server {{ listen 127.0.0.1:{port} backlog=4000; root {self.home}/www; }} }}
""")
        self.native([find("nginx"), "-c", config, "-e", "stderr"])
        until = time.monotonic() + 10
        while not accepts(port) and time.monotonic() < until:
            time.sleep(0.05)
        return port

    def exchange(self, seconds, *options):
        return [self.build / "bench/servers/exchange", "--port", self.port, "--clients",
                self.nr_clients, "--duration", seconds, *options]

    @staticmethod
    def read_exchange(output):
        result = json.loads(output)
        return result["requests"] / result["seconds"], result["p50_us"], result["p99_us"]


class Python(Server):
    name = "python ThreadingHTTPServer"

    def command(self):
        return ["/usr/bin/python3", ROOT / "examples/python/http_server.py", "--port", self.port]


class Webrick(Server):
    name = "WEBrick"

    def command(self):
        script = self.write("webrick.rb", f"""require "webrick"
log = WEBrick::Log.new($stderr, WEBrick::Log::WARN)
server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: {self.port}, Logger: log,
  AccessLog: [], MaxClients: 2000, DoNotReverseLookup: true,
  RequestTimeout: 120)
server.listeners.each {{ |listener| listener.listen(1024) }}
server.mount_proc("/") {{ |request, answer| answer.body = "you asked for #{{request.path}}\\n" }}
%w[INT TERM].each {{ |name| trap(name) {{ server.shutdown }} }}
server.start
""")
        return [find("ruby"), script]


class Puma(Server):
    name = "puma"

    def command(self):
        self.write("config.ru", """run lambda { |env|
  [200, {"Content-Type" => "text/plain"}, ["you asked for #{env["PATH_INFO"]}\\n"]] }
""")
        return [find("ruby"), find("puma"), "-b", f"tcp://127.0.0.1:{self.port}?backlog=1024", "-t", "16:16",
                "-e", "production", "-q", self.home / "config.ru"]


class Stunnel(Server):
    name = "stunnel4"

    def prepare(self):
        self.back = self.back_end()
        subprocess.run([find("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
                        "2", "-subj", "/CN=localhost", "-keyout", self.home / "k", "-out",
                        self.home / "c"], check=True, stderr=subprocess.DEVNULL)
        pem = self.home / "cert.pem"
        pem.write_bytes((self.home / "k").read_bytes() + (self.home / "c").read_bytes())
        pem.chmod(0o600)

    def command(self):
        config = self.write("stunnel.conf", f"""foreground = yes
pid =
output = {self.home}/stunnel.log
debug = err
syslog = no
TIMEOUTclose = 0
[http]
accept = 127.0.0.1:{self.port}
connect = 127.0.0.1:{self.back}
cert = {self.home}/cert.pem
""")
        return [find("stunnel4", "stunnel"), config]

    def load(self, seconds):
        return [find("wrk"), "-t", "1", "-c", self.nr_clients, "-d", f"{max(1, round(seconds))}s",
                "--timeout", "30s", "--latency", f"https://127.0.0.1:{self.port}/"]

    def read(self, output, _seconds):
        def us(name):
            number, unit = re.search(rf"{name}\s+([\d.]+)(us|ms|s)", output).groups()
            return float(number) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]
        return float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1]), us("50%"), us("99%")


class Tinyproxy(Server):
    name = "tinyproxy"

    def prepare(self):
        self.back = self.back_end()

    def command(self):
        config = self.write("tinyproxy.conf", f"""Port {self.port}
Listen 127.0.0.1
Allow 127.0.0.1
MaxClients 2000
Timeout 60
LogLevel Error
LogFile "{self.home}/tinyproxy.log"
""")
        return [find("tinyproxy"), "-d", "-c", config]

    def load(self, seconds):
        return self.exchange(seconds, "--reconnect", "--answer", 200, "--request",
                             f"GET http://127.0.0.1:{self.back}/ HTTP/1.0\\r\\n\\r\\n")

    def read(self, output, _seconds):
        return self.read_exchange(output)


class Mariadb(Server):
    name = "mariadb sysbench"
    handling = "one-thread-per-connection"

    def prepare(self):
        # Once for all rounds: the tables are only read.
        self.data = self.home.parent / "mariadb-data"
        if not self.data.exists():
            subprocess.run([find("mariadb-install-db"), "--no-defaults", f"--datadir={self.data}",
                            "--user=root", "--skip-test-db",
                            "--auth-root-authentication-method=normal"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.is_new = True
        else:
            self.is_new = False

    def command(self):
        return [find("mariadbd", "mysqld"), "--no-defaults", "--user=root", f"--datadir={self.data}",
                f"--socket={self.home}/socket", f"--pid-file={self.home}/pid",
                f"--log-error={self.home}/mariadb.log", "--skip-networking",
                "--max-connections=1200", "--back-log=1200", "--innodb-buffer-pool-size=128M",
                "--innodb-flush-log-at-trx-commit=2", "--table-open-cache=4000",
                "--max-prepared-stmt-count=1000000",
                f"--thread-handling={self.handling}"]

    def is_up(self):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            try:
                sock.connect(str(self.home / "socket"))
                return bool(sock.recv(100))
            except OSError:
                return False

    def sysbench(self, *options):
        return [find("sysbench"), "oltp_read_only", f"--mysql-socket={self.home}/socket",
                "--mysql-user=root", "--mysql-db=bench", "--tables=2", "--table-size=10000",
                "--percentile=99", *options]

    def warm(self):
        if self.is_new:
            subprocess.run([find("mariadb", "mysql"), "--no-defaults",
                            f"--socket={self.home}/socket", "--user=root", "-e",
                            "create database bench"], check=True)
            subprocess.run([str(a) for a in self.sysbench("prepare")], check=True,
                           stdout=subprocess.DEVNULL)

    def load(self, seconds):
        return self.sysbench(f"--threads={self.nr_clients}", f"--time={max(1, round(seconds))}",
                             "run")

    def read(self, output, _seconds):
        rps = float(re.search(r"queries:\s+\d+\s+\(([\d.]+) per sec", output)[1])
        average = float(re.search(r"avg:\s+([\d.]+)", output)[1])
        return rps, average * 1e3, float(re.search(r"99th percentile:\s+([\d.]+)", output)[1]) * 1e3


class MariadbPool(Mariadb):
    name = "mariadb sysbench, its pool"
    handling = "pool-of-threads"


class MariadbSlap(Mariadb):
    name = "mariadb-slap"
    queries = 2000     # more would spend their time on rows: every other one adds one to what the next returns
    iterations = 10    # their average is told in ms: one takes about 130

    def load(self, seconds):
        return [find("mariadb-slap", "mysqlslap"), "--no-defaults", f"--socket={self.home}/socket",
                "--user=root", f"--concurrency={self.nr_clients}", f"--iterations={self.iterations}",
                "--auto-generate-sql", "--auto-generate-sql-load-type=mixed",
                f"--number-of-queries={self.queries}"]

    def read(self, output, _seconds):
        took = float(re.search(r"Average number of seconds.*?([\d.]+) seconds", output)[1])
        return self.queries / max(took, 1e-3), 0, 0

    def total(self, _rps, _took):
        return self.queries * self.iterations


class Memcached(Server):
    name = "memcached"

    def command(self):
        return [find("memcached"), "-t", "4", "-l", "127.0.0.1", "-p", self.port, "-U", "0", "-u",
                "root", "-m", "64", "-c", "2000", "-b", "1024"]

    def warm(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as sock:
            sock.sendall(b"set key 0 0 100\r\n" + b"x" * 100 + b"\r\n")
            assert sock.recv(100) == b"STORED\r\n"

    def load(self, seconds):
        answer = len("VALUE key 0 100\r\n") + 102 + len("END\r\n")
        return self.exchange(seconds, "--request", "get key\\r\\n", "--answer", answer)

    def read(self, output, _seconds):
        return self.read_exchange(output)


class Apache(Server):
    name = "apache2 worker"
    path = "/index.html"

    def command(self):
        # How a few connections fall on two processes makes a third of a difference, natively too.
        processes = 1 if self.nr_clients < 100 else 2
        modules = Path("/usr/lib/apache2/modules")
        (self.home / "www").mkdir()
        (self.home / "www/index.html").write_text("It works.\n" * 20)
        self.home.chmod(0o755)
        config = self.write("apache.conf", f"""ServerRoot {self.home}
ServerName localhost
Listen 127.0.0.1:{self.port}
ListenBacklog 1024
PidFile {self.home}/apache.pid
ErrorLog {self.home}/error.log
LogLevel error
DocumentRoot {self.home}/www
LoadModule mpm_worker_module {modules}/mod_mpm_worker.so
LoadModule authz_core_module {modules}/mod_authz_core.so
StartServers {processes}
ServerLimit {processes}
ThreadLimit 600
ThreadsPerChild 600
MaxRequestWorkers {600 * processes}
MinSpareThreads 1
MaxSpareThreads {600 * processes}
MaxKeepAliveRequests 0
KeepAliveTimeout 60
""")
        return [find("apache2"), "-f", config, "-DFOREGROUND"]


class Icecast(Server):
    """One source of so many bytes a second in all; each listener gets all of it."""

    name = "icecast2"
    unit = "KB"

    def command(self):
        self.home.chmod(0o777)
        rate = 2_000_000 if self.nr_clients < 100 else 40_000
        self.rate = rate
        config = self.write("icecast.xml", f"""<icecast>
<limits><clients>1200</clients><sources>2</sources><queue-size>8388608</queue-size>
<burst-size>0</burst-size></limits>
<authentication><source-password>secret</source-password><admin-user>a</admin-user>
<admin-password>secret</admin-password></authentication>
<hostname>localhost</hostname>
<listen-socket><port>{self.port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
<paths><basedir>{self.home}</basedir><logdir>{self.home}</logdir><webroot>/usr/share/icecast2/web</webroot>
<adminroot>/usr/share/icecast2/admin</adminroot></paths>
<logging><accesslog>access.log</accesslog><errorlog>error.log</errorlog><loglevel>3</loglevel></logging>
<security><chroot>0</chroot><changeowner><user>nobody</user><group>nogroup</group></changeowner></security>
</icecast>
""")
        return [find("icecast2"), "-c", config]

    def is_up(self):
        # A client that comes before all of its threads are up can crash it.
        log = self.home / "error.log"
        return log.exists() and "No SSL capability" in log.read_text()

    def warm(self):
        time.sleep(0.5)
        self.native(["/usr/bin/python3", HERE / "icecast_source.py", self.port, self.rate])
        time.sleep(0.5)

    def load(self, seconds):
        # Its listen queue has five places.
        return self.exchange(seconds, "--stream", "--at-once", 4, "--request",
                             "GET /live HTTP/1.0\\r\\n\\r\\n")

    def read(self, output, seconds):
        return json.loads(output)["bytes"] / 1000 / seconds, 0, 0


class Haproxy(Server):
    name = "haproxy"

    def prepare(self):
        self.back = self.back_end()

    def command(self):
        config = self.write("haproxy.cfg", f"""global
    nbthread 4
    maxconn 2000
    hard-stop-after 2s
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    http-reuse always
frontend f
    bind 127.0.0.1:{self.port}
    default_backend b
backend b
    server s 127.0.0.1:{self.back}
""")
        return [find("haproxy"), "-db", "-f", config]


class Redis(Server):
    name = "redis"
    threads = 1

    def command(self):
        return [find("redis-server"), "--port", self.port, "--bind", "127.0.0.1", "--save", "",
                "--dir", self.home, "--io-threads", self.threads, "--io-threads-do-reads", "yes",
                "--maxclients", "1500", "--tcp-backlog", "511"]

    def load(self, seconds):
        # It counts requests, not seconds.
        self.nr_requests = round(seconds * (20000 if self.nr_clients == 1 else 100000))
        return [find("redis-benchmark"), "-p", self.port, "-c", self.nr_clients, "-n",
                self.nr_requests, "-t", "get", "--csv"]

    def total(self, rps, took):
        return self.nr_requests

    def read(self, output, _seconds):
        row = output.strip().splitlines()[-1].replace('"', "").split(",")
        return float(row[1]), float(row[4]) * 1e3, float(row[6]) * 1e3


class RedisThreads(Redis):
    name = "redis, 2 io-threads"
    threads = 2


SERVERS = [Python, Webrick, Puma, Stunnel, Tinyproxy, Mariadb, MariadbPool, MariadbSlap, Memcached,
           Apache, Icecast, Haproxy, Redis, RedisThreads]
