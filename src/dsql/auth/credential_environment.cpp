#include "auth/credential_sources.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::dsql {

Found from_environment(const Search& search) {
    const auto id = search.variable("AWS_ACCESS_KEY_ID");
    const auto secret = search.variable("AWS_SECRET_ACCESS_KEY");
    if (!id && !secret) {
        return Absent{"AWS_ACCESS_KEY_ID is not set"};
    }
    if (!id || !secret) {
        throw InvalidArgument(fmt::format("{} is set without {}; set both or none",
                                          id ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                                          id ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID"));
    }
    Credentials credentials{.access_key_id = *id, .secret_access_key = *secret};
    credentials.session_token = search.variable("AWS_SESSION_TOKEN").value_or("");
    if (const auto expires = search.variable("AWS_CREDENTIAL_EXPIRATION")) {
        credentials.expires = parse_moment(*expires);
    }
    return credentials;
}

}  // namespace holdfast::dsql
