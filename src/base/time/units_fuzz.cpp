// Any text is a duration, a size, a moment, or refused; and what can be printed reads back as it
// was.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast {
namespace {

void check_duration(std::string_view text) {
    const auto duration = parse_duration(text);
    HOLDFAST_ASSERT(duration.count() >= 0);
    HOLDFAST_ASSERT(parse_duration(format_duration(duration)) == duration);
}

void check_size(std::string_view text) {
    const auto bytes = parse_size(text);
    HOLDFAST_ASSERT(parse_size(format_size(bytes)) == bytes);
}

void check_moment(std::string_view text) {
    HOLDFAST_ASSERT(parse_moment(text) >= std::chrono::sys_days{std::chrono::year{1} / 1 / 1});
}

// Anything but a refusal with a message gets out and stops the fuzzer.
void accept_or_refuse(void (*check)(std::string_view), std::string_view text) {
    try {
        check(text);
    } catch (const InvalidArgument& error) {
        HOLDFAST_ASSERT(error.what()[0] != '\0');
    }
}

}  // namespace
}  // namespace holdfast

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    holdfast::accept_or_refuse(holdfast::check_duration, text);
    holdfast::accept_or_refuse(holdfast::check_size, text);
    holdfast::accept_or_refuse(holdfast::check_moment, text);
    return 0;
}
