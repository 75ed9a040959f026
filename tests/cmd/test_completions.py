#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of the command line: bash, zsh and fish know what the help texts name. WEFT_COMPLETIONS is the folder of the files."""
import os
import re
import shutil
import subprocess
import unittest

from cmdtest import CommandTest

FILES = os.environ["WEFT_COMPLETIONS"]


class CompletionTest(CommandTest):
    def page(self, *name):
        return self.weft("help", *name).stdout.decode()

    def commands(self):
        return [n for n in re.findall(r"^  ([a-z]+) ", self.page(), re.M) if n not in ("help", "version")]

    def long_options(self, command):
        """Wherever the page names one in the first column, whatever stands around it."""
        columns = [re.split(r"\s{2,}", line.strip())[0] for line in self.page(command).splitlines() if line.startswith("  -")]
        return sorted({o for column in columns for o in re.findall(r"--[a-z][a-z-]*", column)})

    def shell(self, name, script, *args):
        if not shutil.which(name):
            self.skipTest(f"no {name} here")
        done = subprocess.run([name, *args, script], cwd=self.dir, env=self.environment(HOME=self.dir, FILES=FILES),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def bash(self, *words):
        line = " ".join(f"'{w}'" for w in words)
        return self.shell("bash", f'. "$FILES/weft.bash"; COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}; _weft; '
                          'printf "%s\\n" "${COMPREPLY[@]}"', "--norc", "-c")

    def fish(self, *words):
        lines = self.shell("fish", f'source "$FILES/weft.fish"; complete -C "{" ".join(words)}"', "--no-config", "-c")
        return [line.split("\t")[0] for line in lines]

    def zsh(self, *words):
        """The real functions want a terminal: what they are given is what counts."""
        line = " ".join(f"'{w}'" for w in words)
        return self.shell("zsh", '_arguments() { print -rl -- "$@"; }; _describe() { print -rl -- ${(P)2}; }; '
                          f'complete_() {{ . "$FILES/_weft"; }}; words=({line}); CURRENT={len(words)}; complete_', "-f", "-c")

    def test_there_is_something_to_complete(self):
        self.assertLessEqual({"run", "dump", "doctor", "bench", "compare"}, set(self.commands()))
        self.assertLessEqual({"--workers", "--children", "--io-uring"}, set(self.long_options("run")))
        self.assertLessEqual({"--ruby", "--python"}, set(self.long_options("bench")))

    def test_bash_knows_each_option(self):
        self.assertLessEqual(set(self.commands()), set(self.bash("weft", "")))
        for command in self.commands():
            self.assertLessEqual(set(self.long_options(command)), set(self.bash("weft", command, "--")))

    def test_fish_knows_each_option(self):
        self.assertLessEqual(set(self.commands()), set(self.fish("weft", "")))
        for command in self.commands():
            found = {option.split("=")[0] for option in self.fish("weft", command, "--")}
            self.assertLessEqual(set(self.long_options(command)), found)

    def test_zsh_knows_each_option(self):
        self.assertLessEqual(set(self.commands()), {line.split(":")[0] for line in self.zsh("weft", "")})
        for command in self.commands():
            found = {re.match(r"\*?(-*[a-z-]*)", line)[1] for line in self.zsh("weft", command, "--")}
            self.assertLessEqual(set(self.long_options(command)), found)

    def test_values(self):
        self.assertEqual(self.bash("weft", "run", "--io-uring", "a"), ["auto", "always"])
        self.assertEqual(self.bash("weft", "run", "--io-uring", "=", "n"), ["never"])
        self.assertEqual(self.bash("weft", "run", "--model", ""), ["1:1", "1:N", "M:N"])
        self.assertEqual(self.bash("weft", "bench", "io"), ["io-models"])
        self.assertEqual(self.bash("weft", "help", "d"), ["dump", "doctor"])

    def test_processes(self):
        usage = {c: self.page(c).split("\n\n")[0] for c in self.commands()}
        commands = [c for c in usage if re.search(r"\bPID\b", usage[c]) and "PROGRAM" not in usage[c]]
        self.assertIn("dump", commands)
        for command in commands:
            self.assertIn(str(os.getpid()), self.bash("weft", command, ""), command)

    def test_values_in_fish(self):
        self.assertEqual(self.fish("weft", "run", "--io-uring", "n"), ["never"])
        self.assertEqual(self.fish("weft", "bench", "io"), ["io-models"])

    def test_options_behind_the_program_are_the_programs(self):
        for words in (("ls", "--wor"), ("--workers", "2", "ls", "--wor"), ("--stats", "--", "ls", "--wor")):
            self.assertNotIn("--workers", self.bash("weft", "run", *words))
        self.assertIn("--workers", self.bash("weft", "run", "--seed", "7", "--wor"))
        self.assertIn("--workers", self.bash("weft", "run", "--seed", "=", "7", "--wor"))

    def test_options_behind_the_program_are_the_programs_in_fish(self):
        for words in (("ls", "--wor"), ("--workers", "2", "ls", "--wor"), ("--stats", "--", "ls", "--wor")):
            self.assertNotIn("--workers", self.fish("weft", "run", *words))
        self.assertIn("--workers", self.fish("weft", "run", "--seed", "7", "--wor"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
