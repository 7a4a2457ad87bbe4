// Deletes what a deleted namespace holds, in the background.
//
// The namespace was renamed and marked in one commit before; that mark is what a next process goes
// on from. Runs are listed by visibility, which is written together with them, and each is deleted
// in a turn of its own: one that is open is terminated first, and its parent and children are told.
// When none is left, the record of the namespace goes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast {
class Clock;
class Logger;
}  // namespace holdfast

namespace holdfast::sql {
class Database;
}

namespace holdfast::server {
class Alarms;
class Executor;
}  // namespace holdfast::server

namespace holdfast::server::engine {
class Turns;
}

namespace holdfast::server::matching {
class Matching;
}

namespace holdfast::server::namespaces {

class Registry;

struct DeletionParts {
    sql::Database& db;
    Registry& namespaces;
    engine::Turns& turns;
    matching::Matching& matching;
    Executor& executor;
    Alarms& alarms;
    const Clock& clock;
    Logger& log;
};

struct DeletionLimits {
    std::int64_t runs_at_once = 100;
    std::chrono::nanoseconds pause = std::chrono::milliseconds{250};  // After so many runs.
    // After a pass that deleted nothing, and before the look that must find nothing again: a start
    // that was under way when the namespace was renamed has committed by then.
    std::chrono::nanoseconds long_pause = std::chrono::seconds{5};
};

// Safe to share between threads. Nothing here blocks.
class Deletion {
public:
    // Requires: what `parts` names outlives this object. The executor may still hold jobs of this
    // object when it is destroyed; they end without doing anything.
    explicit Deletion(const DeletionParts& parts, const DeletionLimits& limits = {});
    ~Deletion();
    Deletion(const Deletion&) = delete;
    Deletion& operator=(const Deletion&) = delete;

    // Goes on with all namespaces that are marked. After the engine was started.
    void start();
    // Begins with one that is marked; nothing happens if it is under way.
    void begin(const std::string& namespace_id);
    void stop() noexcept;

    struct State;  // deletion.cpp

private:
    std::shared_ptr<State> state_;
};

}  // namespace holdfast::server::namespaces
