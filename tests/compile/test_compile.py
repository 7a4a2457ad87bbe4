"""Wrong workflows against the compiler: each is refused, with the sentence that names the cure.

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

INCLUDES = [f"-I{REPOSITORY}/src/{floor}/include" for floor in ("base", "flow/engine")]

PRELUDE = """
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <holdfast/flow_engine/combine.hpp>
#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/map.hpp>
#include <holdfast/flow_engine/saga.hpp>

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
    "an argument that converts": """
        Workflow<Unit> right(Context& ctx) {
            co_await ctx.child<&child>(short{3});
            co_await ctx.activity<&greet>("text");
            co_return Unit{};
        }
        auto program = &detail::run_program<&right>;
    """,
}

# What is wrong, the program, and what the compiler must say (one of several, with a bar between).
WRONG = {
    "awaiting what is no operation": (
        "Workflow<int> w(Context&) { co_await std::suspend_always{}; co_return 1; }",
        "a workflow can await only flow operations",
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
TEMPORARY = """
    Workflow<int> w(Context& ctx, std::string item) {
        int n = co_await ctx.activity<&ship>(Order{item, 1});
        co_return n;
    }
"""


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
        fine, said = self.compiles(TEMPORARY)
        if is_old_gcc():
            self.assertFalse(fine, "it compiles")
            self.assertIn("give the argument a name in the line before", said)
        else:
            self.assertTrue(fine, said)


if __name__ == "__main__":
    if shutil.which(COMPILER) is None:
        print(f"{COMPILER} is not installed: nothing was tried")
        sys.exit(SKIPPED)
    unittest.main()
