// Any text is either a URL or refused with an Error, and no password is ever printed whole.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/url.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        (void)holdfast::sql::parse_url({reinterpret_cast<const char*>(data), size}).printable();
    } catch (const holdfast::Error&) {
    }
    return 0;
}
