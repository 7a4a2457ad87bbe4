// Runs in memory, as they are committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/codec.hpp"
#include "engine/query/buffered_queries.hpp"
#include "history/times.hpp"
#include <temporal/api/history/v1/message.pb.h>

namespace holdfast::server::engine {

struct CachedRun {
    history::state::Run run;
    RunMeta meta;
    history::Time newest{};  // No event is later than this.

    // The newest batches of the history, without a gap up to its end; so that a worker that has the
    // rest gets them without a read.
    std::vector<temporal::api::history::v1::History> tail;
    std::size_t tail_bytes = 0;

    BufferedQueries queries;
};

// All of a workflow id that is known. Belongs to the turns of the workflow.
struct CachedWorkflow {
    std::optional<store::CurrentRun> current;
    bool current_known = false;
    std::map<std::string, CachedRun> runs;  // By run id.
};

// Safe to share between threads. Holds at most so many bytes of what is not in use, by a guess;
// what cannot be read again is in use.
class RunCache {
public:
    using Key = std::pair<std::string, std::string>;  // Namespace id and workflow id.

    explicit RunCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

    // Empty, if it is not known. It stays while the pointer is held.
    [[nodiscard]] std::shared_ptr<CachedWorkflow> get(const Key& key);
    // At the end of a turn: how large it is now.
    void put_back(const Key& key, std::size_t bytes);
    void forget(const Key& key);

    [[nodiscard]] std::size_t bytes() const;
    [[nodiscard]] std::size_t workflows() const;

private:
    struct Entry {
        std::shared_ptr<CachedWorkflow> workflow;
        std::size_t bytes = 0;
        std::list<Key>::iterator place;  // The least recently used is the first.
    };

    void evict_locked();

    const std::size_t bytes_max_;
    mutable std::mutex mutex_;
    std::map<Key, Entry> entries_;
    std::list<Key> order_;
    std::size_t bytes_ = 0;
};

// A guess, cheap to make.
[[nodiscard]] std::size_t bytes_of(const CachedWorkflow& workflow);

// Adds batches to the tail, and drops the oldest of it if it gets large.
void extend_tail(CachedRun& run, std::vector<temporal::api::history::v1::History> batches);

}  // namespace holdfast::server::engine
