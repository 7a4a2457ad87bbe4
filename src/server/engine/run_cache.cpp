#include "engine/run_cache.hpp"

#include <algorithm>

namespace holdfast::server::engine {

namespace {

constexpr std::size_t tail_bytes_max = std::size_t{256} << 10;
constexpr std::size_t run_bytes = 8192;  // What a run takes beside what is counted, as measured.

// What of it cannot be read again. Requires: no turn of the workflow is under way.
bool must_stay(const CachedWorkflow& workflow) {
    return std::ranges::any_of(workflow.runs, [](const auto& run) {
        const history::state::Run& known = run.second.run;
        return known.workflow_task().speculative() || !known.pending_updates().empty() ||
               run.second.queries.any();
    });
}

}  // namespace

std::shared_ptr<CachedWorkflow> RunCache::get(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto [found, made] = entries_.try_emplace(key);
    Entry& entry = found->second;
    if (made) {
        entry.workflow = std::make_shared<CachedWorkflow>();
        entry.place = order_.insert(order_.end(), key);
    } else {
        order_.splice(order_.end(), order_, entry.place);
    }
    return entry.workflow;
}

void RunCache::put_back(const Key& key, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
        return;
    }
    bytes_ = bytes_ - found->second.bytes + bytes;
    found->second.bytes = bytes;
    evict_locked();
}

void RunCache::forget(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
        bytes_ -= found->second.bytes;
        order_.erase(found->second.place);
        entries_.erase(found);
    }
}

std::size_t RunCache::bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
}

std::size_t RunCache::workflows() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
}

void RunCache::evict_locked() {
    auto place = order_.begin();
    while (bytes_ > bytes_max_ && place != order_.end()) {
        const auto found = entries_.find(*place);
        ++place;
        if (found->second.workflow.use_count() == 1 && !must_stay(*found->second.workflow)) {
            bytes_ -= found->second.bytes;
            order_.erase(found->second.place);
            entries_.erase(found);
        }
    }
}

std::size_t bytes_of(const CachedWorkflow& workflow) {
    std::size_t bytes = 512;  // Also an id without runs.
    for (const auto& [id, run] : workflow.runs) {
        bytes += run_bytes + run.tail_bytes + 2 * run.run.ByteSizeLong();
    }
    return bytes;
}

void extend_tail(CachedRun& run, std::vector<temporal::api::history::v1::History> batches) {
    for (auto& batch : batches) {
        run.tail_bytes += batch.ByteSizeLong();
        run.tail.push_back(std::move(batch));
    }
    std::size_t dropped = 0;
    while (run.tail_bytes > tail_bytes_max && dropped < run.tail.size()) {
        run.tail_bytes -= run.tail[dropped].ByteSizeLong();
        ++dropped;
    }
    run.tail.erase(run.tail.begin(), run.tail.begin() + static_cast<std::ptrdiff_t>(dropped));
}

}  // namespace holdfast::server::engine
