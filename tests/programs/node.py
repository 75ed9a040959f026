#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Node: worker threads, the libuv thread pool, a JIT, children and signals."""

from harness import add_guest_cases, main

add_guest_cases(["node", "nodejs"], "node_cases.js")

if __name__ == "__main__":
    main()
