#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
CPython's own tests of what touches threads, signals, processes and descriptors, compared test by test
with a native run: one that fails, or is skipped, natively must do the same under weft.

The modules are those that say much in little time; together they take about 45 seconds natively. With WEFT_MODULES=others
in the environment, those that have less to do with threads.
"""

import os
import xml.etree.ElementTree

from harness import case, find_program, main
from procs import Skip, StepFailed

# The system's interpreter: Debian packages the tests of this one.
INTERPRETER = "/usr/bin/python3"
# The longest ones come first, so that none is left alone in the end.
OF_THREADS = [
    "test_threading",
    "test_eintr",
    "test_threadsignals",
    "test_epoll",
    "test_sched",
    "test_select",
    "test_socketserver",
    "test_thread",
    "test_threadedtempfile",
    "test_threading_local",
]
OTHERS = [
    "test_asynchat",
    "test_asyncore",
    "test_context",
    "test_contextlib",
    "test_fcntl",
    "test_file_eintr",
    "test_gc",
    "test_httpservers",
    "test_mmap",
    "test_os",
    "test_posix",
    "test_pty",
    "test_time",
    "test_urllib2_localnet",
]
MODULES = OTHERS if os.environ.get("WEFT_MODULES") == "others" else OF_THREADS
LIMIT_S = 90


def outcomes(path):
    """What became of every test, and why some failed, by name."""
    found, reasons = {}, {}
    for test in xml.etree.ElementTree.parse(path).iter("testcase"):
        marks = {child.tag for child in test} & {"failure", "error", "skipped"}
        # A test that failed in a part of it is listed once more for each part.
        found.setdefault(test.get("name"), set()).update(marks)
        for child in test:
            if child.tag in ("failure", "error"):
                reasons[test.get("name")] = child.text or ""
    return {name: " ".join(sorted(marks)) or "passes" for name, marks in found.items()}, reasons


def installed(c, python):
    """Those of the modules that the interpreter has."""
    def make(path):
        look = "import importlib.util, sys, test.libregrtest;"\
               "print(*(m for m in sys.argv[1:] if importlib.util.find_spec(f'test.{m}')))"
        result = c.call(python, "-c", look, *MODULES, native=True, status=None)
        (path / "found").write_text(result.out)
    return (c.prepared("modules", make) / "found").read_text().split()


def add_module(module):
    def run(c):
        python = find_program(INTERPRETER)
        if module not in installed(c, python):
            raise Skip(f"{module} is not installed (Debian: libpython3.11-testsuite)")
        report = c.home / "report.xml"
        # "network" is the loopback interface for these modules.
        result = c.call(python, "-m", "test", "-u", "network", "-v", "--junit-xml", report, module,
                        limit_s=LIMIT_S, status=None)
        if not report.exists():
            raise StepFailed(f"no report; exit status {result.status}")
        c.same_tests(*outcomes(report))
        c.same("exit status", result.status)
    run.__name__ = module
    case(run, compare=True, limit_s=LIMIT_S + 20)


for name in MODULES:
    add_module(name)

if __name__ == "__main__":
    main(at_once=2)     # nine tenths of their time is waiting
