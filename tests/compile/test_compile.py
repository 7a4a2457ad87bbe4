"""Wrong workflows and unguarded writes against the compiler: each is refused, with the sentence that names the cure.

usage: test_compile.py COMPILER
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "g++"
SKIPPED = 77

FLOORS = "base", "pool", "sql", "flow/engine", "flow", "flow/testing"
INCLUDES = [f"-I{REPOSITORY}/src/{floor}/include" for floor in FLOORS]

PRELUDE = """
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/flow/registry.hpp>
#include <holdfast/flow_engine/combine.hpp>
#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/map.hpp>
#include <holdfast/flow_engine/saga.hpp>
#include <holdfast/flow_testing/run.hpp>

using namespace holdfast::flow;
using namespace std::chrono_literals;

struct Order {
    std::string item;
    int count = 0;
};
template <>
struct holdfast::flow::Codec<Order> {
    static std::string encode(const Order&) { return "{}"; }
    static Order decode(std::string_view) { return {}; }
};
std::string greet(std::string name);
int ship(Order order);
int unnamed(int n);
Workflow<int> child(Context& ctx, int n);
HOLDFAST_NAME(greet, "greet");
HOLDFAST_NAME(ship, "ship");
HOLDFAST_NAME(child, "child");
"""

# Statements of a guarded table, and what the sql layer's headers need for them.
GUARDED = """
#include <holdfast/sql/database.hpp>
namespace sql = holdfast::sql;
constexpr sql::FencedStatement save{
    "shard.save", "UPDATE shards SET data = $3 WHERE shard_id = $1 AND range_id = $2",
    "SELECT range_id FROM shards WHERE shard_id = $1"};
constexpr std::array<std::string_view, 1> tokens{"range_id"};
constexpr std::array guarded{sql::GuardedTable{"shards", tokens},
                             sql::GuardedTable{"runs", tokens, true}};
