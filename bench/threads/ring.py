#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thread-ring: ring.py HOPS prints the number of the thread, of 503, that holds the token after so many hops."""
import os
import sys
import threading

RING = 503
left = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
places = [threading.Semaphore(0) for _ in range(RING)]


def stand(i):
    global left
    while True:
        places[i].acquire()
        if left == 0:
            print(i + 1, flush=True)
            os._exit(0)
        left -= 1
        places[(i + 1) % RING].release()


for n in range(RING):
    threading.Thread(target=stand, args=(n,), daemon=True).start()
places[0].release()
threading.Event().wait()
