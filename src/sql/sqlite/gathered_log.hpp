// The write-ahead log of a commit, in one piece.
//
// SQLite writes each page of a commit to its log by two calls, and a commit that many share has
// hundreds of pages: the calls cost more than the bytes. So the log lies behind a file of ours,
// which keeps the frames of a commit and hands them down together: before SQLite flushes, reads or
// changes the log, and at the latest with the frame that makes it a commit. What is in the file
// when others can see the commit is the same as without.
#pragma once

struct sqlite3;

namespace holdfast::sql::sqlite {

// The name to open a database under; for all that is not its log it is SQLite's own.
[[nodiscard]] const char* gathering_vfs();

struct LogFile;

// The frames that are written while it lives are gathered.
// Requires: a commit and nothing else happens meanwhile. Frames of a transaction that is rolled
// back must not reach the log later: by then they may be another process's.
class GatherFrames {
public:
    explicit GatherFrames(sqlite3* db) noexcept;
    ~GatherFrames();
    GatherFrames(const GatherFrames&) = delete;
    GatherFrames& operator=(const GatherFrames&) = delete;

private:
    LogFile* log_;  // Null if the database has none, or one of SQLite's own.
};

}  // namespace holdfast::sql::sqlite
