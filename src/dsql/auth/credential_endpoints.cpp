// Keys over HTTP: from the container's agent, the instance's metadata, and for a web identity.
#include <algorithm>
#include <array>

#include "auth/credential_sources.hpp"
#include "auth/sigv4.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/http_client.hpp>
#include <holdfast/base/percent.hpp>

namespace holdfast::dsql {
namespace {

constexpr int http_ok = 200;
constexpr int http_not_found = 404;
constexpr int http_too_many = 429;
constexpr int http_server_error = 500;

bool worth_another_try(int status) {
    return status == http_too_many || status >= http_server_error;
}

// Repeats a request that is answered with "try later", a few times.
HttpReply ask(const Search& search,
              const HttpRequest& request,
              std::chrono::milliseconds patience) {
    for (int attempt = 1;; ++attempt) {
        const Deadline deadline = search.deadline.earlier(Deadline::after(patience));
        HttpReply reply = http_send(request, deadline, search.stop);
        if (!worth_another_try(reply.status) || attempt >= search.options.attempts_max) {
            return reply;
        }
        const Steady next = std::chrono::steady_clock::now() + search.options.attempt_pause;
        if (!system_clock().sleep_until(next, search.stop)) {
            throw Error(Code::cancelled, Outcome::not_applied, "the look-up was stopped");
        }
    }
}

[[noreturn]] void refused(std::string_view who, int status, std::string_view cure) {
    throw Error(worth_another_try(status) ? Code::unavailable : Code::unauthorized,
                Outcome::not_applied,
                fmt::format("{} answered with status {}; {}", who, status, cure));
}

std::string trimmed(std::string text) {
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
    return text;
}

// A token in a file ends with the file's last line.
std::string read_token(const std::filesystem::path& path) {
    return trimmed(read_small_file(path));
}

// ---- Container
// -----------------------------------------------------------------------------------

constexpr std::string_view agent_host = "169.254.170.2";

// Keys must not be sent unencrypted to anything but this machine and its host.
void check_container_url(const std::string& text) {
    const HttpUrl url = parse_http_url(text);
    constexpr std::array allowed{agent_host,
                                 std::string_view{"169.254.170.23"},
                                 std::string_view{"fd00:ec2::23"},
                                 std::string_view{"localhost"},
                                 std::string_view{"::1"}};
    const bool near = url.host.starts_with("127.") ||
                      std::find(allowed.begin(), allowed.end(), url.host) != allowed.end();
    if (!url.tls && !near) {
        throw InvalidArgument(fmt::format(
            "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host {} without TLS; use https",
            url.host));
    }
}

// ---- Instance
// ------------------------------------------------------------------------------------

std::string instance_endpoint(const Search& search) {
    if (const auto endpoint = search.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT")) {
        return endpoint->ends_with('/') ? endpoint->substr(0, endpoint->size() - 1) : *endpoint;
    }
    const std::string mode = search.variable("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE").value_or("");
    return mode == "IPv6" || mode == "ipv6" ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
}

// ---- Web identity
// --------------------------------------------------------------------------------

std::string sts_url(const Search& search) {
    for (const char* name : {"AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"}) {
        if (const auto url = search.variable(name)) {
            return *url;
        }
    }
    for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
        if (const auto region = search.variable(name)) {
            return fmt::format("https://sts.{}.amazonaws.com/", *region);
        }
    }
    return search.options.region.empty()
               ? "https://sts.amazonaws.com/"
               : fmt::format("https://sts.{}.amazonaws.com/", search.options.region);
}

// The service answers in XML, and these elements hold nothing but text.
std::string element(std::string_view xml, std::string_view name) {
    const std::string open = fmt::format("<{}>", name);
    const std::size_t begin = xml.find(open);
    const std::size_t end = xml.find(fmt::format("</{}>", name));
    if (begin == std::string_view::npos || end == std::string_view::npos ||
        end < begin + open.size()) {
        return {};
    }
    std::string text(xml.substr(begin + open.size(), end - begin - open.size()));
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> entities{
        {{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}}};
    for (const auto& [entity, character] : entities) {
        for (std::size_t at = text.find(entity); at != std::string::npos;
             at = text.find(entity, at + 1)) {
            text.replace(at, entity.size(), character);
        }
    }
    return text;
}

}  // namespace

