#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perl: interpreter threads (a whole interpreter is cloned per thread), fork, signals, pipes."""

from harness import add_guest_cases, main

add_guest_cases(["perl"], "perl_cases.pl")

if __name__ == "__main__":
    main()
