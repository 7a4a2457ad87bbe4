// Any text is checked, and none that was not signed with our keys is accepted. Files of profiles
// and addresses come from strangers as well.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "auth/credential_sources.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/http_client.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast::dsql {
namespace {

void check_token(std::string_view text) {
    const TokenDemand demand{.host = "localhost", .region = "us-east-1", .user = "admin"};
    const auto keys_of = [](std::string_view id) {
        return std::optional(Credentials{.access_key_id = std::string(id),
                                         .secret_access_key = "nobody can guess this one"});
    };
    const auto verdict = verify_token(text, demand, keys_of, Wall{});
    const auto* const refusal = std::get_if<TokenRefusal>(&verdict);
    HOLDFAST_ASSERT(refusal != nullptr);
    HOLDFAST_ASSERT(!refusal->hint.empty());
    const auto life = life_of_token(text);
    HOLDFAST_ASSERT(!life || life->expiry > life->birth);
}

void check_address(std::string_view text) {
    try {
        const HttpUrl url = parse_http_url(text);
        HOLDFAST_ASSERT(!url.host.empty());
        HOLDFAST_ASSERT(url.port > 0);
    } catch (const InvalidArgument& error) {
        HOLDFAST_ASSERT(error.what()[0] != '\0');
    }
}

}  // namespace
}  // namespace holdfast::dsql

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    holdfast::dsql::check_token(text);
    holdfast::dsql::check_address(text);
    (void)holdfast::dsql::parse_profiles(text);
    return 0;
}
