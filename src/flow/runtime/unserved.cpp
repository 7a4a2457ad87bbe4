#include "runtime/unserved.hpp"

#include <algorithm>
#include <utility>

#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

constexpr std::chrono::minutes between_warnings{1};
constexpr std::size_t names_max = 20;

}  // namespace

Unserved::Unserved(const RuntimeOptions& options)
    : first_(options.unregistered_first),
      longest_(options.unregistered_max),
      logger_(options.logger != nullptr ? *options.logger : null_logger()) {}

milliseconds Unserved::pause(int tries) const {
    constexpr int doublings_max = 6;
    return std::min(first_ * (1 << std::clamp(tries, 0, doublings_max)), longest_);
}

void Unserved::missing(std::string what, Moment now) {
    std::set<std::string> names;
    {
        const std::lock_guard lock(mutex_);
        if (names_.size() < names_max) {
            names_.insert(std::move(what));
        }
        if (told_ && now - *told_ < between_warnings && now >= *told_) {
            return;
        }
        told_ = now;
        names = std::exchange(names_, {});
    }
    std::string all;
    for (const std::string& name : names) {
        all += (all.empty() ? "" : ", ") + name;
    }
    logger_.warn("work waits for a worker that has its code; this worker does not have it",
                 {{"work", all}});
}

}  // namespace holdfast::flow
