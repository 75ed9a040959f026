#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages show as a whole program in C compiles, without a warning."""
import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r"^```c\n(.*?)^```$", re.S | re.M)


class Programs(unittest.TestCase):
    def test_each_compiles(self):
        nr = 0
        for page in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "*.md"))):
            with open(page, encoding="utf-8") as f:
                programs = [code for code in BLOCK.findall(f.read()) if re.search(r"\bmain\(", code)]
            for number, code in enumerate(programs, 1):
                with self.subTest(page=os.path.basename(page), program=number):
                    done = subprocess.run([os.environ["CC"], "-xc", "-std=gnu17", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror",
                                           "-fsyntax-only", "-I" + os.path.join(ROOT, "include"), "-"], input=code, text=True, timeout=60,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                    self.assertEqual(done.returncode, 0, done.stdout)
            nr += len(programs)
        self.assertGreater(nr, 6, "the pages have no programs any more")


if __name__ == "__main__":
    unittest.main()
