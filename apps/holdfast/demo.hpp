// holdfast demo: writers, a kill -9 in the middle of their work, and a count of what is left.
#pragma once

#include <cstdint>
#include <string>

#include "command.hpp"

namespace holdfast::app {

struct DemoRequest {
    int kills = 5;
    int writers = 8;
    bool keep = false;  // Leave the file behind.
};

// Returns exit_refused if an acknowledged transaction was lost, done twice or done by half.
int demo(const Context& context, const DemoRequest& request);

struct DemoWriterRequest {
    std::string run;  // A UUID.
    std::int64_t kill_number = 0;
    int writers = 0;
};

// The process that is killed: writes until then, and prints each transfer once it is committed, as
// "writer transfer physical_commits".
int demo_writer(const Context& context, const DemoWriterRequest& request);

}  // namespace holdfast::app
