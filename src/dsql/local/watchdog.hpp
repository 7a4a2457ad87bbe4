// The process between a program and its private server.
//
// A program can die in any way and at any moment, and must not leave a server behind. So the server
// is the child of a small process that only watches: when its owner is gone, or asks for it, it
// kills the server with all its processes and removes the folder. It also adopts what a
// killed server leaves behind, so that a crash is complete before the server is started again.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include <holdfast/base/unique_fd.hpp>

namespace holdfast::dsql {

// When a watchdog's work is over, besides the death of its owner.
enum class Lifetime {
    handle,  // With the Watchdog object; the server may stop and start.
    server,  // With the server; the object may be destroyed earlier.
};

// Where the newest PostgreSQL of this machine has its programs. Throws if there is none.
[[nodiscard]] std::filesystem::path newest_postgres();

struct ServerPlan {
    std::filesystem::path programs = newest_postgres();
    std::filesystem::path folder;  // Removed at the end. Holds the socket and the log.
    std::filesystem::path data;    // Created if it does not exist.
    bool durable = false;          // A new cluster reaches the disk before it is used.
    std::map<std::string, std::string> settings{};
    pid_t owner;
    Lifetime lifetime = Lifetime::handle;
};

class Watchdog {
public:
    // Forks the watchdog. The server is not running yet.
    explicit Watchdog(const ServerPlan& plan);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    // Creates the cluster if there is none, and starts the server, which may not be ready yet.
    // False if it has died already.
    [[nodiscard]] bool start();
    void stop();
    void crash();
    [[nodiscard]] bool server_lives();

private:
    // Whether the server runs once the command has been carried out.
    bool ask(char command);

    UniqueFd control_;
    pid_t pid_ = -1;
    Lifetime lifetime_;
};

}  // namespace holdfast::dsql
