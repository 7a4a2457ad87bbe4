// Any text is a query or is refused as one, for lists and for counts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "visibility/query.hpp"
#include <server/namespaces/namespace.pb.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>

namespace {

holdfast::server::search_attributes::Info known_attributes() {
    holdfast::server::search_attributes::Info info;
    (*info.mutable_aliases())["Int01"] = "Level";
    (*info.mutable_aliases())["Keyword01"] = "Order Id.v2";
    (*info.mutable_aliases())["Text01"] = "Notes";
    (*info.mutable_aliases())["Bool01"] = "Paid";
    (*info.mutable_aliases())["Double01"] = "Price";
    (*info.mutable_aliases())["Datetime01"] = "Due";
    (*info.mutable_aliases())["KeywordList01"] = "Tags";
    return info;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace holdfast::server::visibility;
    static const auto info = known_attributes();
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const Purpose purpose : {Purpose::list, Purpose::count}) {
        try {
            const StoreFilter filter = translate(text, {.info = info, .purpose = purpose});
            HOLDFAST_ASSERT(!filter.grouped || purpose == Purpose::count);
        } catch (const holdfast::InvalidArgument& error) {
            HOLDFAST_ASSERT(std::string_view(error.what()).starts_with("invalid query: "));
        }
    }
    return 0;
}
