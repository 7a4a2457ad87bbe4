#include "sqlite/gathered_log.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include <sqlite3.h>

namespace holdfast::sql::sqlite {

// SQLite's part comes first: to SQLite this is a sqlite3_file, which says by its methods that it is
// ours. The real file follows in the same piece of memory.
struct LogFile {
    sqlite3_file part{};
    sqlite3_file* real = nullptr;
    std::vector<std::byte> gathered{};  // Of the file from `offset` on.
    sqlite3_int64 offset = 0;
    bool gathering = false;
    bool ends = false;  // The frame of which only the header is there is the commit's last.
};

namespace {

// SQLite's files take no more at once.
constexpr std::size_t gathered_bytes_max = 128UL * 1024 - 1;

// Of SQLite's file format: a frame is a header and a page. The header says for the last frame of a
// commit, and for no other, how many pages the database has by then.
constexpr int frame_header_bytes = 24;
constexpr std::size_t pages_field = 4;
constexpr std::size_t pages_bytes = 4;

bool is_header(int bytes) noexcept {
    return bytes == frame_header_bytes;
}

bool ends_commit(const void* header) noexcept {
    const auto* field = static_cast<const std::byte*>(header) + pages_field;
    return std::any_of(field, field + pages_bytes, [](std::byte b) { return b != std::byte{}; });
}

LogFile& log_of(sqlite3_file* file) noexcept {
    return *reinterpret_cast<LogFile*>(file);
}

int hand_down(LogFile& log) noexcept {
    if (log.gathered.empty()) {
        return SQLITE_OK;
    }
    const int code = log.real->pMethods->xWrite(
        log.real, log.gathered.data(), static_cast<int>(log.gathered.size()), log.offset);
    // If it failed, so does the commit, and the pages are not needed any more.
    log.gathered.clear();
    log.ends = false;
    return code;
}

bool keep(LogFile& log, const void* data, int bytes) noexcept {
    const auto* begin = static_cast<const std::byte*>(data);
    try {
        log.gathered.insert(log.gathered.end(), begin, begin + bytes);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// ---- The methods of the file

int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 offset) {
    LogFile& log = log_of(file);
    const std::size_t size = log.gathered.size();
    const bool follows = size > 0 && offset == log.offset + static_cast<sqlite3_int64>(size) &&
                         size + static_cast<std::size_t>(bytes) <= gathered_bytes_max;
    if (follows && keep(log, data, bytes)) {
        if (log.ends) {
            return hand_down(log);
        }
        log.ends = is_header(bytes) && ends_commit(data);
        return SQLITE_OK;
    }
    const int code = hand_down(log);
    if (code != SQLITE_OK) {
        return code;
    }
    // A commit's last frame is not worth the wait, if it is alone. Nor may it be kept: SQLite also
    // rewrites headers, and nothing would come after this one.
    const bool begins = log.gathering && is_header(bytes) && !ends_commit(data);
    if (begins && keep(log, data, bytes)) {
        log.offset = offset;
        return SQLITE_OK;
    }
    return log.real->pMethods->xWrite(log.real, data, bytes, offset);
}

// Everything else is for the file as it would be by now.
template <class Use>
int on_file(sqlite3_file* file, const Use& use) {
    LogFile& log = log_of(file);
    const int code = hand_down(log);
    return code != SQLITE_OK ? code : use(log.real, *log.real->pMethods);
}

int read(sqlite3_file* file, void* data, int bytes, sqlite3_int64 offset) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xRead(real, data, bytes, offset);
    });
}
int truncate(sqlite3_file* file, sqlite3_int64 size) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xTruncate(real, size);
    });
}
int sync(sqlite3_file* file, int flags) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xSync(real, flags);
    });
}
int file_size(sqlite3_file* file, sqlite3_int64* size) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xFileSize(real, size);
    });
}
int lock(sqlite3_file* file, int level) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xLock(real, level);
    });
}
int unlock(sqlite3_file* file, int level) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xUnlock(real, level);
    });
}
int check_reserved(sqlite3_file* file, int* reserved) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xCheckReservedLock(real, reserved);
    });
}
int control(sqlite3_file* file, int operation, void* argument) {
    return on_file(file, [=](sqlite3_file* real, const sqlite3_io_methods& methods) {
        return methods.xFileControl(real, operation, argument);
    });
}
int sector_size(sqlite3_file* file) {
    sqlite3_file* const real = log_of(file).real;
    return real->pMethods->xSectorSize(real);
}
int device_characteristics(sqlite3_file* file) {
    sqlite3_file* const real = log_of(file).real;
    return real->pMethods->xDeviceCharacteristics(real);
}

