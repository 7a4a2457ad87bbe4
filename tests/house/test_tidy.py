"""Each rule of tools/tidy.py against a file that breaks it and one that does not."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]

UNFINISHED = "TODO" + "(now)"

FLOORS = {
    "src/sql/CMakeLists.txt": "holdfast_floor(sql\n  LIBS fmt::fmt\n  TEST_USES testing)\n",
    "src/flow/CMakeLists.txt": "holdfast_floor(flow USES sql)\n",
    "src/testing/CMakeLists.txt": "holdfast_floor(testing USES sql NOT_INSTALLED)\n",
}

CATALOGUE = """
constexpr sql::Statement find{"jobs.find", "SELECT 1"};
constexpr sql::FencedStatement save{"jobs.save", "UPDATE", "SELECT"};
constexpr const sql::Statement* all[] = {&find};
constexpr const sql::FencedStatement* fenced[] = {&save};
constexpr sql::Catalogue catalogue{"flow", all, fenced, {}};
"""

FINE_AWAITS = """
co_await ctx.activity<&charge>(order).timeout(30s).retry({.attempts = 4, .base = 5ms});
Receipt receipt = co_await ctx.activity<&charge>(std::move(order));
for (auto& part : co_await ctx.parts(list[i], f(x))) {}
if (ready && co_await ctx.answer()) {}
co_await ctx.sleep(fast ? 1s : 5s);
co_await ctx.send(first ? ann : bob);
co_await ctx.activity<&set_current>(station, stop ? 0 : order->amps).session(station);
co_await ctx.activity<&charge>(order).retry({.attempts = tries, .first = first_delay(order)});
co_await ctx.activity<&charge>(order).retry(flow::RetryPolicy{.retry_if = is_busy}).timeout(1min);
co_await ctx.send(pick(first ? ann : bob), 3);
co_await ctx.each([](int x) { return Order{name, x}; });
co_await ctx.each([&order, this](int x) { return x ? order + "a" : order; });
auto operation = ctx.activity<&charge>(Order{card, 5});
co_return first ? ann + "x" : bob;
// co_await f(Order{card});
"""

BAD_AWAITS = {
    "co_await f(Order{card, 5});": "a braced temporary",
    "co_await f({.card = card});": "a braced temporary",
    "co_await f(order).retry({.attempts = n}).with({.card = card});": "a braced temporary",
    "co_await f(std::optional<Order>(Order{}));": "a braced temporary",
    "co_await Awaiter{name};": "a braced temporary",
    "co_await f(\n    {x,\n     y});": "a braced temporary",
    "co_await f([name] { return name; });": "a lambda that captures by value",
    "co_await f(g([=](int x) { return name; }));": "a lambda that captures by value",
    "co_await f(c ? a + b : a);": "a ?: that makes a temporary",
    "co_await f(1, g(c ? a : make(b)));": "a ?: that makes a temporary",
    "auto x = c ? co_await f() : co_await g();": "a ?: around it",
}


class Tidy(unittest.TestCase):
    def tidy(self, files):
        with tempfile.TemporaryDirectory(prefix="holdfast-house-") as folder:
            for name, text in {**FLOORS, **files}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run(
                [sys.executable, REPOSITORY / "tools/tidy.py", folder],
                capture_output=True,
                text=True,
                check=False,
            )
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode == 0, done.stdout == "tidy: clean\n", done.stdout)
        return done.stdout

    def assert_clean(self, files):
        self.assertEqual(self.tidy(files), "tidy: clean\n")

    def assert_found(self, files, finding):
        self.assertIn(finding + "\n", self.tidy(files))

    def test_a_public_header_includes_only_the_standard_library_and_us(self):
        header = "src/sql/include/holdfast/sql/x.hpp"
        self.assert_clean({header: "#include <cstdint>\n#include <holdfast/sql/y.hpp>\n"})
        for target in ("<fmt/core.h>", '"x.h"', "<libpq-fe.h>"):
            self.assert_found(
                {header: f"#include <span>\n#include {target}\n"},
                f"{header}:2: a public header includes '{target[1:-1]}', "
                "which is neither holdfast/ nor standard",
            )

    def test_the_architecture_names_only_files_that_exist(self):
        page = "docs/ARCHITECTURE.md"
        text = "See `src/sql/x.cpp` and `src/sql`, `apps/holdfast/<noun>/`.\n"
        self.assert_clean({page: text, "src/sql/x.cpp": ""})
        self.assert_found({page: text}, f"{page}:1: there is no src/sql/x.cpp")

    def test_the_glossary_explains_a_term_once(self):
        page = "docs/glossary.md"
        self.assert_clean({page: "| **run** | One **turn** after another. |\n| **turn** | A step. |\n"})
        self.assert_found(
            {page: "| **run** | One. |\n\n| **turn**, **run** | Two. |\n"},
            f"{page}:3: 'run' is explained in line 1 as well",
        )

    def test_comments_messages_and_documents_are_plain_english(self):
        for text in (
            "// This is no lock.\n",
            "// Both are\n// no locks.\n",
            "// Taken by\n//   somebody.\n",
            "/* Nobody knows. */\n",
            "// It waits. Who comes first is served.\n",
            'auto text = "it is no "\n    "duration";\n',
            'auto text = R"(whoever asks)";\n',
        ):
            self.assertRegex(self.tidy({"src/flow/x.cpp": text}), r"^src/flow/x.cpp:[12]: plain English ")
        for name, text, line in (
            ("src/flow/x.cpp", "int x;\n\n// One.\n// Nobody.\n", 4),
            ("src/flow/x_test.cpp", "// Nobody waits.\n", 1),
            ("docs/x.md", "It\nis\nno lock.\n", 2),
        ):
            self.assertIn(f"{name}:{line}: plain English ", self.tidy({name: text}))
        self.assert_clean(
            {
                "src/flow/x.cpp": "// There is no lock; it is no longer held. It tells who has it.\n"
                'auto user = "nobody";\nint nobody = 1;\n',
                "src/flow/x_test.cpp": 'auto text = "somebody waits";\n',
                "docs/x.md": "```\nNobody waits.\n```\nThe user is `nobody`.\n",
            }
        )

    def test_only_the_json_header_of_flow_includes_json(self):
        include = "#include <nlohmann/json.hpp>\n"
        self.assert_clean({"src/flow/include/holdfast/flow/json.hpp": include})
        self.assert_found(
            {"src/flow/include/holdfast/flow/codec.hpp": include},
            "src/flow/include/holdfast/flow/codec.hpp:1: a public header includes "
            "'nlohmann/json.hpp', which is neither holdfast/ nor standard",
        )

    def test_headers_for_tests_may_include_what_tests_use(self):
        self.assert_clean({"src/testing/include/holdfast/testing/x.hpp": "#include <gtest/gtest.h>\n"})

    def test_only_tests_use_the_harness(self):
        include = "#include <holdfast/testing/clock.hpp>\n"
        self.assert_clean({"src/sql/x_test.cpp": include, "tests/crash/x_test.cpp": include})
        self.assert_found(
            {"src/sql/x.cpp": include},
            "src/sql/x.cpp:1: floor 'sql' does not declare that it uses 'testing'",
        )
        # A private header is a test's if only tests include it.
        story = {"src/sql/lite/story.hpp": include, "src/sql/x_test.cpp": '#include "lite/story.hpp"\n'}
        self.assert_clean(story)
        self.assert_found(
            {**story, "src/sql/x.cpp": '#include "y.hpp"\n', "src/sql/y.hpp": '#include "story.hpp"\n'},
            "src/sql/lite/story.hpp:1: floor 'sql' does not declare that it uses 'testing'",
        )
        self.assert_found({"examples/x.cpp": include}, "examples/x.cpp:1: only tests use 'testing'")

    def test_a_floor_may_be_declared_through_a_variable(self):
        lists = 'set(extra "")\nif(X)\n  set(extra testing)\nendif()\nholdfast_floor(flow USES ${extra})\n'
        self.assert_clean(
            {
                "src/flow/CMakeLists.txt": lists,
                "src/flow/x.cpp": "#include <holdfast/testing/clock.hpp>\n",
            }
        )

    def test_an_include_does_not_climb_out_of_its_floor(self):
        self.assert_found(
            {"src/flow/x.cpp": '#include "../sql/driver.hpp"\n'},
            'src/flow/x.cpp:1: "../sql/driver.hpp" leaves the folder; include <holdfast/...> instead',
        )

    def test_an_include_of_a_floor_that_does_not_exist(self):
        self.assert_found(
            {"src/flow/x.cpp": "#include <holdfast/attic/x.hpp>\n"},
            "src/flow/x.cpp:1: there is no floor 'attic'",
        )

    def test_a_file_ends_by_line_600(self):
        self.assert_clean({"src/sql/x.cpp": "\n" * 600})
        self.assert_found(
            {"src/sql/x.cpp": "\n" * 601}, "src/sql/x.cpp:601: the file has 601 lines; at most 600"
        )

    def test_folders_have_names_from_the_field(self):
        for name in ("common", "util", "misc", "helpers", "impl"):
            self.assert_found(
                {f"src/sql/{name}/x.cpp": ""},
                f"src/sql/{name}/x.cpp:1: a folder is named by a noun of our field, not '{name}'",
            )

    def test_a_folder_of_code_has_forty_files_at_most(self):
        forty = {f"src/sql/room/x{i}.cpp": "" for i in range(40)}
        public = {f"src/sql/include/holdfast/sql/x{i}.hpp": "" for i in range(60)}
        self.assert_clean({**forty, **public, "src/sql/room/inner/x.cpp": ""})
        self.assert_found(
            {**forty, "src/sql/room/README.md": ""},
            "src/sql/room:1: the folder has 41 files; at most 40",
        )

    def test_what_lies_in_a_folder_called_test_is_for_tests_only(self):
        fixture = {"src/sql/room/test/x_fixture.hpp": "#include <holdfast/testing/clock.hpp>\n"}
        include = '#include "room/test/x_fixture.hpp"\n'
        self.assert_clean({**fixture, "src/sql/room/x_test.cpp": include})
        self.assert_found(
            {**fixture, "src/sql/room/x.cpp": include},
            'src/sql/room/x.cpp:1: "room/test/x_fixture.hpp" is for tests only',
        )

    def test_two_types_of_one_name_in_one_floor_are_found(self):
        first = {"src/sql/a.hpp": "namespace holdfast::sql {\nstruct Token {\n    int a;\n};\n}\n"}
        twin = "namespace holdfast::sql {\nclass Token final : Base {\n};\n}\n"
        self.assert_found(
            {**first, "src/sql/b.cpp": twin},
            "src/sql/b.cpp:2: 'holdfast::sql::Token' is defined in src/sql/a.hpp too; rename one",
        )
        for harmless in (
            "namespace holdfast::sql {\nnamespace {\nstruct Token {};\n}\n}\n",
            "namespace holdfast::sql {\nclass Token;\nstruct Lexer { struct Token { int a; }; };\n}\n",
            "namespace holdfast::sql {\nstruct Token::Kind {};\n}\n",
            "namespace holdfast::sql::lexer {\nstruct Token {};\n}\n",
            "namespace holdfast::sql {\nvoid f() { struct Token { int a; }; }\n}\n",
        ):
            self.assert_clean({**first, "src/sql/b.cpp": harmless})
        self.assert_clean({**first, "src/flow/b.cpp": twin})

    def test_only_sql_compares_products(self):
        finding = "code above sql names a product; add a capability to sql::Dialect and ask for that"
        for code in (
            "bool x = db.dialect().product == sql::Product::sqlite;",
            "switch (dialect->product) {}",
            "case Product::dsql:",
            'if (url.scheme != "sqlite") {}',
            'if ("dsql" == parse_url(text).scheme) {}',
            'if (db.dialect().name == "dsql") {}',
        ):
            with self.subTest(code=code):
                for place in ("src/flow/x.cpp", "src/flow/x_test.cpp", "tests/x_test.cpp"):
                    self.assert_found({place: f"int x;\n{code}\n"}, f"{place}:2: {finding}")
                for place in ("src/sql/x.cpp", "src/testing/x.cpp"):
                    self.assert_clean({place: f"{code}\n"})
        for harmless in (
            "if (db.dialect().embedded) {}",
            "// Product::sqlite",
            'check("sweep.product");',
            "if (url.scheme == dsql::url_scheme) {}",
            'label("db", dialect.name);',
        ):
            self.assert_clean({"src/flow/x.cpp": f"{harmless}\n"})

    def test_unfinished_work_is_not_merged(self):
        self.assert_found(
            {"src/sql/x.cpp": f"\n// {UNFINISHED}: later\n"},
            f"src/sql/x.cpp:2: {UNFINISHED} blocks a merge",
        )

    def test_every_statement_is_in_its_floors_catalogue(self):
        self.assert_clean({"src/flow/jobs.cpp": CATALOGUE})
        self.assert_clean(
            {
                "src/flow/a.cpp": CATALOGUE.replace("sql::Catalogue catalogue", "int number"),
                "src/flow/b.cpp": "sql::Catalogue catalogue{&jobs::find, &save};\n",
            }
        )
        self.assert_found(
            {"src/flow/jobs.cpp": CATALOGUE.replace("&find", "")},
            "src/flow/jobs.cpp:2: statement 'find' is not in the catalogue of floor 'flow'",
        )
        self.assert_found(
            {"src/flow/jobs.cpp": CATALOGUE.replace("&save", "")},
            "src/flow/jobs.cpp:3: statement 'save' is not in the catalogue of floor 'flow'",
        )
        # Another floor's catalogue does not count; a test's statements need none.
        self.assert_found(
            {"src/flow/jobs.cpp": CATALOGUE, "src/sql/x.cpp": CATALOGUE.replace("Catalogue", "C")},
            "src/sql/x.cpp:2: statement 'find' is not in the catalogue of floor 'sql'",
        )
        self.assert_clean({"src/flow/jobs_test.cpp": CATALOGUE.replace("&find", "")})

    def test_awaits_that_the_compiler_gets_right_are_left_alone(self):
        self.assert_clean({"src/flow/x.cpp": FINE_AWAITS})

    def test_awaits_that_the_compiler_gets_wrong_are_found(self):
        for code, trouble in BAD_AWAITS.items():
            with self.subTest(code=code):
                self.assert_found(
                    {"src/flow/x.cpp": f"int x;\n{code}\n"},
                    f"src/flow/x.cpp:2: co_await with {trouble}: "
                    "g++ 12 destroys it twice, name it first",
                )


if __name__ == "__main__":
    unittest.main()
