#include "gateway/job_id.hpp"

#include <cstdint>

#include <holdfast/base/random.hpp>
#include <holdfast/dsql/wire.hpp>

namespace holdfast::dsql {

namespace {

constexpr int characters = 26;
constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::int32_t type_text = 25;

}  // namespace

std::string new_job_id() {
    std::string id;
    std::uint64_t bits = 0;
    int left = 0;
    for (int i = 0; i < characters; ++i) {
        if (left < 5) {
            bits = secure_seed();
            left = 60;
        }
        // 16 bytes fill 25 characters and three bits of the last.
        const std::uint64_t mask = i + 1 == characters ? 0b11100 : 0b11111;
        id += alphabet[static_cast<std::size_t>(bits & mask)];
        bits >>= 5U;
        left -= 5;
    }
    return id;
}

std::string job_description() {
    return BodyWriter()
        .int16(1)
        .text("job_id")
        .int32(0)
        .int16(0)
        .int32(type_text)
        .int16(-1)
        .int32(-1)
        .int16(0)
        .body();
}

}  // namespace holdfast::dsql
