// Any text renders for every database or is refused with an Error; so does any migration.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "migration_text.hpp"

#include <holdfast/base/error.hpp>
#include <holdfast/sql/statement.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast::sql;
    const std::string_view text{reinterpret_cast<const char*>(data), size};
    for (const Dialect& dialect : every_dialect()) {
        try {
            (void)render(dialect, "fuzz", text);
        } catch (const holdfast::Error&) {
        }
        try {
            (void)migration_steps(MigrationFile{"0001_fuzz", text}, dialect);
        } catch (const holdfast::Error&) {
        }
    }
    return 0;
}
