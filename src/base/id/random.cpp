#include <holdfast/base/random.hpp>

#include <bit>
#include <cerrno>
#include <limits>
#include <string>
#include <system_error>

#include <sys/random.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast {
namespace {

// Spreads a seed over the whole state, so that small seeds do not give similar sequences.
std::uint64_t splitmix64(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed) noexcept {
    for (std::uint64_t& word : state_) {
        word = splitmix64(seed);
    }
}

// xoshiro256** by Blackman and Vigna.
std::uint64_t Random::next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17U;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
}

std::uint64_t Random::below(std::uint64_t bound) noexcept {
    HOLDFAST_ASSERT(bound > 0);
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    while (true) {
        const std::uint64_t drawn = next();
        const std::uint64_t result = drawn % bound;
        // The last block of `bound` values may be cut off by 2^64; a draw from it would favour
        // small results. Less than every second draw is thrown away, even for the worst bound.
        if (drawn - result <= largest - (bound - 1)) {
            return result;
        }
    }
}

double Random::unit() noexcept {
    return static_cast<double>(next() >> 11U) * 0x1.0p-53;
}

void secure_random(std::span<std::byte> out) {
    while (!out.empty()) {
        const ssize_t got = ::getrandom(out.data(), out.size(), 0);
        if (got > 0) {
            out = out.subspan(static_cast<std::size_t>(got));
        } else if (errno != EINTR) {
            throw Error(Code::internal,
                        Outcome::not_applied,
                        std::string("the kernel gives no random bytes: ") +
                            std::system_category().message(errno) +
                            "; allow the getrandom system call");
        }
    }
}

std::uint64_t secure_seed() {
    std::uint64_t seed = 0;
    secure_random(std::as_writable_bytes(std::span(&seed, 1)));
    return seed;
}

Random& thread_random() noexcept {
    thread_local Random random(secure_seed());
    return random;
}

}  // namespace holdfast
