#include "dsql/gateway.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "cli/answer.hpp"
#include "dsql/serve.hpp"
#include "signals.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr const char* keys_variable = "HOLDFAST_GATEWAY_KEYS";

// ID:SECRET[:ARN]. The ARN is the rest, since it has colons itself.
dsql::GatewayKey key_in(std::string_view word, std::string_view where) {
    const std::size_t colon = word.find(':');
    const std::size_t second = std::min(word.find(':', colon + 1), word.size());
    if (colon == 0 || colon == std::string_view::npos || second == colon + 1) {
        // Not the word itself: it may be a secret.
        throw InvalidArgument(
            fmt::format("{} has an entry that is not ID:SECRET or ID:SECRET:ARN", where));
    }
    dsql::GatewayKey key{.access_key_id = std::string(word.substr(0, colon)),
                         .secret = std::string(word.substr(colon + 1, second - colon - 1))};
    if (second < word.size()) {
        key.arn = word.substr(second + 1);
    }
    return key;
}

// Words between blanks, commas and ends of lines; what follows a # is a remark.
std::vector<dsql::GatewayKey> keys_in(std::string_view text, std::string_view where) {
    constexpr std::string_view separators = " \t\r\n,";
    std::vector<dsql::GatewayKey> keys;
    for (std::size_t at = text.find_first_not_of(separators); at < text.size();
         at = text.find_first_not_of(separators, at)) {
        const bool remark = text[at] == '#';
        const std::size_t end = std::min(
            remark ? text.find('\n', at) : text.find_first_of(separators, at), text.size());
        if (!remark) {
            keys.push_back(key_in(text.substr(at, end - at), where));
        }
        at = end;
    }
    if (keys.empty()) {
        throw InvalidArgument(fmt::format("{} has no keys; give at least one ID:SECRET", where));
    }
    return keys;
}

}  // namespace

std::vector<dsql::GatewayKey> given_keys(const std::string& file) {
    if (file.empty()) {
        // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment never changes.
        const char* text = std::getenv(keys_variable);
        return text == nullptr ? std::vector<dsql::GatewayKey>{} : keys_in(text, keys_variable);
    }
    std::ifstream stream(file);
    if (!stream) {
        throw InvalidArgument(fmt::format("cannot read {}; give --credentials a file", file));
    }
    return keys_in(std::string{std::istreambuf_iterator<char>(stream), {}}, file);
}

int dsql_gateway(const Context& context, const DsqlGatewayRequest& request) {
    const HttpAddress listen = HttpAddress::parse(request.listen);
    dsql::GatewayOptions options = gateway_options(context, request.behaviour);
    options.host = listen.host;
    options.port = listen.port;
    options.upstream = request.upstream;
    options.certificate = request.certificate;
    options.certificate_key = request.key;
    options.keys = given_keys(request.credentials);
    if (options.keys.empty()) {
        throw InvalidArgument(fmt::format(
            "there are no keys to check tokens with; give --credentials FILE or set {}=ID:SECRET",
            keys_variable));
    }
    options.region = request.region;

    dsql::Gateway gateway(std::move(options));
    const auto control = serve_control(gateway, request.control);
    Json json{{"host", listen.host}, {"port", gateway.port()}};
    std::string sentence =
        fmt::format("The gateway listens on {}:{}.", listen.host, gateway.port());
    if (control) {
        json["control_port"] = control->port();
        sentence += fmt::format(" Control port: http://{}:{}.",
                                HttpAddress::parse(request.control).host,
                                control->port());
    }
    say(context, json, sentence);
    wait_for_signal(context);
    gateway.stop();
    return exit_done;
}

}  // namespace holdfast::app
