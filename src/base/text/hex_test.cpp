#include <holdfast/base/hex.hpp>

#include <array>

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(Hex, HasTwoLowerCaseDigitsPerByte) {
    EXPECT_EQ(to_hex({}), "");
    EXPECT_EQ(
        to_hex(std::array{std::byte{0x00}, std::byte{0x0a}, std::byte{0x9f}, std::byte{0xff}}),
        "000a9fff");
}

}  // namespace
}  // namespace holdfast
