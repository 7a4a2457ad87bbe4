"""tools/clang_tidy.py remembers clean files, and only those."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# Finds fault with every file that says `bad` or includes a source that does, and writes down what it
# was asked.
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { echo "$VERSION"; exit 0; }
for file; do :; done
echo "$file" >>"$LOG"
if grep -q bad "$file" $(sed -n 's/^#include "\\(.*[.]cpp\\)"$/\\1/p' "$file"); then echo "$file: bad"; exit 1; fi
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
                        "file": f"{name}.cpp",
                        "command": "env CCACHE_NOHASHDIR=1 /usr/bin/ccache g++ "
                        f"-o {name}.o -c {name}.cpp",
                    }
                    for name in ("x", "y", "z")
                ]
            ),
        )

    def looks(self, *arguments, version="1", files=("x.cpp",)):
        """How often the tool itself was asked by one run, and the run's exit code."""
        self.log.write_text("")
        done = subprocess.run(
            [sys.executable, REPOSITORY / "tools/clang_tidy.py", "--build", ".", *arguments, *files],
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
        self.said = done.stdout
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

    def test_files_with_the_same_flags_are_looked_at_together(self):
        files = ("x.cpp", "y.cpp", "z.cpp")
        self.write("y.cpp", "int y;\n")
        self.write("z.cpp", "int z;\n")
        quick = "--checks=-clang-analyzer-*"
        self.assertEqual(self.looks(quick, files=files), (1, 0))
        self.assertEqual(self.looks(quick, files=files), (0, 0))
        self.assertEqual(self.looks(quick, files=("y.cpp",)), (0, 0))

    def test_a_finding_is_told_by_a_look_at_its_file_alone(self):
        files = ("x.cpp", "y.cpp", "z.cpp")
        self.write("y.cpp", "int bad;\n")
        self.write("z.cpp", "int z;\n")
        quick = "--checks=-clang-analyzer-*"
        self.assertEqual(self.looks(quick, files=files), (5, 1))
        self.assertIn("y.cpp: bad", self.said)
        self.assertEqual(self.looks(quick, files=("x.cpp", "z.cpp")), (0, 0))
        self.assertEqual(self.looks(quick, files=files), (1, 1))

    def test_the_analyzer_sees_main_files_only_and_so_each_file_alone(self):
        self.write("y.cpp", "int y;\n")
        self.assertEqual(self.looks(files=("x.cpp", "y.cpp")), (2, 0))

    def test_a_file_has_changed_if_its_code_has(self):
        def git(*words):
            subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)

        self.write("y.cpp", "int y;  // Why.\n")
        git("init")
        git("add", "x.cpp", "y.cpp")
        git("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-m", "One")
        self.write("x.cpp", '#include "x.hpp"\nint g() { return 1 + f(); }\n')
        self.write("y.cpp", "// Why\n// not?\nint y;\n")
        self.write("z.cpp", "int z;\n")
        done = subprocess.run(
            [sys.executable, REPOSITORY / "tools/clang_tidy.py", "--changed-since", "HEAD"]
            + ["x.cpp", "y.cpp", "z.cpp"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(done.stdout.split(), ["x.cpp", "z.cpp"])


if __name__ == "__main__":
    unittest.main()
