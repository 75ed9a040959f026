# SPDX-License-Identifier: Apache-2.0
"""
Cases of the guests python_*.py, one per process: `python_io.py CASE`, `--list`.

Run by ../python.py. A case checks itself with assert; its last line on stdout is `ok CASE`.
"""

import sys
import threading

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


def main():
    if sys.argv[1] == "--list":
        print("\n".join(CASES))
    else:
        CASES[sys.argv[1]]()
        print("ok", sys.argv[1])
