#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everyday programs, most without a thread: they must behave as if nothing were there."""

import os
import signal

import clients
from harness import GUESTS, case, find_program, main


@case
def shell_pipelines(c):
    script = """
set -eu -o pipefail
[ "$(seq 100000 | sort -rn | head -50000 | sort -n | tail -1)" = 100000 ]
[ "$(printf '%s\\n' a b c | while read -r x; do printf '%s-' "$x"; done)" = a-b-c- ]
diff <(seq 100) <(seq 100)
for i in $(seq 20); do (exit "$i") && exit 1 || [ $? = "$i" ]; done
for i in $(seq 20); do sleep 0.1 & done
wait
cat <<END | tr a-z A-Z > upper
here document
END
[ "$(cat upper)" = "HERE DOCUMENT" ]
dd if=/dev/zero bs=64k count=100 2>/dev/null | wc -c | grep -qx 6553600
find /etc -maxdepth 1 -name 'host*' | xargs -n 1 -P 4 test -e
echo done
"""
    result = c.call(find_program("bash"), "-c", script)
    c.equal((result.out, result.err), ("done\n", ""), "output")


@case
def shell_traps_and_job_control(c):
    script = """
trap 'echo term' TERM
trap 'echo bye' EXIT
kill -TERM $$
sleep 100 & kill $!; wait $!; echo $?
timeout 0.2 sleep 100; echo $?
(trap '' INT; kill -INT $BASHPID; echo ignored)
bash -c 'kill -SEGV $$' 2>/dev/null; echo $?
"""
    result = c.call(find_program("bash"), "-c", script)
    c.equal(result.out, "term\n143\n124\nignored\n139\nbye\n", "stdout")


@case
def exit_statuses_and_signals_pass_through(c):
    sh = find_program("sh")
    for status in 0, 1, 77, 255:
        c.call(sh, "-c", f"exit {status}", status=status)
    for number in signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGPIPE:
        c.call(sh, "-c", f"kill -{int(number)} $$", status=-number)


@case(compare=True)
def sigterm_while_idle(c):
    for name, *args in ["sleep", "600"], ["cat"], ["tail", "-f", "/dev/null"]:
        stdin, writer = os.pipe()       # never written: a read from it waits
        with open(stdin, "rb") as reader, open(writer, "wb"):
            program = c.start(find_program(name), *args, stdin=reader)
            program.become_idle()
            c.idle(program)
            c.equal(program.stop(signal.SIGTERM, 2), -signal.SIGTERM, f"{name}: exit status")


@case
def stop_and_continue(c):
    program = c.start(find_program("sh"), "-c", "sleep 0.5; echo done")
    program.become_idle()
    program.send(signal.SIGSTOP)
    program.become_idle()
    program.send(signal.SIGCONT)
    c.equal(program.wait(20), 0, "exit status")
    c.equal(program.out, "done\n", "stdout")


@case
def compiler_makes_a_working_program(c):
    gcc = find_program("gcc", "cc")
    result = c.call(gcc, "-O2", "-Wall", "-pipe", "-pthread", "-o", c.home / "hello",
                    GUESTS / "hello.c", limit_s=60)
    c.equal(result.err, "", "compiler messages")
    c.equal(c.call(c.home / "hello").out, "45000\n", "output of the compiled program")


@case
def git_makes_commits(c):
    git = find_program("git")
    env = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a",
           "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "a",
           "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
           "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"}
    tree = c.home / "tree"

    def run(*args, cwd=tree):
        return c.call(git, *args, env=env, cwd=cwd).out
    run("init", "-q", "-b", "main", str(tree), cwd=c.home)
    for i in range(300):
        (tree / f"file{i}").write_text(f"line {i}\n" * (i + 1))
    run("add", ".")
    run("commit", "-q", "-m", "first")
    (tree / "file7").write_text("changed\n")
    run("commit", "-q", "-a", "-m", "second")
    c.equal(run("log", "--format=%s"), "second\nfirst\n", "log")
    run("-c", "pack.threads=4", "repack", "-q", "-a", "-d", "-f")
    run("-c", "index.threads=4", "-c", "core.preloadindex=true", "status", "--short")
    run("-c", "grep.threads=4", "grep", "-q", "line 299")
    run("fsck", "--full", "--strict")
    run("clone", "-q", f"file://{tree}", str(c.home / "copy"), cwd=c.home)
    head = run("rev-parse", "HEAD")
    c.equal(run("rev-parse", "HEAD", cwd=c.home / "copy"), head, "head of the clone")


