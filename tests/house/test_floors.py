"""The checks that keep the floors apart, each against a violation of its own kind.

A small house is written to a temporary folder and built with the real cmake/Floors.cmake; the real
tools/tidy.py reads it. A check that nobody has seen fail may have stopped checking.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

# base <- pool <- sql <- lock, each with one public header and one source.
HOUSE = {
    "CMakeLists.txt": f"""
        cmake_minimum_required(VERSION 3.25)
        project(house LANGUAGES CXX)
        add_library(holdfast_warnings INTERFACE)
        add_library(holdfast_branches INTERFACE)
        add_library(Threads::Threads INTERFACE IMPORTED)
        function(holdfast_compile_together target)
        endfunction()
        include({REPOSITORY}/cmake/Floors.cmake)
        add_subdirectory(src/base)
        add_subdirectory(src/pool)
        add_subdirectory(src/sql)
        add_subdirectory(src/lock)
        """,
    "src/base/CMakeLists.txt": "holdfast_floor(base)\n",
    "src/base/include/holdfast/base/id.hpp": "#pragma once\nnamespace holdfast { int id(); }\n",
    "src/base/id.cpp": "#include <holdfast/base/id.hpp>\nnamespace holdfast { int id() { return 1; } }\n",
    "src/pool/CMakeLists.txt": "holdfast_floor(pool USES base)\n",
    "src/pool/include/holdfast/pool/lend.hpp": "#pragma once\nnamespace holdfast { int lend(); }\n",
    "src/pool/lend.cpp": (
        "#include <holdfast/base/id.hpp>\n#include <holdfast/pool/lend.hpp>\n"
        "namespace holdfast { int lend() { return id(); } }\n"
    ),
    "src/sql/CMakeLists.txt": "holdfast_floor(sql USES base pool)\n",
    "src/sql/include/holdfast/sql/open.hpp": "#pragma once\nnamespace holdfast { int open(); }\n",
    "src/sql/open.cpp": (
        "#include <holdfast/pool/lend.hpp>\n#include <holdfast/sql/open.hpp>\n"
        "namespace holdfast { int open() { return lend(); } }\n"
    ),
    "src/lock/CMakeLists.txt": "holdfast_floor(lock USES base sql)\n",
    "src/lock/include/holdfast/lock/take.hpp": "#pragma once\nnamespace holdfast { int take(); }\n",
    "src/lock/take.cpp": (
        "#include <holdfast/lock/take.hpp>\n#include <holdfast/sql/open.hpp>\n"
        "namespace holdfast { int take() { return open(); } }\n"
    ),
}


class Floors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-house-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def write(self, changed=None):
        """Writes the house anew, with some files changed. What cmake knows of the compiler stays."""
        tree = self.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        for name, text in {**HOUSE, **(changed or {})}.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def run_in_house(self, *command):
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode == 0, " ".join(done.stdout.split())

    def configure(self):
        return self.run_in_house(
            "cmake", "-S", "tree", "-B", "build", "-G", "Ninja", "-DCMAKE_CXX_COMPILER=g++"
        )

    def build(self, target="all"):
        return self.run_in_house("cmake", "--build", "build", "--target", target)

    def tidy(self):
        return self.run_in_house("python3", REPOSITORY / "tools/tidy.py", "tree")

    def assert_stands(self, answer):
        self.assertTrue(answer[0], answer[1])

    def assert_caught(self, answer, message):
        self.assertFalse(answer[0], "the violation was not caught")
        self.assertIn(message, answer[1])

    def test_a_house_without_a_violation_stands(self):
        self.write()
        self.assert_stands(self.configure())
        self.assert_stands(self.build())
        self.assert_stands(self.build("all_verify_interface_header_sets"))
        self.assert_stands(self.tidy())

    def test_an_edge_that_is_not_in_the_table_stops_the_configuration(self):
        self.write({"src/pool/CMakeLists.txt": "holdfast_floor(pool USES base sql)\n"})
        self.assert_caught(self.configure(), "floor 'pool' may not use 'sql'")

    def test_a_floor_that_is_not_in_the_table_stops_the_configuration(self):
        self.write({"src/lock/CMakeLists.txt": "holdfast_floor(attic)\n"})
        self.assert_caught(self.configure(), "floor 'attic' is not in the table")

    def test_tests_too_keep_to_the_table(self):
        self.write({"src/pool/CMakeLists.txt": "holdfast_floor(pool USES base TEST_USES sql)\n"})
        self.assert_caught(self.configure(), "tests of floor 'pool' may not use 'sql'")

    def test_the_header_of_an_undeclared_floor_is_not_found(self):
        upward = "#include <holdfast/sql/open.hpp>\n" + HOUSE["src/pool/lend.cpp"]
        self.write({"src/pool/lend.cpp": upward})
        self.assert_stands(self.configure())
        self.assert_caught(self.build("holdfast_pool"), "holdfast/sql/open.hpp: No such file")

    def test_a_symbol_borrowed_through_a_forward_declaration_does_not_link(self):
        borrowed = "namespace holdfast { int open(); int lend() { return open(); } }\n"
        self.write({"src/pool/lend.cpp": borrowed})
        self.assert_stands(self.configure())
        self.assert_stands(self.build("holdfast_pool"))  # The archive alone does not notice.
        self.assert_caught(self.build("link_pool"), "undefined reference to `holdfast::open()'")

    def test_a_public_header_that_leans_on_its_includer_does_not_compile_alone(self):
        leaning = "#pragma once\nnamespace holdfast { int take(); std::string name(); }\n"
        taken = "#include <string>\n\n" + HOUSE["src/lock/take.cpp"]
        self.write({"src/lock/include/holdfast/lock/take.hpp": leaning, "src/lock/take.cpp": taken})
        self.assert_stands(self.configure())
        self.assert_stands(self.build("holdfast_lock"))  # Its own source includes <string> before.
        self.assert_caught(self.build("all_verify_interface_header_sets"), "does not name a type")

    def test_an_include_that_leaks_through_a_neighbour_is_found_by_tidy(self):
        leak = "#include <holdfast/pool/lend.hpp>\n" + HOUSE["src/lock/take.cpp"]
        self.write({"src/lock/take.cpp": leak})
        self.assert_stands(self.configure())
        self.assert_stands(self.build())  # sql uses pool, so the compiler has its include path.
        self.assert_caught(
            self.tidy(), "src/lock/take.cpp:1: floor 'lock' does not declare that it uses 'pool'"
        )

    def test_a_third_party_header_in_a_public_header_is_found_by_tidy(self):
        header = "#pragma once\n#include <sqlite3.h>\n"
        self.write({"src/sql/include/holdfast/sql/open.hpp": header})
        self.assert_caught(
            self.tidy(), "sql/open.hpp:2: a public header includes 'sqlite3.h', which is neither"
        )


if __name__ == "__main__":
    unittest.main()
