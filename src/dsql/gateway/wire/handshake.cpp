#include "gateway/wire/handshake.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <holdfast/base/random.hpp>
#include <holdfast/dsql/endpoint.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast::dsql {

namespace {

constexpr std::int32_t ask_for_password = 3;

ErrorResponse refusal(std::string reason, std::string hint = {}) {
    return {.code = "08006",
            .message = fmt::format("unable to accept connection, {}", reason),
            .hint = std::move(hint),
            .fatal = true};
}

// Empty if none came in time.
std::optional<Message> wait_for_message(Channel& channel, MessageStream& stream) {
    while (true) {
        if (auto message = stream.next()) {
            return message;
        }
        std::array<char, 4096> bytes;  // NOLINT(*-member-init): filled by the read.
        const std::size_t size = channel.read(bytes);
        if (size == 0) {
            return std::nullopt;
        }
        stream.append({bytes.data(), size});
    }
}

Startup parsed(std::string_view body) {
    Startup startup;
    BodyReader reader(body);
    (void)reader.int32();
    while (!reader.empty()) {
        const std::string_view name = reader.text();
        if (name.empty()) {
            break;
        }
        startup.params[std::string(name)] = reader.text();
    }
    return startup;
}

// `-c name=value` and `--name=value`, as PostgreSQL reads the parameter `options`: blanks separate,
// a backslash takes the next character as it is.
Backend::Params settings_in(std::string_view options) {
    std::vector<std::string> words(1);
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (options[i] == '\\' && i + 1 < options.size()) {
            words.back() += options[++i];
        } else if (std::isspace(static_cast<unsigned char>(options[i])) == 0) {
            words.back() += options[i];
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    Backend::Params settings;
    for (std::string_view word : words) {
        if (word == "-c" || word.empty()) {
            continue;
        }
        word.remove_prefix(word.starts_with("--") || word.starts_with("-c") ? 2 : 0);
        const std::size_t equals = std::min(word.find('='), word.size());
        settings[std::string(word.substr(0, equals))] =
            word.substr(std::min(equals + 1, word.size()));
    }
    return settings;
}

constexpr std::string_view cluster_setting = "amzn-cluster-id";

// All settings that the client requests.
Backend::Params settings_of(const Startup& startup) {
    Backend::Params settings = settings_in(startup.value("options"));
    settings.erase(std::string(cluster_setting));
    for (const auto& [name, value] : startup.params) {
        if (name != "user" && name != "database" && name != "options" && name != "replication") {
            settings[name] = value;
        }
    }
    return settings;
}

}  // namespace

void TlsFree::operator()(SSL* ssl) const noexcept {
    SSL_free(ssl);
}

std::string Startup::value(std::string_view name) const {
    const auto found = params.find(name);
    return found == params.end() ? std::string{} : found->second;
}

std::string Startup::cluster_option() const {
    const Backend::Params settings = settings_in(value("options"));
    const auto found = settings.find(cluster_setting);
    return found == settings.end() ? std::string{} : found->second;
}

std::string Startup::cluster_id() const {
    const std::string named = cluster_option();
    return named.empty() ? cluster_id_of(server_name) : named;
}

bool Startup::sets_rules() const {
    const Backend::Params settings = settings_of(*this);
    return settings.contains("search_path") || settings.contains(sync_index_setting);
}

std::optional<Startup> read_startup(
    Channel& channel, MessageStream& stream, int fd, SSL_CTX* context, Tls& tls) {
    bool asked_for_gss = false;
    while (const auto message = wait_for_message(channel, stream)) {
        switch (message->code) {
            case ssl_request:
                // Bytes sent unencrypted must not be read as if TLS had protected them.
                if (tls || !stream.empty() || !channel.write("S")) {
                    return std::nullopt;
                }
                tls.reset(SSL_new(context));
                SSL_set_fd(tls.get(), fd);
                channel.secure(tls.get());
                if (!channel.accept_tls()) {
                    return std::nullopt;
                }
                break;
            case gss_request:
                if (asked_for_gss || !channel.write("N")) {
                    return std::nullopt;
                }
                asked_for_gss = true;
                break;
            case protocol_3: {
                Startup startup = parsed(message->body);
                if (tls) {
                    const char* name = SSL_get_servername(tls.get(), TLSEXT_NAMETYPE_host_name);
                    startup.server_name = normal_endpoint(name == nullptr ? "" : name);
                }
                return startup;
            }
            default:
                return std::nullopt;  // A request to cancel has no effect here either.
        }
    }
    return std::nullopt;
}

std::optional<ErrorResponse> objection_to(const Startup& startup) {
    if (startup.cluster_id().empty()) {
        return refusal("sni was not received");
    }
    const std::string database = startup.value("database");
    if (!database.empty() && database != "postgres") {
        return ErrorResponse{.code = "3D000",
                             .message = fmt::format("database \"{}\" does not exist", database),
                             .fatal = true};
    }
    for (const auto& [name, value] : settings_of(startup)) {
        const auto script = check_statements(
            fmt::format("SET {} TO {}", quoted_name(name), quoted_text(value)), {});
        if (script.size() != 1 || script.front().kind != Kind::set || script.front().refusal) {
            return ErrorResponse{.code = "0A000",
                                 .message = fmt::format(
                                     "setting configuration parameter \"{}\" not supported", name),
                                 .fatal = true};
        }
    }
    return std::nullopt;
}

std::variant<ErrorResponse, std::string> identify(const GatewayOptions& options,
                                                  Wall now,
                                                  const Startup& startup,
                                                  Channel& channel,
                                                  MessageStream& stream) {
    std::string question;
    append_message(question, 'R', BodyWriter().int32(ask_for_password).body());
    if (!channel.write(question)) {
        return refusal("access denied");
    }
    const auto message = wait_for_message(channel, stream);
    if (!message || message->type != 'p') {
        return refusal("access denied", "A token was expected.");
    }
    const std::string token(BodyReader(message->body).text());
    const std::string region = region_of(startup.server_name).value_or(options.region);
    const bool by_option = !startup.cluster_option().empty();
    const TokenDemand demand{
        .host = by_option ? fmt::format("{}.dsql.{}.on.aws", startup.cluster_option(), region)
                          : startup.server_name,
        .region = region,
        .user = startup.value("user")};
    const auto& keys = options.keys;
    const auto key_of = [&keys](std::string_view id) {
        return std::find_if(keys.begin(), keys.end(), [id](const GatewayKey& key) {
            return key.access_key_id == id;
        });
    };
    const auto verdict = verify_token(
        token,
        demand,
        [&](std::string_view id) -> std::optional<Credentials> {
            const auto key = key_of(id);
            if (key == keys.end()) {
                return std::nullopt;
            }
            return Credentials{.access_key_id = key->access_key_id,
                               .secret_access_key = key->secret,
                               .session_token = key->session_token};
        },
        now);
    if (const auto* refused = std::get_if<TokenRefusal>(&verdict)) {
        return refusal("access denied", refused->hint);
    }
    return key_of(std::get<TokenGrant>(verdict).access_key_id)->arn;
}

std::optional<ErrorResponse> authorize(Cluster& cluster,
                                       const Startup& startup,
                                       const std::string& arn) {
    const std::string user = startup.value("user");
    if (!cluster.has_role(user) || (user != admin_user && !cluster.granted(user, arn))) {
        return refusal("access denied",
                       fmt::format("User: {} is not authorized to connect as {}", arn, user));
    }
    return std::nullopt;
}

std::unique_ptr<Backend> open_backend(Cluster& cluster, const Startup& startup) {
    auto backend = cluster.connect(startup.value("user"));
    for (const auto& [name, value] : settings_of(startup)) {
        const std::string_view known =
            name == sync_index_setting ? sync_index_setting_below : std::string_view(name);
        (void)backend->query(fmt::format(
            "SELECT set_config({}, {}, false)", quoted_text(known), quoted_text(value)));
    }
    return backend;
}

std::string welcome(const Backend& backend, const Startup& startup) {
    std::string bytes;
    append_message(bytes, 'R', BodyWriter().int32(0).body());
    const auto report = [&bytes](std::string_view name, std::string_view value) {
        append_message(bytes, 'S', BodyWriter().text(name).text(value).body());
    };
    report("server_version", reported_version);
    for (const auto& [name, value] : backend.parameters()) {
        // libpq got these before the client's settings were applied.
        const bool ours = name == "application_name";
        const std::string wanted = name == "session_authorization" ? startup.value("user")
                                   : ours                          ? startup.value(name)
                                   : name == "is_superuser"        ? "off"
                                                                   : value;
        report(name, wanted);
    }
    // It cannot be used to cancel.
    append_message(
        bytes,
        'K',
        BodyWriter().int32(backend.pid()).int32(static_cast<std::int32_t>(secure_seed())).body());
    append_message(bytes, 'Z', "I");
    return bytes;
}

}  // namespace holdfast::dsql
