#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/bench/report.hpp>

namespace holdfast::bench {
namespace {

// The value after "key :" in a file of /proc; empty if there is none.
std::string proc_value(const char* file, std::string_view key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with(key)) {
            continue;
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            continue;
        }
        const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == std::string::npos ? std::string{} : line.substr(begin);
    }
    return {};
}

// "24681500 kB"
std::int64_t proc_bytes(const char* file, std::string_view key) {
    const std::string value = proc_value(file, key);
    return value.empty() ? 0 : std::stoll(value) * 1024;
}

std::string filesystem_of(const std::filesystem::path& directory) {
    struct statfs info{};
    if (::statfs(directory.c_str(), &info) != 0) {
        return "unknown";
    }
    struct Known {
        unsigned long magic;
        const char* name;
    };
    static constexpr std::array<Known, 7> known{{{0xEF53, "ext4"},
                                                 {0x01021994, "tmpfs"},
                                                 {0x858458f6, "ramfs"},
                                                 {0x9123683E, "btrfs"},
                                                 {0x58465342, "xfs"},
                                                 {0x794c7630, "overlay"},
                                                 {0x2fc12fc1, "zfs"}}};
    for (const Known& entry : known) {
        if (static_cast<unsigned long>(info.f_type) == entry.magic) {
            return entry.name;
        }
    }
    return fmt::format("{:#x}", static_cast<unsigned long>(info.f_type));
}

// Appends 4 KiB and waits for the disk, again and again, as a write-ahead log does.
double flush_us(const std::filesystem::path& directory) {
    using Clock = std::chrono::steady_clock;
    static constexpr auto time_max = std::chrono::milliseconds{300};
    static constexpr std::size_t flushes_max = 400;

    std::string path = (directory / "flush-XXXXXX").string();
    const int file = ::mkstemp(path.data());
    if (file < 0) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot write in {} ({}); choose another folder with --dir",
                                directory.string(),
                                std::generic_category().message(errno)));
    }
    ::unlink(path.c_str());
    const std::array<char, 4096> block{};
    std::vector<double> times;
    const auto end = Clock::now() + time_max;
    while (times.size() < flushes_max && Clock::now() < end) {
        const auto begin = Clock::now();
        const bool written =
            ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size());
        if (!written || ::fdatasync(file) != 0) {
            break;
        }
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    ::close(file);
    return spread_of(std::move(times)).median;
}

double load_average() {
    double minute = 0;
    return ::getloadavg(&minute, 1) == 1 ? minute : 0;
}

}  // namespace

Machine describe_machine(const std::filesystem::path& directory) {
    utsname kernel{};
    ::uname(&kernel);
    return {.cores = static_cast<int>(std::thread::hardware_concurrency()),
            .cpu = proc_value("/proc/cpuinfo", "model name"),
            .kernel = fmt::format("{} {} {}", kernel.sysname, kernel.release, kernel.machine),
            .memory_bytes = proc_bytes("/proc/meminfo", "MemTotal"),
            .flush_us = flush_us(directory),
            .load = load_average(),
            .filesystem = filesystem_of(directory)};
}

std::int64_t peak_memory_bytes() {
    return proc_bytes("/proc/self/status", "VmHWM");
}

std::int64_t resident_memory_bytes() {
    return proc_bytes("/proc/self/status", "VmRSS");
}

}  // namespace holdfast::bench
