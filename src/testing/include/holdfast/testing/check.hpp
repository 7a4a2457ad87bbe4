// Small helpers for test bodies.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>

// Says which item of docs/conformance this test proves: HOLDFAST_CHECK("store 201"). The item
// becomes a property in the test's report. Used in the body of a GoogleTest case; one test may
// prove up to eight items. tools/coverage.py compares the marks with the lists.
#define HOLDFAST_CHECK(item) ::testing::Test::RecordProperty("check " item, "")

namespace holdfast::test {

// By the machine's clock; only a test that fails waits for it.
[[nodiscard]] inline Deadline soon() {
    return Deadline::after(std::chrono::seconds{20});
}

// The code and the outcome of the Error that `body` threw; empty if it returned. Anything else that
// is thrown passes through.
template <class Body>
[[nodiscard]] std::optional<Code> code_of(Body&& body) {
    try {
        std::forward<Body>(body)();
        return std::nullopt;
    } catch (const Error& error) {
        return error.code();
    }
}

template <class Body>
[[nodiscard]] std::optional<Outcome> outcome_of(Body&& body) {
    try {
        std::forward<Body>(body)();
        return std::nullopt;
    } catch (const Error& error) {
        return error.outcome();
    }
}

}  // namespace holdfast::test
