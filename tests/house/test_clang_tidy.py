"""tools/clang_tidy.py remembers clean files, and only those."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# Finds fault with every file that says `bad`, and writes down what it was asked.
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { echo "$VERSION"; exit 0; }
for file; do :; done
echo "$file" >>"$LOG"
if grep -q bad "$file"; then echo "$file: bad"; exit 1; fi
"""


class ClangTidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-house-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        tool = self.folder / "clang-tidy"
        tool.write_text(CLANG_TIDY)
        tool.chmod(0o755)
        self.log = self.folder / "log"
        self.write("x.hpp", "int f();\n")
        self.write("x.cpp", '#include "x.hpp"\nint g() { return f(); }\n')
        self.compile_commands()

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def compile_commands(self):
        self.write(
            "compile_commands.json",
            json.dumps(
                [
                    {
                        "directory": str(self.folder),
                        "file": "x.cpp",
                        "command": "env CCACHE_NOHASHDIR=1 /usr/bin/ccache g++ -o x.o -c x.cpp",
                    }
                ]
            ),
        )

    def looks(self, *arguments, version="1"):
        """How often the tool itself was asked by one run, and the run's exit code."""
        self.log.write_text("")
        done = subprocess.run(
            [sys.executable, REPOSITORY / "tools/clang_tidy.py", "--build", ".", *arguments, "x.cpp"],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOLDFAST_CLANG_TIDY": str(self.folder / "clang-tidy"),
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                "LOG": str(self.log),
                "VERSION": version,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.stderr, "")
        return len(self.log.read_text().splitlines()), done.returncode

    def test_a_clean_file_is_looked_at_once(self):
        self.assertEqual(self.looks(), (1, 0))
        self.assertEqual(self.looks(), (0, 0))

    def test_a_change_is_looked_at(self):
        self.looks()
        self.write("x.cpp", '#include "x.hpp"\nint g() { return 1 + f(); }\n')
        self.assertEqual(self.looks(), (1, 0))
        self.write("x.hpp", "int f(); int h();\n")
        self.assertEqual(self.looks(), (1, 0))

    def test_a_comment_counts_only_where_the_tool_reads_it(self):
        self.looks()
        self.write("x.cpp", '// Why.\n#include "x.hpp"\nint g() { return f(); }\n')
        self.assertEqual(self.looks(), (0, 0))
        self.write("x.cpp", '#include "x.hpp"\nint g() { return f(); }  // NOLINT\n')
        self.assertEqual(self.looks(), (1, 0))

    def test_other_checks_and_another_tool_look_again(self):
        self.looks()
        self.assertEqual(self.looks("--checks=-bugprone-*"), (1, 0))
        self.assertEqual(self.looks(version="2"), (1, 0))

    def test_findings_are_told_every_time(self):
        self.write("x.cpp", "int bad;\n")
        self.assertEqual(self.looks(), (1, 1))
        self.assertEqual(self.looks(), (1, 1))

    def test_a_file_that_does_not_compile_is_left_to_the_tool(self):
        self.write("x.cpp", '#include "bad.hpp"\n')
        self.assertEqual(self.looks(), (1, 1))


if __name__ == "__main__":
    unittest.main()
