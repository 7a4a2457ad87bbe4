// What all suites of `holdfast bench` have in common: where, how long, and how it is shown.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "bench/bench.hpp"

#include <holdfast/bench/driver.hpp>
#include <holdfast/bench/report.hpp>
#include <holdfast/bench/suite.hpp>

namespace holdfast::app {

inline constexpr int clients_max = 1024;

// Invalid_argument if the time of a round is not one that can be measured.
[[nodiscard]] bench::DriverOptions driver_options(const Context& context,
                                                  const BenchRequest& request);

// The folder of the file that --db names, to measure its disk; else the folder of temporary files,
// unless that is memory.
[[nodiscard]] std::filesystem::path scratch_parent(const Context& context,
                                                   const BenchRequest& request);

// Measures with a live line, prints each report, and adds it to the page. Returns the exit code of
// what failed first.
class Show {
public:
    Show(const Context& context, const BenchRequest& request);
    ~Show();
    Show(const Show&) = delete;
    Show& operator=(const Show&) = delete;

    void run(const std::function<bench::Report(bench::Progress&)>& measure);
    [[nodiscard]] int exit_code() const;

private:
    class Watch;
    struct Terminal;

    const Context& context_;
    const BenchRequest& request_;
    std::unique_ptr<Terminal> terminal_;
};

}  // namespace holdfast::app
