#include "lock/id_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

[[noreturn]] void refuse(std::string_view verb, const std::string& path) {
    throw Error(
        Code::condition_failed,
        Outcome::not_applied,
        fmt::format(
            "cannot {} '{}': {}; choose another --id-file", verb, path, std::strerror(errno)));
}

// A device, a pipe or a link is never replaced or removed: root could do that even to /dev/null.
bool is_something_else(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

std::string draft_for(const std::string& path) {
    if (is_something_else(path)) {
        throw Error(
            Code::condition_failed,
            Outcome::not_applied,
            fmt::format("'{}' exists and is not a plain file; choose another --id-file", path));
    }
    return path + ".XXXXXX";
}

lock::LockId read_line(std::istream& in) {
    std::string line;
    std::getline(in, line);
    return lock::LockId::parse(line);
}

}  // namespace

LockIdFile::LockIdFile(std::string path)
    : path_(std::move(path)),
      draft_(draft_for(path_)),
      fd_(::mkostemp(draft_.data(), O_CLOEXEC)) {  // For its owner alone.
    if (fd_ < 0) {
        refuse("write", path_);
    }
}

LockIdFile::~LockIdFile() {
    ::close(fd_);
    if (!draft_.empty()) {
        ::unlink(draft_.c_str());
    }
}

void LockIdFile::keep(const lock::LockId& lock_id) {
    const std::string line = lock_id.reveal() + "\n";
    if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
        ::rename(draft_.c_str(), path_.c_str()) != 0) {
        refuse("write", path_);
    }
    draft_.clear();
}

lock::LockId read_lock_id(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        refuse("read", path);
    }
    return read_line(file);
}

void forget_lock_id(const std::string& path) {
    if (!is_something_else(path)) {
        ::unlink(path.c_str());
    }
}

lock::LockId read_lock_id_from_stdin() {
    return read_line(std::cin);
}

}  // namespace holdfast::app
