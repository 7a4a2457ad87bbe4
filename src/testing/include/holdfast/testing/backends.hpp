// `For each database`, in GoogleTest's terms.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include <holdfast/testing/database.hpp>

namespace holdfast::test {

[[nodiscard]] inline auto every_backend() {
    return testing::Values(Backend::sqlite, Backend::postgres, Backend::dsql);
}

[[nodiscard]] inline std::string backend_name(const testing::TestParamInfo<Backend>& info) {
    return std::string(to_string(info.param));
}

}  // namespace holdfast::test
