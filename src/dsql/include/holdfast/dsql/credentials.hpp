// Where AWS keys come from.
//
// The same places as in the AWS SDKs, in their order: the environment, the shared files with their
// profiles, a process, a web identity, the container's endpoint, the instance's metadata. The first
// place that is set up must return keys; they are kept, and renewed before they expire. No
// message and no log line contains a key's secret.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include <holdfast/base/clock.hpp>
#include <holdfast/dsql/token.hpp>

namespace holdfast {
class Logger;
}

namespace holdfast::dsql {

// Safe to share between threads.
class CredentialProvider {
public:
    virtual ~CredentialProvider() = default;

    // May block until `deadline`. Unauthorized if there are none, unavailable if a source does not
    // answer now, invalid_argument if a file or a variable has to be corrected.
    [[nodiscard]] virtual Credentials get(Deadline deadline, const std::stop_token& stop) = 0;

    // A server has refused the keys: the next get() looks them up again.
    virtual void forget() noexcept = 0;

    // Where they came from, for messages: "environment". Empty before the first get().
    [[nodiscard]] virtual std::string source() const = 0;
};

// Keys that are already known.
[[nodiscard]] std::unique_ptr<CredentialProvider> fixed_credentials(Credentials credentials);

// A variable of the environment; an empty one counts as not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
[[nodiscard]] std::optional<std::string> process_variable(const char* name);

struct CredentialOptions {
    // Looks into this profile only; empty: AWS_PROFILE, else `default`, in its place in the order.
    std::string profile{};
    std::string region{};  // Of the service for web identities, where AWS_REGION does not say.
    Variables variables = process_variable;
    const Clock* clock = nullptr;
    Logger* logger = nullptr;

    // One request to a local service, one to the service for web identities or one process.
    std::chrono::milliseconds metadata_timeout{1000};
    std::chrono::milliseconds service_timeout{5000};
    // For a request that was answered with "try later".
    int attempts_max = 3;
    std::chrono::milliseconds attempt_pause{100};
};

// get() renews keys with less than this left; until they have expired, a failed renewal is only a
// warning.
inline constexpr std::chrono::minutes credential_margin{5};

class CredentialChain final : public CredentialProvider {
public:
    explicit CredentialChain(CredentialOptions options = {});

    [[nodiscard]] Credentials get(Deadline deadline, const std::stop_token& stop) override;
    void forget() noexcept override;
    [[nodiscard]] std::string source() const override;

private:
    [[nodiscard]] Credentials resolve(Deadline deadline, const std::stop_token& stop);

    const CredentialOptions options_;
    const Clock& clock_;
    // Held during a look-up: concurrent first look-ups of an instance's credentials fail in
    // practice.
    mutable std::mutex resolving_;
    mutable std::mutex mutex_;
    std::optional<Credentials> known_;
    std::string source_;
};

}  // namespace holdfast::dsql