constexpr std::array<const sql::FencedStatement*, 1> fenced{&save};
"""


def catalogue_with(text):
    return GUARDED + (
        f'constexpr sql::Statement plain_one{{"plain.one", "{text}"}};\n'
        "constexpr std::array<const sql::Statement*, 1> plain{&plain_one};\n"
        "constexpr sql::Catalogue all = sql::checked(\n"
        '    {.floor = "test", .statements = plain, .fenced = fenced, .guarded = guarded});\n'
    )


UNGUARDED = "plain_statement_changes_a_guarded_table"

RIGHT = {
    "the shapes of the guide": """
        Workflow<int> right(Context& ctx, Order order, std::string name) {
            std::string text = co_await ctx.activity<&greet>(name);
            int one = co_await ctx.activity<&ship>(order).retry({.attempts = 4}).timeout(30s);
            int two = co_await ctx.child<&child>(one).id("c-" + name);
            auto both = co_await all(ctx.activity<&greet>("literal"), ctx.sleep(1s));
            if (two > 3) {
                co_return again(order, std::get<0>(both));
            }
            co_return two;
        }
        auto program = &detail::run_program<&right>;
    """,
    "tasks of every kind": """
        Task<int> counts(Context& ctx, int n, int* sum) {
            co_await ctx.sleep(1s);
            *sum += n;
            co_return n;
        }
        Task<void> waits(Context& ctx) { co_await ctx.sleep(1s); }
        struct Steps {
            static Task<int> first(Context& ctx, std::string name) {
                std::string text = co_await ctx.activity<&greet>(name);
                co_return static_cast<int>(text.size());
            }
        };
        Workflow<int> right(Context& ctx, std::vector<std::string> names) {
            int sum = 0;
            auto [one, two, three] = co_await all(counts(ctx, 1, &sum), waits(ctx), Steps::first(ctx, "a"));
            auto task = [](Context& c, std::string name) -> Task<int> {
                co_await c.activity<&greet>(name);
                co_return 1;
            };
            int four = co_await task(ctx, "b");
            auto each = co_await map(ctx, names, 4, task);
            auto more = co_await map(ctx, names, 4, [&sum](Context& c, const std::string& name) {
                ++sum;
                return c.activity<&greet>(name);
            });
            ctx.start(ctx.sleep(1h)).detach();
            co_return sum + one + three + four + static_cast<int>(each.size() + more.size());
        }
    """,
    "activities of every kind": """
    namespace a {
        void nothing();
        int by_value(Order order, std::string text);
        int by_reference(const Order& order, std::string&& text);
        const std::string& told(ActivityContext& ctx, const int n);
        int kept(holdfast::sql::Tx& tx, Order order) noexcept;
        int both(holdfast::sql::Tx& tx, const ActivityContext& ctx, Order order);
    }
    HOLDFAST_NAME(a::nothing, "nothing");
    HOLDFAST_NAME(a::by_value, "by_value");
    HOLDFAST_NAME(a::by_reference, "by_reference");
    HOLDFAST_NAME(a::told, "told");
    HOLDFAST_NAME(a::kept, "kept");
    HOLDFAST_NAME(a::both, "both");
    namespace a {
        Workflow<std::string> right(Context& ctx, Order order) {
            co_await ctx.activity<&nothing>();
            int one = co_await ctx.activity<&by_value>(order, "text");
            int two = co_await ctx.activity<&by_reference>(order, "text");
            int three = co_await ctx.activity<&kept>(order);
            std::string_view view = "view";
            co_await ctx.activity<&greet>(std::string(view));
            ctx.kv().set("view", view);
            std::string text = co_await ctx.activity<&told>(one + two + three);
            co_return text;
        }
    }
    HOLDFAST_NAME(a::right, "right");
    namespace a {
        void tells(Registry& registry) {
            registry.activity<&nothing>().activity<&by_value>().activity<&by_reference>();
            registry.activity<&told>().activity<&kept>().activity<&both>().workflow<&right>();
        }
    }
    """,
    "a lambda without captures as a workflow": """
        constexpr auto counts = +[](Context& ctx, int n) -> Workflow<int> {
            co_await ctx.sleep(1s);
            if (n > 0) {
                co_return again(n - 1);
            }
            co_return n;
        };
        auto program = &detail::run_program<counts>;
    """,
    "a test in one expression": """
        inline constexpr Channel<int> numbers{"numbers"};
        int fixed(Order) { return 3; }
        int told() {
            return test::run<&child>(short{3})
                .on<&greet>([](std::string name) { return name; })
                .on<&greet>([](ActivityContext&, std::string) { return "text"; })
                .on<&ship>(&fixed)
                .on<&ship>()
                .with<&child>("2.0.0")
                .after(24h)
                .signal(numbers, 4)
                .cancel("enough")
                .result();
        }
    """,
    "how an input is compared": """
        Workflow<int> right(Context& ctx, std::string name) {
            std::string text = co_await ctx.activity<&greet>(name)
                                   .input_check(InputCheck::ignore)
                                   .retry({.attempts = 4});
            int one = co_await ctx.child<&child>(3).id("c").input_check(InputCheck::strict);
            ctx.detach<&child>("d", 3).input_check(InputCheck::warn);
            ctx.detach<&child>("e", 3);
            co_return one;
        }
        auto program = &detail::run_program<&right>;
    """,
    "writes of a guarded table": GUARDED + """
        void write(sql::Database& db, sql::Tx& tx, const sql::Guard& guard) {
            tx.fenced(guard, save, "text");
            (void)tx.try_fenced(guard, save, "text");
            (void)tx.ask_fenced(guard, save, "text");
            db.run("Save", {}, guard, save, "text");
            (void)db.try_run("Save", {}, guard, save, "text");
        }
    """,
    "an insert into a guarded table": catalogue_with("INSERT INTO shards (a) VALUES ($1)"),
    "an update of a table with a longer name": catalogue_with("UPDATE shards_old SET a = $1"),
    "a plain delete where the table allows it": catalogue_with("DELETE FROM runs WHERE a = $1"),
    "an argument that converts": """
        Workflow<Unit> right(Context& ctx) {
            co_await ctx.child<&child>(short{3});
            co_await ctx.activity<&greet>("text");
            co_return Unit{};
        }
        auto program = &detail::run_program<&right>;
    """,
}

DANGLES = "a coroutine takes its parameters by value (only Context& is lent)"

# What is wrong, the program, and what the compiler must say (one of several, with a bar between).
WRONG = {
    "a guarded write without its guard": (
        GUARDED + 'void write(sql::Tx& tx) { tx.exec(save, 7, 5, "text"); }',
        "no matching function|no matching member function|invalid initialization|cannot convert",
    ),
    "a guarded write without its guard, in one statement": (
        GUARDED + 'void write(sql::Database& db) { db.run("Save", {}, save, 7, 5, "text"); }',
        "no matching function|no matching member function|cannot convert",
    ),
    "a guarded write stripped of its guard": (
        GUARDED + 'void write(sql::Tx& tx) { tx.exec(save.write(), 7, 5, "text"); }',
        "is private within this context|is a private member",
    ),
    "a plain update of a guarded table": (
        catalogue_with("UPDATE shards SET a = $1 WHERE shard_id = $2"),
        UNGUARDED,
    ),
    "a plain delete of a guarded table": (
        catalogue_with("DELETE FROM shards WHERE shard_id = $1"),
        UNGUARDED,
    ),
    "a plain update where only a delete is free": (
        catalogue_with("UPDATE runs SET a = $1 WHERE shard_id = $2"),
        UNGUARDED,
    ),
    "an upsert of a guarded table": (
        catalogue_with("INSERT INTO shards (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET b = 1"),
        UNGUARDED,
    ),
    "an update of a guarded table inside WITH": (
        catalogue_with("WITH x AS (UPDATE shards SET a = $1 RETURNING a) SELECT a FROM x"),
        UNGUARDED,
    ),
    "awaiting what is no operation": (
        "Workflow<int> w(Context&) { co_await std::suspend_always{}; co_return 1; }",
        "a workflow can await only flow operations",
    ),
    "a stub that takes other arguments": (
        "int told() { return test::run<&child>(3).on<&greet>([](int) { return 3; }).result(); }",
        "a stub takes the arguments of the activity it stands for",
    ),
    "a stub that takes too much": (
        "std::string two(std::string, int);\n"
        "int told() { return test::run<&child>(3).on<&greet>(&two).result(); }",
        "a stub takes the arguments of the activity it stands for",
    ),
    "a stub that returns something else": (
        "int told() { return test::run<&child>(3).on<&ship>([](Order) { return Order{}; }).result(); }",
        "a stub returns what the activity it stands for returns",
    ),
    "a stub that returns nothing": (
        "int told() { return test::run<&child>(3).on<&ship>([](Order) {}).result(); }",
        "a stub returns what the activity it stands for returns",
    ),
    "a test with other arguments than the workflow": (
        "int told() { return test::run<&child>(std::string()).result(); }",
        "the workflow takes other arguments",
    ),
    "a signal of another type": (
        'inline constexpr Channel<int> numbers{"numbers"};\n'
        "int told() { return test::run<&child>(3).signal(numbers, Order{}).result(); }",
        "no matching function|no matching member function|cannot convert",
    ),
    "awaiting a number": (
        "Workflow<int> w(Context&) { co_await 3; co_return 1; }",
        "a workflow can await only flow operations",
    ),
    "a reference parameter": (
        "Workflow<int> w(Context&, const std::string&) { co_return 1; }\n"
        "auto program = &detail::run_program<&w>;",
        "a workflow takes its arguments by value",
    ),
    "a pointer parameter": (
        "Workflow<int> w(Context&, const char*) { co_return 1; }\n"
        "auto program = &detail::run_program<&w>;",
        "a workflow takes its arguments by value",
    ),
    "a string_view parameter": (
        "Workflow<int> w(Context&, std::string_view) { co_return 1; }\n"
        "auto program = &detail::run_program<&w>;",
        "a workflow takes its arguments by value",
    ),
    "a span parameter": (
        "#include <span>\n"
        "Workflow<int> w(Context&, std::span<const int>) { co_return 1; }\n"
        "auto program = &detail::run_program<&w>;",
        "a workflow takes its arguments by value",
    ),
    "a parameter with views in it": (
        "Workflow<int> w(Context&, std::vector<std::string_view>) { co_return 1; }\n"
        "auto program = &detail::run_program<&w>;",
        "a workflow takes its arguments by value",
    ),
    "a view as the result of a workflow": (
        'Workflow<std::string_view> w(Context&) { co_return "x"; }\n'
        "auto program = &detail::run_program<&w>;",
        "a workflow returns a value",
    ),
    "a task with a reference parameter": (
        "Task<int> t(Context&, const std::string&) { co_return 1; }",
        DANGLES,
    ),
    "a task with a reference parameter and no context": (
        "Task<void> t(std::string& text) { text.clear(); co_return; }",
        DANGLES,
    ),
    "a task with an rvalue reference": (
        "Task<int> t(Context&, Order&&) { co_return 1; }",
        DANGLES,
    ),
    "a task with a view": (
        "Task<int> t(Context&, std::string_view) { co_return 1; }",
        DANGLES,
    ),
    "a task that belongs to an object": (
        "struct Shop { int open = 1; Task<int> t(Context&) { co_return open; } };",
        DANGLES,
    ),
    "a task that is a lambda with captures": (
        """
        Workflow<int> w(Context& ctx, std::string name) {
            auto task = [name](Context& c) -> Task<std::string> { co_return name; };
            std::string text = co_await task(ctx);
            co_return 1;
        }
        """,
        DANGLES,
    ),
    "a task that is a lambda with a captured reference": (
        """
        Workflow<int> w(Context& ctx, std::vector<int> numbers) {
            int sum = 0;
            co_await map(ctx, numbers, 2, [&](Context& c, int n) -> Task<int> { co_return sum += n; });
            co_return 1;
        }
        """,
        DANGLES,
    ),
    "a task that is a generic lambda with captures": (
        """
        Workflow<int> w(Context& ctx, int n) {
            auto task = [n](auto& c) -> Task<int> { co_return n; };
            int one = co_await task(ctx);
            co_return one;
        }
        """,
        DANGLES,
    ),
    "an activity that changes its argument": (
        "void count(int& n);\nHOLDFAST_NAME(count, \"count\");\n"
        "Workflow<int> w(Context& ctx) { int n = 1; co_await ctx.activity<&count>(n); co_return n; }",
        "an activity takes its arguments by value or by const&",
    ),
    "an activity that changes its argument, where it is registered": (
        "void count(Order& o);\nHOLDFAST_NAME(count, \"count\");\n"
        "void tell(Registry& registry) { registry.activity<&count>(); }",
        "an activity takes its arguments by value or by const&",
    ),
    "an activity with a pointer": (
        "void print(const char* text);\nHOLDFAST_NAME(print, \"print\");\n"
        "void tell(Registry& registry) { registry.activity<&print>(); }",
        "an activity takes values",
    ),
    "an activity with a view": (
        "void print(std::string_view text);\nHOLDFAST_NAME(print, \"print\");\n"
        "void tell(Registry& registry) { registry.activity<&print>(); }",
        "an activity takes values",
    ),
    "an activity that returns a view": (
        "std::string_view trim(std::string text);\nHOLDFAST_NAME(trim, \"trim\");\n"
        "Workflow<int> w(Context& ctx) { co_await ctx.activity<&trim>(\"x\"); co_return 1; }",
        "an activity returns a value",
    ),
    "an activity whose context comes last": (
        "void late(int n, ActivityContext& ctx);\nHOLDFAST_NAME(late, \"late\");\n"
        "void tell(Registry& registry) { registry.activity<&late>(); }",
        "comes first, by reference",
    ),
    "a workflow as an activity": (
        "Workflow<int> w(Context& ctx) { co_await ctx.activity<&child>(1); co_return 1; }",
        "an activity is a plain function; a coroutine is awaited, or started as a child",
    ),
    "a type that nobody can store": (
        "struct Odd {};\nvoid odd(Odd o);\nHOLDFAST_NAME(odd, \"odd\");\n"
        "Workflow<int> w(Context& ctx) { Odd o; co_await ctx.activity<&odd>(o); co_return 1; }",
        "nothing says how a value of this type is stored",
    ),
    "a lambda as a workflow": (
        "constexpr auto w = [](Context&) -> Workflow<int> { co_return 1; };\n"
        "auto program = &detail::run_program<w>;",
        "a lambda's captures do not live in the coroutine",
    ),
    "a lambda with captures as a workflow": (
        "constexpr int seven = 7;\n"
        "constexpr auto w = [n = seven](Context&) -> Workflow<int> { co_return n; };\n"
        "auto program = &detail::run_program<w>;",
        # clang does not even take it for a template argument.
        "a lambda's captures do not live in the coroutine|incompatible initializer",
    ),
    "a workflow without a context": (
        "Workflow<int> w(int n) { co_return n; }\nauto program = &detail::run_program<&w>;",
        "a workflow is a function Workflow<R> f(Context&, arguments by value...)",
    ),
    "a workflow of void": (
        "Workflow<void> w(Context&) { co_return; }\nauto program = &detail::run_program<&w>;",
        "a workflow that has no result returns Workflow<Unit>",
    ),
    "too few arguments": (
        "Workflow<int> w(Context& ctx) { co_await ctx.activity<&greet>(); co_return 1; }",
        "the function takes other arguments",
    ),
    "too many arguments": (
        "Workflow<int> w(Context& ctx) { co_await ctx.child<&child>(1, 2); co_return 1; }",
        "the function takes other arguments",
    ),
    "an argument of another type": (
        "Workflow<int> w(Context& ctx) { co_await ctx.activity<&greet>(7); co_return 1; }",
        "the function takes other arguments",
    ),
    "a detached workflow with other arguments": (
        'Workflow<int> w(Context& ctx) { ctx.detach<&child>("id"); co_return 1; }',
        "the function takes other arguments",
    ),
    "again with another number of arguments": (
        "Workflow<int> w(Context&, int n) { if (n) { co_return again(); } co_return 1; }",
        "again() takes the arguments of this workflow, in their order",
    ),
    "again with another type": (
        'Workflow<int> w(Context&, int n) { if (n) { co_return again("x"); } co_return 1; }',
        "again() takes the arguments of this workflow, in their order",
    ),
    "an activity without a name": (
        "Workflow<int> w(Context& ctx) { co_await ctx.activity<&unnamed>(1); co_return 1; }",
        "give the function a stored name with HOLDFAST_NAME",
    ),
    "another result than the workflow's": (
        'Workflow<int> w(Context&) { co_return std::string("x"); }',
        "return_value",
    ),
}

# Destroyed twice by g++ before 13, right everywhere else.
TEMPORARIES = {
    "a struct": """
        Workflow<int> w(Context& ctx, std::string item) {
            int n = co_await ctx.activity<&ship>(Order{item, 1});
            co_return n;
        }
    """,
    "items of a map": """
        Workflow<int> w(Context& ctx, std::string item) {
            auto all = co_await map(ctx, std::array<Order, 1>{Order{item, 1}}, 2,
                                    [](Context& c, const Order& o) { return c.activity<&ship>(o); });
            co_return static_cast<int>(all.size());
        }
    """,
    "the captures of a map's lambda": """
        Workflow<int> w(Context& ctx, std::vector<std::string> names, std::string before) {
            auto all = co_await map(ctx, names, 2, [before](Context& c, const std::string& name) {
                return c.activity<&greet>(before + name);
            });
            co_return static_cast<int>(all.size());
        }
    """,
}


def run(*arguments):
    return subprocess.run(
        [COMPILER, "-std=c++20", *INCLUDES, *arguments], capture_output=True, text=True, check=False
    )


def is_old_gcc():
    macros = run("-dM", "-E", "-x", "c++", "/dev/null").stdout
    version = re.search(r"^#define __GNUC__ (\d+)$", macros, re.MULTILINE)
    return "__clang__" not in macros and int(version[1]) < 13


class Compile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="holdfast-compile-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prelude = cls.folder / "prelude.hpp"
        cls.prelude.write_text(PRELUDE)
        # Compiled once; both compilers find it beside the header.
        suffix = "gch" if "clang" not in COMPILER else "pch"
        done = run("-x", "c++-header", str(cls.prelude), "-o", f"{cls.prelude}.{suffix}")
        assert done.returncode == 0, done.stderr

    def compiles(self, text):
        """Whether the program compiles, and what the compiler said."""
        path = self.folder / "program.cpp"
        path.write_text(text)
        done = run("-fsyntax-only", "-include", str(self.prelude), str(path))
        return done.returncode == 0, done.stderr

    def test_what_the_guide_shows_compiles(self):
        for name, text in RIGHT.items():
            with self.subTest(name):
                fine, said = self.compiles(text)
                self.assertTrue(fine, said)

    def test_what_is_wrong_is_refused_with_its_reason(self):
        for name, (text, reason) in WRONG.items():
            with self.subTest(name):
                fine, said = self.compiles(text)
                self.assertFalse(fine, "it compiles")
                self.assertTrue(any(words in said for words in reason.split("|")), said)

    def test_a_temporary_that_old_gcc_destroys_twice_is_refused_there_alone(self):
        for name, text in TEMPORARIES.items():
            with self.subTest(name):
                fine, said = self.compiles(text)
                if is_old_gcc():
                    self.assertFalse(fine, "it compiles")
                    self.assertRegex(said, "give the (argument|items or the lambda) a name")
                else:
                    self.assertTrue(fine, said)


if __name__ == "__main__":
    if shutil.which(COMPILER) is None:
        print(f"{COMPILER} is not installed: nothing was tried")
        sys.exit(SKIPPED)
    unittest.main()
