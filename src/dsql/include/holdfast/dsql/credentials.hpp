// Where AWS keys come from.
//
// The same places as in the AWS SDKs, in their order: the environment, the shared files with their
// profiles, a process, a web identity, the container's endpoint, the instance's metadata. The first
// place that is set up must deliver; what it gives is kept, and renewed before it expires. No
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

    // May block until `deadline`. Unauthorized if there are none, unavailable if they cannot be had
    // now, invalid_argument if somebody has to correct a file or a variable.
    [[nodiscard]] virtual Credentials get(Deadline deadline, const std::stop_token& stop) = 0;

    // A server has refused them: they are looked up anew when next asked for.
    virtual void forget() noexcept = 0;

    // Where they came from, for people: "environment". Empty before the first get().
    [[nodiscard]] virtual std::string source() const = 0;
};

// Keys that somebody has at hand.
[[nodiscard]] std::unique_ptr<CredentialProvider> fixed_credentials(Credentials credentials);

// A variable of the environment; what is empty is not there.
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
    // Of a request that was answered with "try later".
    int attempts_max = 3;
    std::chrono::milliseconds attempt_pause{100};
};

// Keys with less than this left are renewed when asked for; until they are dead, a failure to do so
// is only a warning.
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
    // Held while looking: concurrent first look-ups of an instance's credentials fail in practice.
    mutable std::mutex resolving_;
    mutable std::mutex mutex_;
    std::optional<Credentials> known_;
    std::string source_;
};

}  // namespace holdfast::dsql
