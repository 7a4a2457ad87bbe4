// Any text is a filter or is refused with an Error, and what is a filter becomes a query whose
// parameters are all there and whose text has nothing of the filter's.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "visibility/filter.hpp"
#include "visibility/visibility_query.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/sql/dialect.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast;
    for (const sql::Dialect& dialect : sql::every_dialect()) {
        try {
            const auto parsed = store::filter::parse({reinterpret_cast<const char*>(data), size});
            store::VisibilityQuery query({}, parsed);
            const sql::BuiltQuery built = std::move(query).page(std::nullopt, 10);
            HOLDFAST_ASSERT(built.text.find('\'') == std::string::npos);
            const sql::Rendered text = sql::render(dialect, built.name, built.text);
            HOLDFAST_ASSERT(text.arguments == built.args.size());
        } catch (const Error&) {
        }
    }
    return 0;
}
