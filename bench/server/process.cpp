#include "process.hpp"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::server_bench {
namespace {

std::string read_of(std::int64_t pid, const char* file) {
    std::ifstream in(fmt::format("/proc/{}/{}", pid, file));
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.empty()) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("there is no process {} on this machine; correct --pid", pid));
    }
    return text;
}

}  // namespace

double cpu_seconds_of(std::int64_t pid) {
    const std::string text = read_of(pid, "stat");
    // The name in parentheses may hold anything; after it, utime and stime are the 12th and 13th.
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    constexpr int before_times = 11;
    std::string skipped;
    for (int i = 0; i < before_times; ++i) {
        fields >> skipped;
    }
    double user = 0;
    double system = 0;
    fields >> user >> system;
    return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double resident_bytes_of(std::int64_t pid) {
    std::istringstream fields(read_of(pid, "statm"));
    double pages = 0;
    double resident = 0;
    fields >> pages >> resident;
    return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace holdfast::server_bench
