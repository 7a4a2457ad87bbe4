// Any text is a schedule or refused; and the next time always comes, later than now and soon
// enough.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/cron.hpp>
#include <holdfast/base/error.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using Moment = holdfast::Cron::Moment;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const holdfast::Cron cron(text);
        Moment now = Moment{std::chrono::milliseconds{1'700'000'000'000}};
        for (int i = 0; i < 3; ++i) {
            const Moment next = cron.next(now, now);
            HOLDFAST_ASSERT(next > now);
            HOLDFAST_ASSERT(next - now <= std::chrono::hours{24 * 366 * 10});
            now = next;
        }
    } catch (const holdfast::InvalidArgument& error) {
        HOLDFAST_ASSERT(error.what()[0] != '\0');
    }
    return 0;
}
