#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The version map, the headers and the library name the same functions; headers stand alone in C and C++."""
import glob
import os
import re
import shutil
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIBRARY = os.environ["WEFT_LIBRARY"]
CC, CXX = os.environ["CC"].split(), os.environ["CXX"].split()
HEADERS = sorted(glob.glob(os.path.join(ROOT, "include/weft/*.h")))
CXX_HEADERS = sorted(glob.glob(os.path.join(ROOT, "include/weft/*.hpp")))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion", "-Wsign-conversion"]
C_STANDARDS = ["c99", "c11", "c17", "c23", "c2x"]
CXX_STANDARDS = ["c++11", "c++17", "c++20", "c++23"]
PARTS = ["Where", "Order", "Returns", "Owns", "Cancel", "After"]


def compilers(language):
    """That of the build, and the others that are there."""
    own, names = (CC, ["gcc", "clang", "clang-14"]) if language == "c" else (CXX, ["g++", "clang++", "clang++-14"])
    if language == "c++" and not shutil.which("clang++") and not shutil.which("clang++-14"):
        names = ["g++", "clang", "clang-14"]  # it takes C++ as well
    found, seen = [], set()
    for command in [own, *([name] for name in names if shutil.which(name))]:
        real = (os.path.realpath(shutil.which(command[-1]) or command[-1]), *command[:-1])
        if real not in seen:
            seen.add(real)
            found.append(command)
    return found


def compile_it(command, language, standard, source):
    strict = ["-Wstrict-prototypes"] if language == "c" else []
    return subprocess.run([*command, "-x" + language, "-std=" + standard, *WARNINGS, *strict, "-fsyntax-only", "-I",
                           os.path.join(ROOT, "include"), "-"], input=source, text=True, capture_output=True, check=False)


def compile_all(paths, language, standards):
    """What does not compile; a compiler that does not know a standard is not asked for it."""
    bad = []
    for command in compilers(language):
        for standard in standards:
            # Its library may be too old for it, or not there.
            probe = "#include <stdint.h>\n" if language == "c" else "#include <cstdint>\n"
            if paths and paths[0].endswith(".hpp"):
                probe = "#include <ranges>\n#include <stop_token>\n"
            if compile_it(command, language, standard, probe).returncode:
                continue
            names = [f"#include <weft/{os.path.basename(path)}>\n" * 2 for path in paths]
            # Alone in the oldest one, which knows least; then together, and once more for what a guard lets through.
            for source in names if standard == standards[0] else ["".join(names)]:
                done = compile_it(command, language, standard, source)
                if done.returncode:
                    bad.append(f"{source} {command} {standard}: {done.stderr}")
    return bad


def lacks(text):
    """What the comments of a header's functions lack."""
    bad = []
    pattern = r"(/\*(?:(?!\*/).)*\*/\s*)?WEFT_API\b([^;{]*?)\b(weft_\w+)\s*(\([^;]*\));"
    for m in re.finditer(pattern, text, re.S):
        comment, name, parameters = m.group(1) or "", m.group(3), m.group(4)
        found = [part for part in re.findall(r"^ \* (\w+): +\S", comment, re.M) if part in PARTS]
        if found != PARTS:
            bad.append(f"{name}: has {found}, not {PARTS}")
            continue
        where = re.search(r"Where:(.*?)\n \* Order:", comment, re.S).group(1).replace("\n *", " ")
        where = re.sub(r"\s+", " ", where)
        if "signal handler" not in where:
            bad.append(f"{name}: Where: says nothing of signal handlers")
        if not re.search(r"\bParks\b|\bNever waits\b", where):
            bad.append(f"{name}: Where: says neither Parks nor Never waits")
        parameters = re.sub(r"\(\*(\w+)\)\([^()]*\)", r" \1", parameters[1:-1])
        for parameter in parameters.split(","):
            word = re.findall(r"\w+", parameter)[-1]
            if word != "void" and not re.search(rf"\b{word}\b", comment):
                bad.append(f"{name}: its comment does not name {word}")
    return bad


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

    def test_headers_stand_alone_in_c(self):
        self.assertEqual(compile_all(HEADERS, "c", C_STANDARDS), [])

    def test_headers_stand_alone_in_cxx(self):
        self.assertEqual(compile_all(HEADERS, "c++", CXX_STANDARDS), [])

    def test_headers_for_cxx_stand_alone(self):
        self.assertEqual(compile_all(CXX_HEADERS, "c++", ["c++20", "c++23"]), [])

    def test_each_function_is_documented_whole(self):
        for path in HEADERS:
            self.assertEqual(lacks(read(path)), [], os.path.basename(path))

    def test_a_function_that_is_not_documented_is_found(self):
        whole = read(os.path.join(ROOT, "include/weft/event.h"))
        for part in PARTS:
            self.assertNotEqual(lacks(re.sub(rf"^ \* {part}:", " * Else:", whole, count=1, flags=re.M)), [], part)
        self.assertEqual(len(lacks("WEFT_API int weft_new(int size);\n")), 1)

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
