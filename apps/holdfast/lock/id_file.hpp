// Where the secret of a lock waits between two commands.
#pragma once

#include <string>

#include <holdfast/lock/lock_id.hpp>

namespace holdfast::app {

// A file for an id that is still to come. It is made before the lock is taken, so that a place
// where one may not write costs nobody a lock; its owner alone can read it.
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
