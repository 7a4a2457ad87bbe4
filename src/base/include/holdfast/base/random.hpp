// Randomness, passed in by the caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace holdfast {

// A small generator whose sequence depends on its seed and nothing else, on any machine and with
// any standard library. Not for secrets. One per thread: it is not safe to share.
class Random {
public:
    explicit Random(std::uint64_t seed) noexcept;

    [[nodiscard]] std::uint64_t next() noexcept;
    // Uniform in [0, bound). Requires: bound > 0.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;
    // Uniform in [0, 1).
    [[nodiscard]] double unit() noexcept;

private:
    std::uint64_t state_[4];
};

// Fills `out` from the kernel's generator. For secrets, tokens and seeds.
void secure_random(std::span<std::byte> out);
[[nodiscard]] std::uint64_t secure_seed();

// This thread's own generator, seeded by the kernel. For jitter.
[[nodiscard]] Random& thread_random() noexcept;

}  // namespace holdfast