int close(sqlite3_file* file) {
    LogFile& log = log_of(file);
    const int code = log.real->pMethods->xClose(log.real);
    std::destroy_at(&log);
    return code;
}

constexpr sqlite3_io_methods log_methods{.iVersion = 1,  // The index belongs to the database file.
                                         .xClose = close,
                                         .xRead = read,
                                         .xWrite = write,
                                         .xTruncate = truncate,
                                         .xSync = sync,
                                         .xFileSize = file_size,
                                         .xLock = lock,
                                         .xUnlock = unlock,
                                         .xCheckReservedLock = check_reserved,
                                         .xFileControl = control,
                                         .xSectorSize = sector_size,
                                         .xDeviceCharacteristics = device_characteristics,
                                         .xShmMap = nullptr,
                                         .xShmLock = nullptr,
                                         .xShmBarrier = nullptr,
                                         .xShmUnmap = nullptr,
                                         .xFetch = nullptr,
                                         .xUnfetch = nullptr};

// ---- Opening

int open(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags, int* flags_out);

// SQLite's own, but for the way in which it opens a file.
struct Vfs {
    sqlite3_vfs* base = ::sqlite3_vfs_find(nullptr);
    sqlite3_vfs ours = *base;

    Vfs() {
        ours.pNext = nullptr;
        ours.zName = "holdfast";
        ours.szOsFile = static_cast<int>(sizeof(LogFile)) + base->szOsFile;
        ours.xOpen = &open;
        ::sqlite3_vfs_register(&ours, 0);
    }
};

Vfs& vfs() {
    static Vfs only;
    return only;
}

int open(
    sqlite3_vfs* /*ours*/, sqlite3_filename name, sqlite3_file* file, int flags, int* flags_out) {
    sqlite3_vfs* const base = vfs().base;
    if ((flags & SQLITE_OPEN_WAL) == 0) {
        return base->xOpen(base, name, file, flags, flags_out);
    }
    LogFile& log = *std::construct_at(reinterpret_cast<LogFile*>(file));
    log.real = reinterpret_cast<sqlite3_file*>(&log + 1);
    log.real->pMethods = nullptr;
    const int code = base->xOpen(base, name, log.real, flags, flags_out);
    if (log.real->pMethods != nullptr) {
        log.part.pMethods = &log_methods;  // From here on SQLite closes it, also if it failed.
    } else {
        std::destroy_at(&log);
        file->pMethods = nullptr;
    }
    return code;
}

LogFile* log_of(sqlite3* db) noexcept {
    sqlite3_file* file = nullptr;
    ::sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, static_cast<void*>(&file));
    return file != nullptr && file->pMethods == &log_methods ? &log_of(file) : nullptr;
}

}  // namespace

const char* gathering_vfs() {
    return vfs().ours.zName;
}

GatherFrames::GatherFrames(sqlite3* db) noexcept : log_(log_of(db)) {
    if (log_ != nullptr) {
        log_->gathering = true;
    }
}

GatherFrames::~GatherFrames() {
    if (log_ != nullptr) {
        log_->gathering = false;
        log_->gathered.clear();  // Of a commit that failed.
        log_->ends = false;
    }
}

}  // namespace holdfast::sql::sqlite
