# SPDX-License-Identifier: Apache-2.0
"""The gdb script finds its modules, wherever it is loaded from, and leaves nothing beside them. No program is looked at."""
import os
import shutil
import subprocess

import obstest
from obstest import ObsTest

SCRIPT = os.environ["WEFT_GDB_SCRIPT"]
MODULES = "weft_gdb"
WITHOUT = "this program runs without weft"  # said by its commands


class GdbScript(ObsTest):
    def setUp(self):
        if not shutil.which("gdb"):
            self.skipTest("gdb is not installed")
        if "3" not in self.run_gdb("python print(1 + 2)").stdout:
            self.skipTest("gdb without Python")
        self.dir = self.directory()
        self.copy = os.path.join(self.dir, "share")
        os.mkdir(self.copy)
        shutil.copy(SCRIPT, self.copy)
        shutil.copytree(os.path.join(os.path.dirname(SCRIPT), MODULES), os.path.join(self.copy, MODULES),
                        ignore=shutil.ignore_patterns("__pycache__"))

    def run_gdb(self, *commands, folder=None):
        args = ["gdb", "-nx", "-batch"]
        for command in commands:
            args += ["-ex", command]
        env = obstest.environment()
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # a user has none
        return subprocess.run(args, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=obstest.LIMIT_S)

    def test_it_loads_from_any_folder_and_by_any_name(self):
        os.symlink("share/weft-gdb.py", os.path.join(self.dir, "link.py"))
        for folder, name in (("/", os.path.join(self.copy, "weft-gdb.py")), (self.dir, "share/weft-gdb.py"),
                             (self.copy, "weft-gdb.py"), (self.dir, "link.py")):
            done = self.run_gdb(f"source {name}", "info weft", "help weft", folder=folder)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(WITHOUT, done.stderr)
            for word in ("bt", "apply", "thread", "threads", "tree", "locks", "workers"):
                self.assertIn(f"\nweft {word} -- ", done.stdout)

    def test_it_leaves_nothing(self):
        before = sorted(os.walk(self.copy))
        self.run_gdb("source share/weft-gdb.py", "info weft", folder=self.dir)
        self.assertEqual(sorted(os.walk(self.copy)), before)

    def test_a_new_version_is_loaded_over_an_old_one(self):
        file = os.path.join(self.copy, MODULES, "description.py")
        done = self.run_gdb("source weft-gdb.py", f"shell sed -i 's/{WITHOUT}/newer/' {file}", "source weft-gdb.py",
                            "info weft", folder=self.copy)
        self.assertNotIn(WITHOUT, done.stderr)
        self.assertIn("newer", done.stderr)

    def test_without_its_modules_it_says_so(self):
        shutil.rmtree(os.path.join(self.copy, MODULES))
        done = self.run_gdb("source weft-gdb.py", folder=self.copy)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(f"there is no folder {os.path.realpath(self.copy)}/{MODULES}", done.stderr)


obstest.main()
