#include "dsql/token.hpp"

#include <algorithm>
#include <charconv>

#include "cli/answer.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/endpoint.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast::app {
namespace {

constexpr std::chrono::seconds token_patience{10};

std::string region_of(const DsqlTokenRequest& request, const std::string& endpoint) {
    if (!request.region.empty()) {
        return request.region;
    }
    if (const auto said = dsql::region_of(endpoint)) {
        return *said;
    }
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
        if (const auto set = dsql::process_variable(name)) {
            return *set;
        }
    }
    throw InvalidArgument(fmt::format(
        "the host name {} does not contain a region; add --region us-east-1", endpoint));
}

// A number alone is seconds, as everywhere where tokens are made.
std::chrono::seconds life(const std::string& text) {
    const bool number = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return c >= '0' && c <= '9';
    });
    return std::chrono::floor<std::chrono::seconds>(parse_duration(number ? text + "s" : text));
}

}  // namespace

int dsql_token(const Context& context, const DsqlTokenRequest& request) {
    const std::string endpoint = dsql::normal_endpoint(request.endpoint);
    const dsql::TokenRequest token_request{
        .host = endpoint,
        .region = region_of(request, endpoint),
        .action = request.admin ? dsql::Action::connect_admin : dsql::Action::connect,
        .life = life(request.expires)};
    const Wall now = request.now.empty() ? system_clock().wall_now() : parse_moment(request.now);
    dsql::CredentialChain chain(
        {.profile = request.profile, .region = token_request.region, .logger = &context.logger});
    const dsql::Credentials keys = chain.get(Deadline::after(token_patience), context.stop);
    const std::string token = dsql::make_token(token_request, keys, now);
    return say(context,
               {{"token", token},
                {"action", dsql::to_string(token_request.action)},
                {"region", token_request.region},
                {"credentials", chain.source()}},
               token);
}

}  // namespace holdfast::app
