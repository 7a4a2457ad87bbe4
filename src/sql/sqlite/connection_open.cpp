// Opening a database file, with one clear message for each kind of failure.
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "sqlite/connection.hpp"
#include "sqlite/gathered_log.hpp"
#include "sqlite/sqlite_errors.hpp"
#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::sqlite {
namespace {

// How long opening waits for another process that has the file locked.
constexpr std::chrono::seconds open_wait_max{5};

// The smallest page. SQLite takes a file of one byte for an empty one.
constexpr off_t database_bytes_min = 512;

// Virtual machine steps between two looks at the deadline; some ten microseconds.
constexpr int progress_steps = 1000;

constexpr const char* writer_settings =
    "PRAGMA foreign_keys=ON;"
    "PRAGMA cache_size=-4096;"   // KiB
    "PRAGMA temp_store=MEMORY;"  // Savepoints need no files.
    // Pages. The longer the log, the more often a page in it is overwritten before it has to be
    // moved, one by one and with a flush of its own; three blocks of the log's index hold as many.
    "PRAGMA wal_autocheckpoint=12000;"
    "PRAGMA journal_size_limit=67108864;";  // Bytes; what a long reader made grow is given back.

constexpr const char* reader_settings =
    "PRAGMA query_only=ON;"
    "PRAGMA cache_size=-2048;"
    "PRAGMA temp_store=MEMORY;";

const char* synchronous_pragma(Synchronous synchronous) {
    switch (synchronous) {
        case Synchronous::normal:
            return "PRAGMA synchronous=NORMAL";
        case Synchronous::off:
            return "PRAGMA synchronous=OFF";
        case Synchronous::full:
            break;
    }
    return "PRAGMA synchronous=FULL";
}

[[noreturn]] void refuse(Code code, std::string message) {
    throw Error(code, Outcome::not_applied, std::move(message));
}

[[noreturn]] void refuse_foreign(const std::string& path) {
    refuse(Code::invalid_argument,
           fmt::format("'{}' is not a SQLite database; name another file", path));
}

[[noreturn]] void refuse_unreachable(const std::string& path, int error) {
    refuse(error == EACCES ? Code::unauthorized : Code::unavailable,
           fmt::format("the database file '{}' cannot be reached: {}; check it and its folder",
                       path,
                       std::system_category().message(error)));
}

// There is no file: throws unless one may be created.
void check_missing(const Settings& settings) {
    const auto folder = std::filesystem::path(settings.path).parent_path();
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder, ignored)) {
        refuse(Code::not_found,
               fmt::format("there is no folder '{}' for the database file '{}'; create the folder "
                           "first",
                           folder.string(),
                           settings.path));
    }
    if (!settings.create) {
        refuse(Code::not_found,
               fmt::format("there is no database file '{}'; create it with ?create=1 in its URL or "
                           "by `holdfast schema apply`",
                           settings.path));
    }
    if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
        refuse_unreachable(settings.path, errno);
    }
}

void check_access(const Settings& settings) {
    const int wanted = settings.read_only ? R_OK : R_OK | W_OK;
    if (::faccessat(AT_FDCWD, settings.path.c_str(), wanted, AT_EACCESS) == 0) {
        return;
    }
    if (::faccessat(AT_FDCWD, settings.path.c_str(), R_OK, AT_EACCESS) != 0) {
        refuse_unreachable(settings.path, errno);
    }
    refuse(Code::unauthorized,
           fmt::format("the database file '{}' can only be read; allow writing to it, or add "
                       "?readonly=1 to its URL",
                       settings.path));
}

// True if the file exists. Never opens it: closing it again would drop the locks that another
// handle of this process has on it.
bool check_path(const Settings& settings) {
    struct stat status{};
    if (::stat(settings.path.c_str(), &status) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) {
            refuse_unreachable(settings.path, errno);
        }
        check_missing(settings);
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        refuse(Code::invalid_argument,
               fmt::format("'{}' is a folder; name a database file in it", settings.path));
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(Code::invalid_argument,
               fmt::format("'{}' is not a regular file; name a database file", settings.path));
    }
    if (status.st_size != 0 && status.st_size < database_bytes_min) {
        refuse_foreign(settings.path);
    }
    check_access(settings);
    return true;
}

// An empty file that only its owner can read: it will hold what workflows and locks hold. SQLite
// gives the log and its index the mode of the file. Without opening it, for the same reason as
// above. If another process is quicker, the file is that one's.
void create_private(const std::string& path) {
    constexpr mode_t owner_only = S_IFREG | S_IRUSR | S_IWUSR;
    std::filesystem::path file = path;
    std::error_code ignored;
    if (std::filesystem::is_symlink(file, ignored)) {  // To a file that is not there yet.
        file = file.parent_path() / std::filesystem::read_symlink(file, ignored);
    }
    if (::mknod(file.c_str(), owner_only, 0) != 0 && errno != EEXIST) {
        refuse_unreachable(path, errno);
    }
}

