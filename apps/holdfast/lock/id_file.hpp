// The file that keeps the id of a lock between two commands.
#pragma once

#include <string>

#include <holdfast/lock/lock_id.hpp>

namespace holdfast::app {

// A file for the id of a lock. It is created before the lock is acquired, so that a path that
// cannot be written does not cost a lock; only its owner can read it.
class LockIdFile {
public:
    // Refused if nothing can be written there, or if what is there is no plain file. An older file
    // of that name stays until `keep`.
    explicit LockIdFile(std::string path);
    // Leaves nothing behind unless the id was kept.
    ~LockIdFile();
    LockIdFile(const LockIdFile&) = delete;
    LockIdFile& operator=(const LockIdFile&) = delete;

    void keep(const lock::LockId& lock_id);

private:
    std::string path_;
    std::string draft_;
    int fd_;
};

// Refused if there is no such file; invalid_argument if it holds no id. Neither repeats its text.
[[nodiscard]] lock::LockId read_lock_id(const std::string& path);
// Removes the file; a pipe, a device or a link stays.
void forget_lock_id(const std::string& path);
// The first line of standard input.
[[nodiscard]] lock::LockId read_lock_id_from_stdin();

}  // namespace holdfast::app
