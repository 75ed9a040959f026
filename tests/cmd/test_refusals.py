# SPDX-License-Identifier: Apache-2.0
"""What `weft run` refuses, and that it says so in one line with the right exit code."""
import os
import shutil
import struct
import subprocess
import unittest

from cmdtest import WEFT, CommandTest

PROGRAM = "int main(void) { return 0; }"


class Refusals(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.dynamic = cls.compile("dynamic", PROGRAM)
        with open(cls.dynamic, "rb") as f:
            cls.bytes = f.read()

    def refuse(self, program, code, *words):
        self.assert_refused(self.weft("run", program), code, f"cannot run {program}: ", *words)

    def patched(self, name, offset, value):
        content = bytearray(self.bytes)
        content[offset:offset + len(value)] = value
        return self.write(name, bytes(content))

    def with_loader(self, name, loader):
        old = b"/lib64/ld-linux-x86-64.so.2\0"
        self.assertIn(old, self.bytes)
        return self.write(name, self.bytes.replace(old, loader.ljust(len(old), b"\0")))

    def test_the_victim_runs(self):
        self.assertEqual(self.weft("run", self.dynamic).returncode, 0)

    def test_static(self):
        for name, flag in (("static", "-static"), ("static-pie", "-static-pie")):
            program = self.compile(name, PROGRAM, flag)
            if program:
                self.refuse(program, 125, "statically linked", "link it dynamically")

    def test_privileged(self):
        for name, mode, word in (("suid", 0o4755, "set-user-ID"), ("sgid", 0o2755, "set-group-ID")):
            program = self.write(name, self.bytes)
            os.chmod(program, mode)
            if os.stat(program).st_mode & 0o6000 == 0:
                self.skipTest("the file system keeps no set-ID bits")
            self.refuse(program, 125, word, "LD_PRELOAD")

    def test_mandatory_locking_is_no_privilege(self):
        program = self.write("lock", self.bytes)
        os.chmod(program, 0o2705)
        self.assertEqual(self.weft("run", program).returncode, 0)

    def test_file_capabilities(self):
        program = self.write("capable", self.bytes)
        # CAP_NET_BIND_SERVICE permitted and effective, revision 2.
        caps = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)
        try:
            os.setxattr(program, "security.capability", caps)
        except OSError as e:
            self.skipTest(f"cannot set file capabilities: {e}")
        self.refuse(program, 125, "file capabilities", "LD_PRELOAD")

    def test_other_libcs(self):
        for loader, word in ((b"/lib/ld-musl-x86_64.so.1", "musl"), (b"/lib/ld64-uClibc.so.0", "uClibc"),
                             (b"/system/bin/linker64", "bionic"), (b"/lib/ld-other.so", "not glibc's")):
            self.refuse(self.with_loader("other-libc", loader), 125, word)

    def test_missing_loader(self):
        self.refuse(self.with_loader("lost", b"/x/ld-linux-x86-64.so.2"), 127, "missing")

    def test_loader_name_cannot_break_the_line(self):
        self.refuse(self.with_loader("evil", b"/lib/ld\n\x1b[2Jx.so"), 125, "/lib/ld??[2Jx.so")

    def test_other_machines(self):
        self.refuse(self.patched("arm", 18, struct.pack("<H", 183)), 125, "AArch64")
        self.refuse(self.patched("big", 5, b"\2"), 125, "another machine")
        self.refuse(self.patched("x32", 4, b"\1"), 125, "32-bit")
        self.refuse(self.patched("i386", 4, b"\1") and
                    self.write("i386", self.bytes[:4] + b"\1" + self.bytes[5:18] + b"\3\0" +
                               self.bytes[20:]), 125, "32-bit")

    def test_go(self):
        source = ('__attribute__((section(".go.buildinfo"))) const char info[] = "x";' + PROGRAM)
        self.refuse(self.compile("go", source), 125, "Go program")
        note = ('__attribute__((section(".note.go.buildid,\\"a\\",@note#"), aligned(4)))'
                'const struct { int n, d, t; char o[4], b[4]; } id = { 4, 4, 4, "Go", "abc" };')
        program = self.compile("go-note", note + PROGRAM)
        if program:
            self.refuse(program, 125, "Go program")

    def test_shared_library(self):
        library = self.compile("lib.so", "int one(void) { return 1; }", "-shared", "-fPIC")
        self.refuse(library, 126, "shared library")

    def test_object_file(self):
        program = self.compile("object", PROGRAM, "-c")
        os.chmod(program, 0o755)
        self.refuse(program, 126, "not a program")

    def test_damaged(self):
        for length in (5, 51, 63, 64, 100, 700, len(self.bytes) // 4):
            self.refuse(self.write("cut", self.bytes[:length]), 125, "damaged")
        self.refuse(self.patched("phoff", 32, b"\xff" * 8), 125, "damaged")

    def test_no_program(self):
        self.refuse(self.path("nothing"), 127, "no such program")
        self.refuse("weft-has-no-such-program", 127, "no such program", "PATH")
        self.refuse("", 127, "no such program")
        self.refuse(self.dynamic + "/x", 127, "no such program")
        self.refuse(self.dir, 126, "directory")
        self.refuse(self.write("plain", self.bytes, mode=0o644), 126, "not executable")
        self.refuse(self.write("data", b"PK\3\4\0\0"), 126, "neither an ELF program nor a script")
        self.refuse("/dev/null", 126, "not executable")
        self.refuse("x" * 5000, 126)

    def test_scripts(self):
        static = self.compile("static-sh", PROGRAM, "-static")
        if static:
            self.refuse(self.write("s1", f"#!{static} -x\n".encode()), 125, "statically linked")
        self.refuse(self.write("s2", b"#!/no/such/shell\n"), 127, "/no/such/shell", "missing")
        self.refuse(self.write("s3", b"#!\n"), 126, "names no interpreter")
        self.refuse(self.write("s4", b"#!   \t"), 126, "names no interpreter")
        self.refuse(self.write("s5", b"#!" + b"/" * 300), 126, "names no interpreter")
        self.refuse(self.write("s6", b"#!/tmp\n"), 126, "not executable")
        loop = self.path("loop")
        self.refuse(self.write("loop", f"#!{loop}\n".encode()), 126, "deep")

    def test_execute_only_file(self):
        program = self.write("blind", self.bytes, mode=0o711)
        if os.geteuid() != 0:
            os.chmod(program, 0o111)
            self.refuse(program, 125, "cannot be read")
            return
        os.chmod(self.dir, 0o755)
        os.chmod(program, 0o111)
        # Another user may not look into the folder where it was built.
        command = shutil.copy(WEFT, self.path("weft"))
        done = subprocess.run([command, "run", program], env=self.environment(), cwd=self.dir,
                              capture_output=True, user=65534, check=False)
        self.assert_refused(done, 125, "cannot be read")


if __name__ == "__main__":
    unittest.main()
