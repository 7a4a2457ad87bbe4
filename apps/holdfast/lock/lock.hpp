// holdfast lock ...: taking locks, looking at them, running programs under them.
//
// The id of a lock is a secret. It is printed only with --show-id, and otherwise passes through
// files that their owner alone can read.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

// What the command line gave; each verb reads what is its own.
struct LockRequest {
    std::string key;

    std::string ttl = "30s";
    std::string timeout;  // Empty: the library's.
    std::string meta;
    bool wait = false;
    bool no_wait = false;

    bool show_id = false;
    bool id_stdin = false;
    std::string id_file;

    std::string prefix;
    bool dead = false;
    std::size_t limit = 100;
    std::string after;

    std::string fence;
    std::size_t rows = 10'000;
    std::string every;
    bool repair = false;
    std::int64_t gap = 0;

    std::string grace = "5s";
    std::vector<std::string> command;  // After "--".
};

using LockVerb = int (*)(const Context&, const LockRequest&);

// Runs the verb. Its failures end with the codes of lock_exit_codes_help.
int run_lock_verb(LockVerb verb, const Context& context, const LockRequest& request);

int lock_acquire(const Context& context, const LockRequest& request);
int lock_release(const Context& context, const LockRequest& request);
int lock_extend(const Context& context, const LockRequest& request);

int lock_status(const Context& context, const LockRequest& request);
int lock_list(const Context& context, const LockRequest& request);

int lock_force_release(const Context& context, const LockRequest& request);
int lock_purge(const Context& context, const LockRequest& request);
int lock_doctor(const Context& context, const LockRequest& request);

// Runs a program under the lock, and ends it before the lease does if the lock is lost.
int lock_run(const Context& context, const LockRequest& request);
// Stands for election until it is told to stop, and runs a program, if there is one, as the leader.
int lock_elect(const Context& context, const LockRequest& request);

}  // namespace holdfast::app