// Removes a file that was created in vain. A file that is not empty belongs to another process.
void remove_if_empty(const std::string& path) noexcept {
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0 && status.st_size == 0) {
        ::unlink(path.c_str());
    }
}

int open_flags(const Settings& settings) {
    // No mutex inside SQLite: a connection has one user at a time.
    const int always = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (settings.read_only) {
        return always | SQLITE_OPEN_READONLY;
    }
    // SQLite would create a file that others can read, and a reader a file that misleads.
    return always | SQLITE_OPEN_READWRITE | (settings.memory ? SQLITE_OPEN_CREATE : 0);
}

}  // namespace

Connection::Connection(const Settings& settings, Role role, Counters& counters)
    : counters_(counters), path_(settings.path), busy_timeout_(settings.busy_timeout) {
    const bool checked = role == Role::writer && !settings.memory;
    const bool existed = !checked || check_path(settings);
    if (!existed) {
        create_private(path_);
    }
    try {
        open(settings, role);
    } catch (...) {
        close();
        if (!existed) {
            remove_if_empty(path_);
        }
        throw;
    }
}

Connection::~Connection() {
    close();
}

void Connection::open(const Settings& settings, Role role) {
    const AttemptOptions opening{.deadline = Deadline::after(open_wait_max), .stop = {}};
    serve(&opening);
    const char* const vfs = role == Role::writer ? gathering_vfs() : nullptr;
    const int code = sqlite3_open_v2(path_.c_str(), &db_, open_flags(settings), vfs);
    if (code != SQLITE_OK) {
        throw_opening(code);
    }
    sqlite3_busy_handler(db_, &Connection::on_busy, this);
    sqlite3_progress_handler(db_, progress_steps, &Connection::on_progress, this);
    // "text" is a name and never a string, as everywhere else.
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    configure(settings, role);
    sqlite3_set_authorizer(db_, &Connection::on_authorize, this);
    prepare_controls();
    serve(nullptr);
}

void Connection::configure(const Settings& settings, Role role) {
    // Before anything is changed: a file that is not ours stays as it is.
    const int code =
        sqlite3_exec(db_, "SELECT 1 FROM sqlite_schema LIMIT 1", nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        throw_opening(code);
    }
    if (role == Role::reader || settings.read_only) {
        pragma(reader_settings);
        // Nothing is committed here, but a query of the setting shows what a commit waits for.
        pragma(synchronous_pragma(settings.synchronous));
        return;
    }
    if (!settings.memory) {
        switch_to_wal();
    }
    pragma(writer_settings);
    pragma(synchronous_pragma(settings.synchronous));
}

void Connection::throw_opening(int code) const {
    const int cause = sqlite3_system_errno(db_);
    if (code == SQLITE_NOTADB) {
        refuse_foreign(path_);
    }
    if (cause == EACCES || cause == EPERM || cause == EROFS) {
        refuse(Code::unauthorized,
               fmt::format("'{}' cannot be opened: {}; allow writing to its folder, where its log "
                           "lies",
                           path_,
                           std::system_category().message(cause)));
    }
    throw error(code, fmt::format("opening '{}'", path_));
}

void Connection::pragma(const char* text) {
    const int code = sqlite3_exec(db_, text, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) {
        throw_opening(code);
    }
}

void Connection::switch_to_wal() {
    std::string mode;
    const auto read_mode = [](void* out, int, char** values, char**) {
        *static_cast<std::string*>(out) = values[0] == nullptr ? "" : values[0];
        return 0;
    };
    const int code = sqlite3_exec(db_, "PRAGMA journal_mode=WAL", read_mode, &mode, nullptr);
    if (code != SQLITE_OK) {
        throw_opening(code);
    }
    if (mode != "wal") {
        refuse(Code::unsupported,
               fmt::format("the file system of '{}' has no shared memory for a write-ahead log; "
                           "put the file on a local disk",
                           path_));
    }
}

void Connection::prepare_controls() {
    constexpr std::array texts{"BEGIN",
                               "BEGIN IMMEDIATE",
                               "COMMIT",
                               "ROLLBACK",
                               "SAVEPOINT body",
                               "RELEASE body",
                               "ROLLBACK TO body"};
    static_assert(texts.size() == std::tuple_size_v<decltype(controls_)>);
    controls_allowed_ = true;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const int code = sqlite3_prepare_v3(
            db_, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &controls_[i], nullptr);
        if (code != SQLITE_OK) {
            throw error(code, texts[i]);
        }
    }
    controls_allowed_ = false;
}

void Connection::close() noexcept {
    for (sqlite3_stmt* handle : controls_) {
        sqlite3_finalize(handle);
    }
    for (const auto& [statement, prepared] : prepared_) {
        sqlite3_finalize(prepared.handle);
    }
    // The last connection to a file moves the log into it and removes the log.
    const int code = sqlite3_close(db_);
    HOLDFAST_ASSERT(code == SQLITE_OK);
}

}  // namespace holdfast::sql::sqlite