Found from_container(const Search& search) {
    const auto relative = search.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const auto full = search.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    if (!relative && !full) {
        return Absent{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is not set"};
    }
    HttpRequest request;
    request.url = relative ? fmt::format("http://{}{}", agent_host, *relative) : *full;
    if (!relative) {
        check_container_url(*full);
    }
    request.headers.emplace_back("Accept", "application/json");
    auto token = search.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (const auto file = search.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
        token = read_token(*file);
    }
    if (token) {
        if (token->find_first_of("\r\n") != std::string::npos) {
            throw InvalidArgument("the container's authorization token has more than one line");
        }
        request.headers.emplace_back("Authorization", *token);
    }
    const HttpReply reply = ask(search, request, search.options.metadata_timeout);
    if (reply.status != http_ok) {
        refused("the container's endpoint", reply.status, "check the role of the task");
    }
    return credentials_from_json(reply.body, "the container's endpoint");
}

Found from_instance(const Search& search) {
    const std::string disabled = search.variable("AWS_EC2_METADATA_DISABLED").value_or("");
    if (disabled == "true" || disabled == "TRUE" || disabled == "True") {
        return Absent{"AWS_EC2_METADATA_DISABLED is set"};
    }
    const std::string endpoint = instance_endpoint(search);
    const auto patience = search.options.metadata_timeout;
    HttpReply session;
    try {
        session = ask(search,
                      {.method = "PUT",
                       .url = endpoint + "/latest/api/token",
                       .headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"},
                                   {"Content-Length", "0"}}},
                      patience);
    } catch (const Error& error) {
        if (error.code() != Code::unavailable) {
            throw;
        }
        return Absent{"no answer"};  // Most machines are not instances.
    }
    if (session.status != http_ok) {
        return Absent{fmt::format("no session (status {})", session.status)};
    }
    const auto get = [&](const std::string& path) {
        return ask(search,
                   {.url = endpoint + "/latest/meta-data/iam/security-credentials/" + path,
                    .headers = {{"X-aws-ec2-metadata-token", trimmed(session.body)}}},
                   patience);
    };
    const HttpReply roles = get("");
    if (roles.status == http_not_found) {
        return Absent{"the instance has no role"};
    }
    const std::string role = trimmed(roles.body.substr(0, roles.body.find('\n')));
    if (roles.status != http_ok || role.empty()) {
        refused("the instance's metadata", roles.status, "check the role of the instance");
    }
    const HttpReply keys = get(percent_encoded(role));
    if (keys.status != http_ok) {
        refused("the instance's metadata", keys.status, "check the role of the instance");
    }
    return credentials_from_json(keys.body, "the instance's metadata");
}

Found from_web_identity(const Search& search) {
    const auto file = search.variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    if (!file) {
        return Absent{"AWS_WEB_IDENTITY_TOKEN_FILE is not set"};
    }
    return assume_role(
        search,
        {.role_arn = search.variable("AWS_ROLE_ARN").value_or(""),
         .token_file = *file,
         .session_name = search.variable("AWS_ROLE_SESSION_NAME").value_or("holdfast")});
}

Credentials assume_role(const Search& search, const WebIdentity& identity) {
    if (identity.role_arn.empty()) {
        throw InvalidArgument("a web identity needs the role it stands for; set AWS_ROLE_ARN");
    }
    HttpRequest request{.method = "POST", .url = sts_url(search)};
    request.ca_file = search.variable("AWS_CA_BUNDLE").value_or("");
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    request.body = canonical_query({{"Action", "AssumeRoleWithWebIdentity"},
                                    {"Version", "2011-06-15"},
                                    {"RoleArn", identity.role_arn},
                                    {"RoleSessionName", identity.session_name},
                                    {"WebIdentityToken", read_token(identity.token_file)}});
    const HttpReply reply = ask(search, request, search.options.service_timeout);
    if (reply.status != http_ok) {
        const std::string code = element(reply.body, "Code");
        refused("the service for web identities",
                reply.status,
                fmt::format("it says '{}'; check AWS_ROLE_ARN and the role's trust policy", code));
    }
    return checked_keys({.access_key_id = element(reply.body, "AccessKeyId"),
                         .secret_access_key = element(reply.body, "SecretAccessKey"),
                         .session_token = element(reply.body, "SessionToken"),
                         .expiration = element(reply.body, "Expiration")},
                        "the service for web identities");
}

}  // namespace holdfast::dsql
