// Namespaces, and the counter that every change of one moves.
//
// A watcher of namespaces reads the counter and asks for what is newer. So the counter is the fence
// of all of them: a change names the value it has seen, and moves it by one. A namespace's own
// stamp only says which change was its last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

struct Namespace {
    NamespaceId id{};
    std::string name{};  // Unique; 1 to id_bytes_max bytes.
    Blob info{};
    bool is_global = false;
    std::int64_t notification_version = 0;  // The counter's when it was changed last.

    friend bool operator==(const Namespace&, const Namespace&) = default;
};

class NamespaceAlreadyExists : public Error {
public:
    explicit NamespaceAlreadyExists(std::string message,
                                    std::source_location where = std::source_location::current())
        : Error(Code::already_exists, Outcome::not_applied, std::move(message), where) {}
};

// Safe to share between threads. On PostgreSQL every call makes two round trips at most.
class Namespaces {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit Namespaces(sql::Database& db) noexcept : db_(db) {}
    Namespaces(const Namespaces&) = delete;
    Namespaces& operator=(const Namespaces&) = delete;

    // Throws NamespaceAlreadyExists if the id or the name is taken. Its stamp is the counter's.
    void create(const Namespace& made, const Call& call = {});
    // Replaces the namespace with this id, also its name. Throws ConditionFailed if the counter is
    // not made.notification_version, or another namespace has the name; NotFound if there is none.
    void update(const Namespace& made, const Call& call = {});
    // What is gone already is deleted. The counter does not move.
    void remove(NamespaceId id, const Call& call = {});
    void remove(const std::string& name, const Call& call = {});

    [[nodiscard]] std::optional<Namespace> find(NamespaceId id, const Call& call = {}) const;
    [[nodiscard]] std::optional<Namespace> find(const std::string& name,
                                                const Call& call = {}) const;
    // By id, after the last of the page before.
    [[nodiscard]] std::vector<Namespace> list(std::int64_t page_size,
                                              NamespaceId after = {},
                                              const Call& call = {}) const;
    [[nodiscard]] std::int64_t notification_version(const Call& call = {}) const;

private:
    sql::Database& db_;
};

}  // namespace holdfast::store
