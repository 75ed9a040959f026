#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Java: the JVM brings its own signal handlers, alternate stacks, JIT and guard pages."""

import signal
from pathlib import Path

from harness import GUESTS, case, find_program, main

# Small and without files in shared places; the collector of a server, with threads of its own.
OPTIONS = ["-Xmx256m", "-Xshare:auto", "-XX:-UsePerfData", "-XX:+UseG1GC",
           "-XX:-CreateCoredumpOnCrash"]
NAMES = ["fifty_threads_count", "wait_notify_and_locks", "pools_and_queues", "sockets_echo",
         "interrupts_and_sleeps", "faults_become_exceptions", "garbage_collection", "processes"]


def compile_natively(c, source):
    """The directory of the classes."""
    def make(path):
        c.call(find_program("javac"), "-d", path, source, native=True, limit_s=60)
    return c.prepared(Path(source).name, make)


@case
def version_is_printed(c):
    result = c.call(find_program("java"), *OPTIONS, "-version")
    c.check("version" in result.err, f"stderr: {result.err!r}")


def run_guest(name):
    def run(c):
        java = find_program("java")
        classes = compile_natively(c, GUESTS / "Threads.java")
        result = c.call(java, *OPTIONS, "-cp", classes, "Threads", name, limit_s=60)
        c.equal((result.out, result.err), (f"ok {name}\n", ""), "output")
    run.__name__ = name
    return case(run)


@case
def compiler_compiles(c):
    c.call(find_program("javac"), "-J-XX:-UsePerfData", "-d", c.home, GUESTS / "Threads.java",
           limit_s=60)
    c.check((c.home / "Threads.class").exists(), "no class file")


@case(compare=True)
def sigterm_runs_the_shutdown_hooks(c):
    java = find_program("java")
    source = c.home / "Hook.java"
    source.write_text("""
public class Hook {
	public static void main(String[] args) throws Exception {
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		for (int i = 0; i < 20; i++)
			new Thread(() -> {
				try { Thread.sleep(600000); } catch (InterruptedException e) { }
			}).start();
		System.out.println("up");
	}
}
""")
    program = c.start(java, *OPTIONS, "-cp", compile_natively(c, source), "Hook")
    program.wait_line("up")
    c.runs_under_weft(program)
    program.send(signal.SIGQUIT)
    program.wait_for("thread dump on SIGQUIT", lambda: "Full thread dump" in program.out)
    c.idle(program)
    c.same("exit status", program.stop(signal.SIGTERM))
    c.check("hook\n" in program.out, "the shutdown hook did not run")


for guest in NAMES:
    run_guest(guest)

if __name__ == "__main__":
    main()
