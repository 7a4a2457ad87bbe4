"""Migrations are compiled in byte by byte, and a gap in their numbers stops the build."""

import pathlib
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

SCHEMA_HPP = """
#include <string_view>
namespace holdfast::sql { struct MigrationFile { std::string_view name; std::string_view text; }; }
"""
PRINTER = """
#include <cstdio>
#include <string>
#include "lock_schema.cpp"
int main() {
    for (const auto& file : holdfast::lock::schema_files()) {
        std::printf("[%s]%s", std::string(file.name).c_str(), std::string(file.text).c_str());
    }
}
"""


class Schema(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-house-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def embed(self, **migrations):
        files = []
        for name, text in migrations.items():
            files.append(self.folder / f"{name.lstrip('_')}.sql")
            files[-1].write_text(text)
        return subprocess.run(
            [
                "cmake",
                "-DFLOOR=lock",
                "-DFILES=" + ",".join(map(str, files)),
                f"-DOUTPUT={self.folder}/lock_schema.cpp",
                "-P",
                REPOSITORY / "cmake/EmbedSchema.cmake",
            ],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_migrations_are_compiled_in_byte_by_byte_and_in_order(self):
        first = "CREATE TABLE {locks} (\n  a TEXT, -- ; [x] \\n \"q\" ${HOME} @b@\n);\n"
        second = "INSERT INTO t VALUES ('a;b', '\\');\n"
        done = self.embed(_0002_second=second, _0001_first=first)
        self.assertEqual(done.returncode, 0, done.stderr)

        header = self.folder / "holdfast/sql/schema.hpp"
        header.parent.mkdir(parents=True)
        header.write_text(SCHEMA_HPP)
        (self.folder / "print.cpp").write_text(PRINTER)
        program = self.folder / "print"
        subprocess.run(
            ["g++", "-std=c++20", "-I", self.folder, self.folder / "print.cpp", "-o", program],
            check=True,
        )
        printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        self.assertEqual(printed, f"[0001_first]{first}[0002_second]{second}")

    def test_a_gap_in_the_numbers_stops_the_build(self):
        done = self.embed(_0001_first="SELECT 1;\n", _0003_third="SELECT 3;\n")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("numbered from 0001 without a gap", " ".join(done.stderr.split()))

    def test_a_name_that_is_not_a_number_and_a_word_stops_the_build(self):
        self.assertNotEqual(self.embed(_1_first="SELECT 1;\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
