// The namespaces of this server, in memory and in the store.
//
// All of them are kept in memory, so resolving one does not block. Every change of this process
// goes through the registry: what it answers is right at once. Changes of other processes on the
// same database are seen by refresh(). As long as the outcome of a change is unknown, a namespace
// that is not found is "unavailable", never "not found".
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/engine.hpp"
#include "frontend/namespace_gate.hpp"
#include <server/namespaces/namespace.pb.h>

#include <holdfast/store/namespace.hpp>

namespace holdfast::server::namespaces {

struct Namespace {
    std::string id;  // A UUID in text.
    std::string name;
    stored::Info info;
    std::int64_t changed = 0;  // The number of its last change.
};

using NamespacePtr = std::shared_ptr<const Namespace>;

inline constexpr std::string_view default_name = "default";
inline constexpr std::string_view system_name = "temporal-system";
inline constexpr std::string_view system_id = "32049b68-7872-4094-8e63-d0dd59896a83";
inline constexpr std::chrono::hours default_retention{24};
inline constexpr std::chrono::hours system_retention{24 * 7};

// Safe to share between threads.
class Registry final : public engine::Namespaces, public frontend::NamespaceGate {
public:
    // Requires: `db` outlives this object, and its schema holds the part `store`.
    explicit Registry(sql::Database& db);

    // ---- These block. They throw Code::unavailable if the store does not answer in time.

    // Reads all namespaces; `default` and `temporal-system` exist afterwards.
    void open();
    // Reads what other processes changed, and whatever is in doubt. Without a round trip if neither
    // can be: on a file that has one process.
    void refresh();
    // Past the memory: what the database has now. Null if there is none.
    [[nodiscard]] NamespacePtr read(const std::string& name);
    [[nodiscard]] NamespacePtr read_id(const std::string& id);
    // Throws store::NamespaceAlreadyExists if the name is taken.
    NamespacePtr create(std::string name, stored::Info info);
    // Stores what `change` makes of the namespace, and returns it; null if it is gone. If `change`
    // returns false, nothing is stored. It may be called again, with what another process wrote
    // meanwhile, or because the name that it chose is taken.
    NamespacePtr change(const std::string& id, const std::function<bool(Namespace&)>& change);

    // Deletes the record, whatever it holds. One that is gone is deleted.
    void remove(const std::string& id);

    // ---- These do not block.

    [[nodiscard]] NamespacePtr find(const std::string& name) const;  // Null if there is none.
    [[nodiscard]] NamespacePtr find_id(const std::string& id) const;
    // By id, after this one.
    [[nodiscard]] std::vector<NamespacePtr> list(std::size_t count, const std::string& after) const;

    // engine::Namespaces
    [[nodiscard]] std::chrono::seconds retention(const std::string& namespace_id) const override;
    [[nodiscard]] std::string name_of(const std::string& namespace_id) const override;
    [[nodiscard]] std::optional<std::string> id_of(const std::string& name) const override;
    [[nodiscard]] store::SearchAttributes indexed(const std::string& namespace_id,
                                                  const Payloads& attributes) const override;

    // frontend::NamespaceGate
    [[nodiscard]] frontend::NamespaceAnswer resolve(const std::string& name,
                                                    frontend::NamespaceUse use) override;
    [[nodiscard]] frontend::NamespaceAnswer by_id(const std::string& id,
                                                  frontend::NamespaceUse use) override;

private:
    void ensure(std::string_view name,
                std::optional<store::NamespaceId> id,
                std::chrono::seconds retention);
    void load();
    void load_if_changed();
    // What was written may be in the store or not: forgets it until it is read again.
    void doubt(const std::string& id);
    void put(NamespacePtr made);
    void drop(const std::string& id);
    void put_written(const store::Namespace& written);
    [[nodiscard]] frontend::NamespaceAnswer answer(const NamespacePtr& found,
                                                   const std::string& asked,
                                                   frontend::NamespaceUse use) const;

    store::Namespaces store_;
    const bool alone_;  // No other process writes to this database.

    std::mutex writing_;  // Held by those who block.

    mutable std::shared_mutex mutex_;
    std::map<std::string, NamespacePtr> by_id_;
    std::unordered_map<std::string, NamespacePtr> by_name_;
    std::int64_t counter_ = -1;  // Of all changes, as it was when they were read.
    bool sure_ = false;          // What is not here does not exist.
};

}  // namespace holdfast::server::namespaces
