// The shared files of the AWS tools: ~/.aws/credentials and ~/.aws/config.
#include <fstream>
#include <sstream>

#include "auth/credential_sources.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::size_t file_bytes_max = 1U << 20U;

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// A comment begins a line, or stands after a blank.
std::string_view without_comment(std::string_view line) {
    for (std::size_t at = 0; at < line.size(); ++at) {
        const bool marks = line[at] == '#' || line[at] == ';';
        if (marks && (at == 0 || blanks.find(line[at - 1]) != std::string_view::npos)) {
            return line.substr(0, at);
        }
    }
    return line;
}

std::string section_name(std::string_view line) {
    const std::size_t end = line.find(']');
    std::string_view name = trimmed(line.substr(1, end == std::string_view::npos ? end : end - 1));
    constexpr std::string_view prefix = "profile";
    if (name.starts_with(prefix) && name.size() > prefix.size() &&
        blanks.find(name[prefix.size()]) != std::string_view::npos) {
        name = trimmed(name.substr(prefix.size()));
    }
    return std::string(name);
}

std::filesystem::path path_of(const Search& search, const char* variable, const char* file) {
    if (const auto path = search.variable(variable)) {
        return *path;
    }
    const auto home = search.variable("HOME");
    return home ? std::filesystem::path(*home) / ".aws" / file : std::filesystem::path();
}

// A missing file counts as empty.
Profiles read_profiles(const std::filesystem::path& path) {
    std::error_code ignored;
    if (path.empty() || !std::filesystem::exists(path, ignored)) {
        return {};
    }
    return parse_profiles(read_small_file(path));
}

std::string value_of(const Profile& profile, std::string_view name) {
    const auto found = profile.find(name);
    return found == profile.end() ? "" : found->second;
}

[[noreturn]] void refuse_kind(const std::string& name, std::string_view setting) {
    throw InvalidArgument(fmt::format(
        "the profile '{}' uses {}, which is not understood here; give it a credential_process, for "
        "example `aws configure export-credentials --profile {} --format process`",
        name,
        setting,
        name));
}

Found from_settings(const Search& search, const std::string& name, const Profile& profile) {
    const std::string id = value_of(profile, "aws_access_key_id");
    const std::string secret = value_of(profile, "aws_secret_access_key");
    if (profile.contains("role_arn") && !profile.contains("web_identity_token_file")) {
        refuse_kind(name, "role_arn");
    }
    if (!id.empty() && !secret.empty()) {
        return Credentials{.access_key_id = id,
                           .secret_access_key = secret,
                           .session_token = value_of(profile, "aws_session_token")};
    }
    if (!id.empty() || !secret.empty()) {
        throw InvalidArgument(fmt::format(
            "the profile '{}' has only one of aws_access_key_id and aws_secret_access_key", name));
    }
    if (profile.contains("web_identity_token_file")) {
        const std::string session = value_of(profile, "role_session_name");
        return assume_role(search,
                           {.role_arn = value_of(profile, "role_arn"),
                            .token_file = value_of(profile, "web_identity_token_file"),
                            .session_name = session.empty() ? "holdfast" : session});
    }
    if (const std::string command = value_of(profile, "credential_process"); !command.empty()) {
        return run_credential_process(search, command);
    }
    for (const std::string_view setting : {"sso_session", "sso_start_url", "login_session"}) {
        if (profile.contains(setting)) {
            refuse_kind(name, setting);
        }
    }
    return Absent{fmt::format("the profile '{}' has no keys", name)};
}

}  // namespace

std::string read_small_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(file_bytes_max + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad() || !file.eof()) {
        throw InvalidArgument(fmt::format("the file {} cannot be read", path.string()));
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

Profiles parse_profiles(std::string_view text) {
    Profiles profiles;
    Profile* current = nullptr;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        // An indented line belongs to the setting above it and is ignored here.
        const bool indented = !line.empty() && blanks.find(line[0]) != std::string_view::npos;
        const std::string_view content = trimmed(without_comment(line));
        if (content.empty() || indented) {
            continue;
        }
        if (content[0] == '[') {
            current = &profiles[section_name(content)];
            continue;
        }
        const std::size_t equals = content.find('=');
        if (current != nullptr && equals != std::string_view::npos) {
            current->insert_or_assign(std::string(trimmed(content.substr(0, equals))),
                                      std::string(trimmed(content.substr(equals + 1))));
        }
    }
    return profiles;
}

Found from_profile(const Search& search) {
    std::string name = search.options.profile;
    if (name.empty()) {
        name = search.variable("AWS_PROFILE").value_or("");
    }
    const bool asked_for = !name.empty();
    if (!asked_for) {
        name = "default";
    }
    // Settings of the credentials file go before those of the config file.
    Profiles credentials =
        read_profiles(path_of(search, "AWS_SHARED_CREDENTIALS_FILE", "credentials"));
    Profiles config = read_profiles(path_of(search, "AWS_CONFIG_FILE", "config"));
    if (!credentials.contains(name) && !config.contains(name)) {
        if (asked_for) {
            throw InvalidArgument(fmt::format(
                "there is no profile '{}' in the AWS files; correct AWS_PROFILE", name));
        }
        return Absent{"there is no profile 'default'"};
    }
    Profile profile = std::move(credentials[name]);
    profile.merge(config[name]);
    return from_settings(search, name, profile);
}

}  // namespace holdfast::dsql
