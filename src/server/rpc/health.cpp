#include "rpc/health.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rpc/dispatch.hpp"
#include <fmt/format.h>
#include <grpc/health/v1/health.pb.h>

namespace holdfast::server::rpc {

namespace {

// The last one is of tools for a cluster's inside; they ask before they find that it is not there.
constexpr std::array<std::string_view, 4> health_names{
    "",
    "temporal.api.workflowservice.v1.WorkflowService",
    "temporal.api.operatorservice.v1.OperatorService",
    "temporal.api.adminservice.v1.AdminService",
};

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

HealthCheckResponse::ServingStatus on_wire(HealthStatus status) {
    return static_cast<HealthCheckResponse::ServingStatus>(status);
}

}  // namespace

// Says the status of a service, and says it again when it has changed. A status that changed back
// before it could be said is left out.
class HealthWatch final : public Conversation {
public:
    HealthWatch(Health& health, std::uint64_t id) : health_(health), id_(id) {}
    HealthWatch(const HealthWatch&) = delete;
    HealthWatch& operator=(const HealthWatch&) = delete;
    ~HealthWatch() override {
        const std::lock_guard lock(health_.mutex_);
        health_.watches_.erase(id_);
    }

    bool heard(std::string_view message) override {
        HealthCheckRequest request;
        if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
            return false;
        }
        service_ = request.service();
        return true;
    }

    std::optional<std::string> next() override {
        if (!service_) {
            return std::nullopt;
        }
        const HealthStatus status = health_.status(*service_);
        if (std::exchange(told_, status) == status) {
            return std::nullopt;
        }
        HealthCheckResponse response;
        response.set_status(on_wire(status));
        return response.SerializeAsString();
    }

    bool listens() const override { return !service_; }

private:
    Health& health_;
    const std::uint64_t id_;
    std::optional<std::string> service_;
    std::optional<HealthStatus> told_;
};

void Health::set_serving(bool serving) {
    std::vector<Changed> told;
    {
        const std::lock_guard lock(mutex_);
        if (serving_ == serving) {
            return;
        }
        serving_ = serving;
        told.reserve(watches_.size());
        for (const auto& [id, changed] : watches_) {
            told.push_back(changed);
        }
    }
    for (const Changed& changed : told) {
        changed();
    }
}

HealthStatus Health::status(std::string_view service) const {
    if (std::ranges::find(health_names, service) == health_names.end()) {
        return HealthStatus::service_unknown;
    }
    const std::lock_guard lock(mutex_);
    return serving_ ? HealthStatus::serving : HealthStatus::not_serving;
}

std::unique_ptr<Conversation> Health::watch(Changed changed) {
    std::uint64_t id = 0;
    {
        const std::lock_guard lock(mutex_);
        id = ++last_watch_;
        watches_.emplace(id, std::move(changed));
    }
    return std::make_unique<HealthWatch>(*this, id);
}

std::size_t Health::watching() const {
    const std::lock_guard lock(mutex_);
    return watches_.size();
}

void Health::add_to(Dispatch& dispatch) {
    dispatch.add<HealthCheckRequest, HealthCheckResponse>(
        "/grpc.health.v1.Health/Check",
        [this](const HealthCheckRequest& request, Reply<HealthCheckResponse> reply) {
            const HealthStatus found = status(request.service());
            if (found == HealthStatus::service_unknown) {
                std::move(reply).refuse(
                    {StatusCode::not_found,
                     fmt::format("\"{}\" is not a service of this server", request.service())});
                return;
            }
            reply.message().set_status(on_wire(found));
            std::move(reply).send();
        },
        Gate::always);
}

}  // namespace holdfast::server::rpc
