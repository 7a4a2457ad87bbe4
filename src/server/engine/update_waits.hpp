// Clients that wait for news of an update.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "engine/turn.hpp"

namespace holdfast::server::engine {

// Safe to share between threads.
class UpdateWaits {
public:
    using Told = std::function<void(UpdateNews)>;

    // A client that waits until the update has reached the stage, or has ended. It is told once at
    // most, and not after the watch is destroyed, unless that is under way. The watch may outlive
    // this object.
    [[nodiscard]] Watch add(const std::string& run_id,
                            const std::string& update_id,
                            history::UpdateStage stage,
                            Told told);

    // Updates of the run that some client waits for.
    [[nodiscard]] std::set<std::string> awaited(const std::string& run_id) const;

    void tell(const std::string& run_id, const std::string& update_id, const UpdateNews& news);
    // What was in memory of the run is lost: all that wait for it are told so.
    void lose(const std::string& run_id);

private:
    class Wait;
    struct Waiting {
        std::mutex mutex;
        std::map<std::string, std::set<Wait*>> runs;  // By run id.
    };
    const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

}  // namespace holdfast::server::engine
