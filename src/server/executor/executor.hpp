// Where transitions run.
//
// Jobs of one key run one after another, in the order in which they were posted; jobs of different
// keys run side by side, as far as there are threads. A job may block in the store. A simulation
// runs all jobs on one thread, in an order of its own.
#pragma once

#include <string>

#include "executor/job.hpp"

namespace holdfast::server {

class Executor {
public:
    Executor() = default;
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;
    virtual ~Executor() = default;

    // Never blocks. Requires: `job` does not throw.
    virtual void post(const std::string& key, Job job) = 0;
};

}  // namespace holdfast::server
