# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it, and making victims for it.

Used by the test_*.py files of this folder. WEFT_COMMAND names the command, CC the compiler. A dummy library
stands in for the one that `weft run` preloads, so these tests say nothing about scheduling.
"""
import fcntl
import os
import pty
import shlex
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

WEFT = os.environ["WEFT_COMMAND"]
CC = shlex.split(os.environ.get("CC", "cc"))


class CommandTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="weft-cmd-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        cls.library = cls.compile("libdummy.so", "int weft_inspect;", "-shared", "-fPIC")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.dir, name)

    @classmethod
    def compile(cls, name, source, *args):
        """Compiles C source; returns the path, or None where the compiler cannot do that."""
        out = cls.path(name)
        done = subprocess.run(CC + ["-x", "c", "-", "-o", out, *args], input=source, text=True,
                              stderr=subprocess.DEVNULL, check=False)
        return out if done.returncode == 0 else None

    @classmethod
    def write(cls, name, content, mode=0o755):
        out = cls.path(name)
        with open(out, "wb") as f:
            f.write(content)
        os.chmod(out, mode)
        return out

    def environment(self, **changes):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("WEFT") and k not in ("LD_PRELOAD", "GLIBC_TUNABLES", "LSAN_OPTIONS")}
        env["WEFT_LIBRARY"] = self.library
        env["LC_ALL"] = "C"
        # A command built with AddressSanitizer would not start behind any preload.
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0"
        env.update(changes)
        return {k: v for k, v in env.items() if v is not None}

    def weft(self, *args, **changes):
        return subprocess.run([WEFT, *args], env=self.environment(**changes), cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False)

    def on_a_terminal(self, columns, *args):
        """The lines that come out on a terminal that is so wide."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([WEFT, *args], env=self.environment(WEFT_LIBRARY=None), stdin=subprocess.DEVNULL,
                              stdout=its, stderr=its) as p:
            os.close(its)
            text = b""
            while True:
                try:
                    text += os.read(ours, 4096)
                except OSError:  # EIO: the last writer has gone
                    break
            self.assertEqual(p.wait(), 0)
        os.close(ours)
        return text.decode().replace("\r\n", "\n").split("\n")

    def assert_refused(self, done, code, *words):
        """One line on stderr, the exit code, nothing on stdout."""
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(message.startswith("weft: ") and message.endswith("\n"), repr(message))
        self.assertEqual(message.count("\n"), 1, repr(message))
        for word in words:
            self.assertIn(word, message)


if __name__ == "__main__":
    unittest.main()
