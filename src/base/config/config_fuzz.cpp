// Any file is a configuration or is refused with a message; and what is in force can be given back
// as flags and means the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/config.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/settings.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast;
    static const Settings settings = holdfast_settings();
    ConfigSources from_file;
    from_file.file = ConfigFile{"fuzz.yaml", {reinterpret_cast<const char*>(data), size}};
    try {
        const auto shown = Config::load(settings, from_file).effective();
        ConfigSources from_flags;
        for (const auto& one : shown) {
            from_flags.flags.push_back({one.key, "--set", one.value});
        }
        const auto again = Config::load(settings, from_flags).effective();
        HOLDFAST_ASSERT(again.size() == shown.size());
        for (std::size_t i = 0; i < again.size(); ++i) {
            HOLDFAST_ASSERT(again[i].value == shown[i].value);
        }
    } catch (const InvalidArgument& error) {
        HOLDFAST_ASSERT(error.what()[0] != '\0');
    }
    return 0;
}
