#include "engine/update_waits.hpp"

#include <utility>
#include <vector>

namespace holdfast::server::engine {

namespace {

bool ends(const UpdateNews& news) {
    return news.outcome || news.refusal;
}

}  // namespace

class UpdateWaits::Wait {
public:
    Wait(std::shared_ptr<Waiting> place,
         std::string run_id,
         std::string update_id,
         history::UpdateStage stage,
         Told told)
        : place_(std::move(place)),
          run_id_(std::move(run_id)),
          update_id_(std::move(update_id)),
          stage_(stage),
          told_(std::move(told)) {
        const std::lock_guard lock(place_->mutex);
        place_->runs[run_id_].insert(this);
    }

    ~Wait() {
        Told told;  // Destroyed without the lock: it may own a reply.
        const std::lock_guard lock(place_->mutex);
        told = std::move(told_);
        const auto found = place_->runs.find(run_id_);
        if (found != place_->runs.end()) {
            found->second.erase(this);
            if (found->second.empty()) {
                place_->runs.erase(found);
            }
        }
    }

    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

private:
    friend class UpdateWaits;
    const std::shared_ptr<Waiting> place_;
    const std::string run_id_;
    const std::string update_id_;
    const history::UpdateStage stage_;
    Told told_;  // Empty once it was told.
};

Watch UpdateWaits::add(const std::string& run_id,
                       const std::string& update_id,
                       history::UpdateStage stage,
                       Told told) {
    return std::make_shared<Wait>(waiting_, run_id, update_id, stage, std::move(told));
}

std::set<std::string> UpdateWaits::awaited(const std::string& run_id) const {
    std::set<std::string> updates;
    const std::lock_guard lock(waiting_->mutex);
    const auto found = waiting_->runs.find(run_id);
    if (found != waiting_->runs.end()) {
        for (const Wait* wait : found->second) {
            updates.insert(wait->update_id_);
        }
    }
    return updates;
}

void UpdateWaits::tell(const std::string& run_id,
                       const std::string& update_id,
                       const UpdateNews& news) {
    std::vector<Told> told;
    {
        const std::lock_guard lock(waiting_->mutex);
        const auto found = waiting_->runs.find(run_id);
        if (found == waiting_->runs.end()) {
            return;
        }
        std::erase_if(found->second, [&](Wait* wait) {
            if (wait->update_id_ != update_id || (!ends(news) && news.stage < wait->stage_)) {
                return false;
            }
            told.push_back(std::exchange(wait->told_, nullptr));
            return true;
        });
        if (found->second.empty()) {
            waiting_->runs.erase(found);
        }
    }
    for (const Told& call : told) {
        call(news);
    }
}

void UpdateWaits::lose(const std::string& run_id) {
    for (const std::string& update : awaited(run_id)) {
        tell(run_id, update, {.refusal = history::update_lost()});
    }
}

}  // namespace holdfast::server::engine
