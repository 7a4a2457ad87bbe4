#include <holdfast/dsql/credentials.hpp>

#include <array>
#include <cstdlib>
#include <string_view>

#include "auth/credential_sources.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::dsql {
namespace {

struct Place {
    std::string_view name;
    Found (*look)(const Search&);
};

constexpr std::array places{Place{"environment", from_environment},
                            Place{"shared files", from_profile},
                            Place{"web identity", from_web_identity},
                            Place{"container endpoint", from_container},
                            Place{"instance metadata", from_instance}};
constexpr std::string_view profile_place = "shared files";

// Keys without an expiration never expire.
std::chrono::seconds life_left(const Credentials& keys, Wall now) {
    return keys.expires ? std::chrono::floor<std::chrono::seconds>(*keys.expires - now)
                        : std::chrono::seconds::max();
}

class FixedCredentials final : public CredentialProvider {
public:
    explicit FixedCredentials(Credentials credentials) : credentials_(std::move(credentials)) {}

    [[nodiscard]] Credentials get(Deadline, const std::stop_token&) override {
        return credentials_;
    }
    void forget() noexcept override {}
    [[nodiscard]] std::string source() const override { return "given"; }

private:
    const Credentials credentials_;
};

}  // namespace

std::unique_ptr<CredentialProvider> fixed_credentials(Credentials credentials) {
    return std::make_unique<FixedCredentials>(std::move(credentials));
}

std::optional<std::string> process_variable(const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): only read.
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

CredentialChain::CredentialChain(CredentialOptions options)
    : options_(std::move(options)),
      clock_(options_.clock == nullptr ? system_clock() : *options_.clock) {}

Credentials CredentialChain::get(Deadline deadline, const std::stop_token& stop) {
    const std::lock_guard one_at_a_time(resolving_);
    std::optional<Credentials> known;
    {
        const std::lock_guard lock(mutex_);
        known = known_;
    }
    const auto left = known ? life_left(*known, clock_.wall_now()) : std::chrono::seconds{0};
    if (left > credential_margin) {
        return *known;  // NOLINT(bugprone-unchecked-optional-access): has some life left.
    }
    try {
        return resolve(deadline, stop);
    } catch (const Error& error) {
        if (!known || left <= std::chrono::seconds{0}) {
            throw;
        }
        if (options_.logger != nullptr) {
            options_.logger->warn("AWS credentials were not renewed",
                                  {{"cause", error.what()}, {"expires_in_s", left.count()}});
        }
        return *known;
    }
}

Credentials CredentialChain::resolve(Deadline deadline, const std::stop_token& stop) {
    const Search search{.options = options_, .clock = clock_, .deadline = deadline, .stop = stop};
    std::string tried;
    for (const Place& place : places) {
        if (!options_.profile.empty() && place.name != profile_place) {
            continue;
        }
        Found found;
        try {
            found = place.look(search);
        } catch (Error& error) {
            error.add_context(fmt::format("AWS credentials from the {}", place.name));
            throw;
        }
        if (const auto* absent = std::get_if<Absent>(&found)) {
            tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", place.name, absent->why);
            continue;
        }
        const std::lock_guard lock(mutex_);
        known_ = std::get<Credentials>(found);
        source_ = place.name;
        return *known_;
    }
    throw Error(Code::unauthorized,
                Outcome::not_applied,
                fmt::format("there are no AWS credentials here ({}); set AWS_ACCESS_KEY_ID and "
                            "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
                            tried));
}

void CredentialChain::forget() noexcept {
    const std::lock_guard lock(mutex_);
    known_.reset();
}

std::string CredentialChain::source() const {
    const std::lock_guard lock(mutex_);
    return source_;
}

}  // namespace holdfast::dsql
