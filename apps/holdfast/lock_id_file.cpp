#include "lock_id_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>

#include <fcntl.h>
#include <fmt/core.h>
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

lock::LockId read_line(std::istream& in) {
    std::string line;
    std::getline(in, line);
    return lock::LockId::parse(line);
}

}  // namespace

LockIdFile::LockIdFile(std::string path)
    : path_(std::move(path)),
      draft_(path_ + ".XXXXXX"),
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

lock::LockId read_lock_id_from_stdin() {
    return read_line(std::cin);
}

}  // namespace holdfast::app
