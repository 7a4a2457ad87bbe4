// Our server as a process of its own, which says what it has counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <holdfast/base/subprocess.hpp>

namespace holdfast::server_bench {

struct ChildCounts {
    double run_commits = 0;    // Transactions that wrote a run.
    double other_commits = 0;  // Moved wake-ups and deleted rows.
    double commits = 0;        // Of the database: several transactions may share one.
    double statements = 0;
};

// Killed by the destructor; its database is to be thrown away.
class MeasuredChild {
public:
    // `program` is one whose main calls serve_measured() for the words that this passes.
    MeasuredChild(const std::filesystem::path& program, const std::string& url);

    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    [[nodiscard]] std::int64_t pid() const noexcept { return pid_; }
    [[nodiscard]] ChildCounts counts();

private:
    std::string next_line();

    Subprocess process_;
    std::string unread_;
    std::string address_;
    std::int64_t pid_ = 0;
};

}  // namespace holdfast::server_bench
