#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version map, the headers and the library name the same functions; headers stand alone in C and C++."""
import glob
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.environ["WEFT_LIBRARY"]
CC, CXX = os.environ["CC"].split(), os.environ["CXX"].split()
HEADERS = sorted(glob.glob(os.path.join(ROOT, "include/weft/*.h")))
CXX_HEADERS = sorted(glob.glob(os.path.join(ROOT, "include/weft/*.hpp")))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion", "-Wsign-conversion"]
STANDARDS = [[*CC, "-std=c99", "-Wstrict-prototypes"], [*CC, "-std=c17"], [*CXX, "-xc++", "-std=c++17"],
             [*CXX, "-xc++", "-std=c++20"]]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def in_map():
    """By header; what stands before the first one is for readers from outside."""
    names, block = {}, None
    for line in read(os.path.join(ROOT, "src/native/libweft.map")).split("global:")[1].split("local:")[0].splitlines():
        line = line.strip()
        if line.startswith("# "):
            m = re.search(r"(weft/\w+\.h)$", line)
            block = m.group(1) if m else "outside"
            names.setdefault(block, [])
        elif line:
            names[block].append(line.rstrip(";"))
    return names


def in_header(path):
    text = re.sub(r"/\*.*?\*/|^[ \t]*#(?:\\\n|[^\n])*", " ", read(path), flags=re.S | re.M)
    return re.findall(r"\bWEFT_API\b[^;{]*?\b(weft_\w+)\s*\(", text)


def in_library():
    out = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in out.splitlines()]
    return {name.split("@")[0]: (kind, name) for _, kind, name in rows if kind != "A"}


class Exports(unittest.TestCase):
    def test_each_header_declares_what_its_block_of_the_map_lists(self):
        blocks = in_map()
        for path in HEADERS:
            name = "weft/" + os.path.basename(path)
            self.assertEqual(sorted(in_header(path)), sorted(blocks.pop(name, [])), name)
        self.assertEqual([name for name, names in blocks.items() if names], ["outside"], "blocks of headers that are not there")

    def test_the_map_is_sorted(self):
        for block, names in in_map().items():
            self.assertEqual(names, sorted(names), block)

    def test_the_library_exports_what_the_map_lists(self):
        listed = sorted(name for names in in_map().values() for name in names)
        exported = in_library()
        self.assertEqual(sorted(exported), listed)
        for name, (kind, full) in exported.items():
            self.assertTrue(name.startswith("weft_"), name)
            self.assertEqual(kind, "D" if name == "weft_inspect" else "T", name)
            self.assertIn("@@WEFT_", full)

    def test_headers_stand_alone(self):
        bad = []
        for path in HEADERS:
            source = f"#include <weft/{os.path.basename(path)}>\n" * 2
            for standard in STANDARDS:
                done = subprocess.run([*standard, *([] if "-xc++" in standard else ["-xc"]), *WARNINGS, "-fsyntax-only",
                                       "-I", os.path.join(ROOT, "include"), "-"], input=source, text=True,
                                      capture_output=True, check=False)
                if done.returncode:
                    bad.append(f"{os.path.basename(path)} {standard}: {done.stderr}")
        for path in CXX_HEADERS:
            source = f"#include <weft/{os.path.basename(path)}>\n" * 2
            done = subprocess.run([*CXX, "-xc++", "-std=c++20", *WARNINGS, "-fsyntax-only", "-I", os.path.join(ROOT, "include"),
                                   "-"], input=source, text=True, capture_output=True, check=False)
            if done.returncode:
                bad.append(f"{os.path.basename(path)}: {done.stderr}")
        self.assertFalse(bad, "\n".join(bad))

    def test_weft_h_has_all_headers(self):
        included = re.findall(r"#include <weft/(\w+\.h)>", read(os.path.join(ROOT, "include/weft/weft.h")))
        for path in HEADERS:
            name = os.path.basename(path)
            if name != "weft.h":
                self.assertIn(name, included)

    def test_the_library_says_who_it_is(self):
        out = subprocess.run(["readelf", "-dW", LIBRARY], check=True, capture_output=True, text=True).stdout
        self.assertIn("[libweft.so.0]", out)
        for flag in ("NOW", "INITFIRST", "NODELETE"):
            self.assertIn(flag, out)
        self.assertEqual(re.findall(r"NEEDED.*\[(.*)\]", out), ["libc.so.6"])


unittest.main()
