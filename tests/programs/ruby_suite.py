#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Ruby's own tests of threads, processes and signals, compared test by test with a native run.

No package has them: they are in Ruby's source, which WEFT_RUBY_SOURCE names (`apt-get source ruby3.1`, unpacked). They
take about three minutes natively.
"""

import os
import re
from pathlib import Path

from harness import case, find_program, main
from procs import Skip

FILES = [
    "fiber/test_mutex.rb",
    "fiber/test_process.rb",
    "fiber/test_thread.rb",
    "monitor/test_monitor.rb",
    "ruby/test_process.rb",
    "ruby/test_signal.rb",
    "ruby/test_thread.rb",
    "ruby/test_thread_cv.rb",
    "ruby/test_thread_queue.rb",
    "ruby/test_threadgroup.rb",
    "test_open3.rb",
    "test_timeout.rb",
]
LIMIT_S = 280
RAN = re.compile(r"^\[ *\d+/\d+\] (\w+#\w+)", re.M)
OTHER = re.compile(r"^ +\d+\) (Failure|Error|Skipped):\n(\w+#\w+)", re.M)


def find_source():
    source = os.environ.get("WEFT_RUBY_SOURCE")
    if not source:
        raise Skip("Ruby's source is not there: WEFT_RUBY_SOURCE names it")
    source = Path(source).resolve()
    if not (source / "test/runner.rb").exists():
        raise Skip(f"{source} holds no tests of Ruby")
    return source


def outcomes(text):
    """What became of every test, by name."""
    found = {name: "passes" for name in RAN.findall(text)}
    found.update({name: what.lower() for what, name in OTHER.findall(text)})
    return found


def add_file(file):
    def run(c):
        source, ruby = find_source(), find_program("/usr/bin/ruby")
        result = c.call(ruby, "-W0", "-I", source / "tool/lib", source / "test/runner.rb", "-v",
                        "--color=never", "--tty=no", "--show-skip", "--test-order=sorted",
                        source / "test" / file, limit_s=LIMIT_S, status=None)
        found = outcomes(result.out)
        c.check(found, f"no test ran; exit status {result.status}")
        c.same_tests(found, {})
        c.same("exit status", result.status)
    run.__name__ = Path(file).with_suffix("").as_posix().replace("/", "_")
    case(run, compare=True, limit_s=LIMIT_S + 20)


for name in FILES:
    add_file(name)

if __name__ == "__main__":
    main()
