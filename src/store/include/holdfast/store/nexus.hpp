// Nexus endpoints, each with a version, and one version for the whole table.
//
// A reader that keeps a copy of the table compares its version to know whether the copy is
// complete. So every change names the table's version it has seen, and moves it by one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <holdfast/store/error.hpp>
#include <holdfast/store/types.hpp>

namespace holdfast::sql {
class Database;
}

namespace holdfast::store {

using EndpointId = Id<struct EndpointKind>;

struct Endpoint {
    EndpointId id{};
    Blob blob{};
    std::int64_t version = 0;  // 0: it is to be created.

    friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct EndpointPage {
    std::int64_t table_version = 0;
    std::vector<Endpoint> endpoints{};  // By id.
};

// Safe to share between threads. On PostgreSQL every call makes two round trips at most.
class NexusEndpoints {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit NexusEndpoints(sql::Database& db) noexcept : db_(db) {}
    NexusEndpoints(const NexusEndpoints&) = delete;
    NexusEndpoints& operator=(const NexusEndpoints&) = delete;

    // Creates or replaces an endpoint whose version is still endpoint.version. Throws
    // ConditionFailed: "nexus endpoints table version mismatch", "nexus endpoint version mismatch".
    void put(const Endpoint& endpoint, std::int64_t table_version, const Call& call = {});
    // Throws ConditionFailed, or NotFound: then the table's version stays.
    void remove(EndpointId id, std::int64_t table_version, const Call& call = {});
    [[nodiscard]] std::optional<Endpoint> find(EndpointId id, const Call& call = {}) const;
    // After the last of the page before; a page of 0 tells the table's version only. Requires:
    // `table_version` is the table's, or 0, which asks for nothing. Else ConditionFailed: what was
    // read before may have changed.
    [[nodiscard]] EndpointPage list(std::int64_t page_size,
                                    EndpointId after = {},
                                    std::int64_t table_version = 0,
                                    const Call& call = {}) const;

private:
    sql::Database& db_;
};

}  // namespace holdfast::store
