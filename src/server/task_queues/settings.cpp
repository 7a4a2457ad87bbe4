#include "task_queues/settings.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <server/task_queues/settings.pb.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::server::task_queues {

namespace {

using matching::QueueKey;
using matching::QueueType;

constexpr int settings_reader = 1;
constexpr std::int64_t queues_of_a_page = 100;
constexpr int changes_max = 10;  // Of one call that always meets another writer.
constexpr std::chrono::seconds patience_for_settings{10};

store::Call in_time() {
    return {.deadline = Deadline::after(patience_for_settings)};
}

store::NamespaceId namespace_of_queue(const std::string& id) {
    const std::optional<Uuid> parsed = Uuid::parse(id);
    if (!parsed) {
        throw InvalidArgument("the id of a namespace is a UUID");
    }
    return {*parsed};
}

stored::Settings decoded(const std::string& queue, const store::Blob& blob) {
    stored::Settings made;
    if (!made.ParseFromArray(blob.data.data(), static_cast<int>(blob.data.size()))) {
        throw store::DamagedData(
            fmt::format("the settings of task queue \"{}\" cannot be decoded", queue));
    }
    if (made.min_reader() > settings_reader) {
        throw Error(Code::unsupported,
                    Outcome::not_applied,
                    fmt::format("the settings of task queue \"{}\" were written by a newer "
                                "version; upgrade this server",
                                queue));
    }
    return made;
}

store::Blob encoded(stored::Settings settings) {
    settings.set_min_reader(settings_reader);
    const std::string bytes = settings.SerializeAsString();
    const auto view = std::as_bytes(std::span(bytes));
    return {.data = {view.begin(), view.end()}, .encoding = "Proto3"};
}

}  // namespace

void Settings::open(const std::string& namespace_id) {
    const std::lock_guard writing(writing_);
    std::string after;
    for (;;) {
        const auto page =
            store_.list(namespace_of_queue(namespace_id), queues_of_a_page, after, in_time());
        for (const auto& [name, data] : page) {
            const stored::Settings settings = decoded(name, data.blob);
            for (const auto& [type, config] : settings.by_type()) {
                put({.namespace_id = namespace_id,
                     .name = name,
                     .type = static_cast<QueueType>(type)},
                    config);
            }
        }
        if (std::ssize(page) < queues_of_a_page) {
            return;
        }
        after = page.back().first;
    }
}

Config Settings::change(const QueueKey& queue, const std::function<bool(Config&)>& change) {
    const std::lock_guard writing(writing_);
    const store::NamespaceId ns = namespace_of_queue(queue.namespace_id);
    for (int tries = 1;; ++tries) {
        const std::optional<store::UserData> found = store_.find(ns, queue.name, in_time());
        stored::Settings settings = found ? decoded(queue.name, found->blob) : stored::Settings();
        Config& config = (*settings.mutable_by_type())[static_cast<int>(queue.type)];
        if (!change(config)) {
            return config;
        }
        try {
            store_.update(
                ns,
                {{queue.name,
                  {.data = {.blob = encoded(settings), .version = found ? found->version : 0}}}},
                in_time());
        } catch (const store::UserDataConflict&) {  // Another process was faster.
            if (tries == changes_max) {
                throw;
            }
            continue;
        }
        put(queue, config);
        return config;
    }
}

Config Settings::find(const QueueKey& queue) const {
    const std::shared_lock lock(mutex_);
    const auto found = held_.find(queue);
    return found == held_.end() ? Config() : found->second;
}

void Settings::put(const QueueKey& queue, const Config& config) {
    {
        const std::lock_guard lock(mutex_);
        held_[queue] = config;
    }
    std::map<std::string, double> weights;
    for (const auto& [key, weight] : config.fairness_weight_overrides()) {
        weights.emplace(key, weight);
    }
    matching_.set_weights(queue, std::move(weights));
    matching_.limit_rate(
        queue,
        config.queue_rate_limit().has_rate_limit()
            ? std::optional<double>(config.queue_rate_limit().rate_limit().requests_per_second())
            : std::nullopt);
}

}  // namespace holdfast::server::task_queues