@case
def curl_fetches_many_pages(c):
    port = clients.back_end(c, clients.HttpHandler)
    curl = find_program("curl")
    # By name: the resolver thread of libcurl is the thread here.
    url = f"http://localhost:{port}/n[1-100]"
    result = c.call(curl, "-4", "-q", "-sS", "--no-progress-meter", "--noproxy", "*", "-Z",
                    "--parallel-max", 20, url, "-o", f"{c.home}/page#1", limit_s=60)
    c.equal(result.err, "", "stderr")
    for n in range(1, 101):
        c.equal((c.home / f"page{n}").read_bytes(), clients.page(f"/n{n}"), f"page {n}")
    c.call(curl, "-q", "-sS", "--noproxy", "*", "--max-time", "1",
           f"http://127.0.0.1:{clients.reserve_port(c)}/", status=7)


@case
def gdb_starts_and_debugs(c):
    gdb = find_program("gdb")
    env = {"DEBUGINFOD_URLS": ""}
    c.check("GNU gdb" in c.call(gdb, "-nx", "--version").out, "no version line")
    result = c.call(gdb, "-nx", "-batch", "-ex", "print 6 * 7", "-ex", "python print('py', 1 + 1)",
                    env=env, limit_s=60)
    c.check("= 42" in result.out and "py 2" in result.out, f"stdout: {result.out!r}")


def crashing_shell():
    return find_program("sh"), "-c", "kill -SEGV $$"


@case
def gdb_runs_a_program(c):
    # gdb has threads of its own, and the kernel takes a tracer's requests from one kernel thread only.
    result = c.call(find_program("gdb"), "-nx", "-batch", "-ex", "run", "-ex", "bt", "-ex", "kill",
                    "--args", *crashing_shell(), env={"DEBUGINFOD_URLS": ""}, limit_s=120)
    c.check("received signal SIGSEGV" in result.out and "#0 " in result.out, result.out)


@case
def strace_follows_threads(c):
    result = c.call(find_program("strace"), "-f", "-o", c.home / "calls", *crashing_shell(),
                    status=-11, limit_s=120)
    c.equal(result.out, "", "stdout")
    c.check("killed by SIGSEGV" in (c.home / "calls").read_text(), "no end in the trace")


@case
def sort_with_threads(c):
    sort = find_program("sort")
    lines = [f"{(i * 7919) % 200003:06d}\n" for i in range(200_000)]
    (c.home / "in").write_text("".join(lines))
    c.call(sort, "--parallel=4", "-S", "2M", "-o", c.home / "out", c.home / "in", limit_s=60)
    c.check((c.home / "out").read_text() == "".join(sorted(lines)), "wrong order")


@case
def archives_round_trip(c):
    tar, sh = find_program("tar"), find_program("sh")
    (c.home / "a").mkdir()
    for i in range(200):
        (c.home / "a" / str(i)).write_text("x" * i * 100)
    c.call(sh, "-c", '"$0" cf - a | gzip | gunzip | (mkdir b && cd b && "$0" xf -)', tar)
    c.call(find_program("diff"), "-r", c.home / "a", c.home / "b/a")


@case
def name_services(c):
    result = c.call(find_program("getent"), "hosts", "localhost")
    c.check("localhost" in result.out, f"stdout: {result.out!r}")
    c.equal(c.call(find_program("id"), "-u").out,
            c.call(find_program("id"), "-u", native=True).out, "user id")


if __name__ == "__main__":
    main()
