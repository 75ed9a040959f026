# SPDX-License-Identifier: Apache-2.0
"""The n-th system call of the runtime fails, for every n: nothing is lost, nothing hangs.

    test_fault.py WEFT LIBRARY SCENARIOS echo|file [KIND N]

One run counts the calls that can fail in each way; further runs make the n-th fail. Of more than MAX_POINTS of
a kind as many are chosen, spread evenly; with KIND and N only that one is run. Output is TAP.
"""
import os
import struct
import subprocess
import sys
import tempfile

LASTS = 1000000  # times: a shortage that does not end
KINDS = {"EINTR": 1, "ENOMEM": 2, "EMFILE": 3, "EAGAIN": 4, "short": 5, "ENOSPC": 6,
         "EPERM": 7, "kthread": 8, "mprotect": 9, "refused": 10}
TIMES = {"EAGAIN": (1, 50), "ENOSPC": (1, 50, LASTS), "EMFILE": (1, 50, LASTS),
         "ENOMEM": (1, LASTS),
         "EPERM": (LASTS,), "kthread": (1, 50, LASTS), "mprotect": (1, LASTS),
         "refused": (1, LASTS)}
ALWAYS = {"EINTR", "ENOMEM", "EMFILE", "EAGAIN", "kthread", "mprotect", "refused"}  # there are such calls in each scenario
MAX_POINTS = int(os.environ.get("FAULT_POINTS", "10"))
LIMIT_S = 240 if os.environ.get("CI") else 60


def run(args, kind, nth, times, workers):
    weft, library, program, scenario = args
    with tempfile.NamedTemporaryFile() as f:
        f.write(struct.pack("4I", KINDS[kind], nth, times, 0))
        f.flush()
        env = dict(os.environ, WEFT_LIBRARY=os.path.abspath(library), WEFT_FAULT_FILE=f.name)
        rounds = ["few"] if times == LASTS else []  # of what takes milliseconds each while a shortage lasts
        process = subprocess.Popen([weft, "run", "--workers", str(workers), "--", program, scenario] + rounds,
                                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        try:
            out = process.communicate(timeout=LIMIT_S)[0].decode("utf-8", "replace")
            problem = None if process.returncode == 0 else f"status {process.returncode}: {out}"
        except subprocess.TimeoutExpired:
            dump = subprocess.run([weft, "dump", "--events", "60", str(process.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            problem = "hung\n" + dump.stdout.decode("utf-8", "replace")
            process.kill()
            process.communicate()
        with open(f.name, "rb") as g:
            return problem, struct.unpack("4I", g.read())[3]


def is_as_natively(problem, kind, nth, times):
    """A program that may never have a first thread."""
    return (kind == "kthread" and nth == 1 and times == LASTS
            and problem == "status 1: pthread_create: Resource temporarily unavailable\n")


def points(total):
    if total <= MAX_POINTS:
        return range(1, total + 1)
    return sorted({1 + i * (total - 1) // max(MAX_POINTS - 1, 1) for i in range(MAX_POINTS)})


def main():
    args, only = sys.argv[1:5], sys.argv[5:]
    number = failed = 0
    for kind in KINDS:
        if only and kind != only[0]:
            continue
        for workers in (1, 2):
            problem, total = run(args, kind, 0, 0, workers)
            bad = [problem] if problem else []
            if not total and kind in ALWAYS:
                bad.append("no such call was seen: nothing is injected")
            for nth in [int(only[1])] if only else points(total):
                for times in TIMES.get(kind, (1,)):
                    problem, _ = run(args, kind, nth, times, workers)
                    if problem and not is_as_natively(problem, kind, nth, times):
                        bad.append(f"call {nth}, {times} times: {problem}")
            number += 1
            failed += bool(bad)
            print(f"{'not ok' if bad else 'ok'} {number} - {args[3]}, {kind}, {workers} workers, "
                  f"{total} calls", flush=True)
            for line in "\n".join(bad).splitlines():
                print("#  ", line)
    print(f"1..{number}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
