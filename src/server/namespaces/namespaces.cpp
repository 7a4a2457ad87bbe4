#include "namespaces/namespaces.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "search_attributes/values.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/database.hpp>

namespace holdfast::server::namespaces {

namespace {

using frontend::NamespaceAnswer;
using frontend::NamespaceUse;
using frontend::ResolvedNamespace;

constexpr int reader = 1;
constexpr std::int64_t page_rows = 100;
constexpr int tries_max = 10;
constexpr std::chrono::seconds patience{10};

store::Call soon() {
    return {.deadline = Deadline::after(patience)};
}

// To a caller a namespace that was not read in time is one that may be read later.
template <class Body>
auto patiently(Body&& body) {
    try {
        return body();
    } catch (const Error& error) {
        if (error.code() != Code::deadline && error.code() != Code::cancelled) {
            throw;
        }
        Error late(Code::unavailable,
                   error.outcome(),
                   "the namespaces could not be read in time; try again");
        late.set_cause(std::current_exception());
        throw late;
    }
}

store::NamespaceId store_id(const std::string& id) {
    const std::optional<Uuid> parsed = Uuid::parse(id);
    if (!parsed) {
        throw InvalidArgument("the id of a namespace is a UUID");
    }
    return {*parsed};
}

store::Namespace row_of(const Namespace& made) {
    const std::string bytes = made.info.SerializeAsString();
    const auto view = std::as_bytes(std::span(bytes));
    return {.id = store_id(made.id),
            .name = made.name,
            .info = {.data = {view.begin(), view.end()}, .encoding = "Proto3"},
            .notification_version = made.changed};
}

Namespace namespace_of(const store::Namespace& row) {
    Namespace made{
        .id = row.id.text(), .name = row.name, .info = {}, .changed = row.notification_version};
    if (!made.info.ParseFromArray(row.info.data.data(), static_cast<int>(row.info.data.size()))) {
        throw store::DamagedData(fmt::format("namespace \"{}\" cannot be decoded", row.name));
    }
    if (made.info.min_reader() > reader) {
        throw Error(Code::unsupported,
                    Outcome::not_applied,
                    fmt::format("namespace \"{}\" was written by a newer version; upgrade this "
                                "server",
                                row.name));
    }
    return made;
}

rpc::Refusal not_read_yet(const std::string& asked) {
    return {rpc::StatusCode::unavailable,
            fmt::format("Namespace {} cannot be read now; try again.", asked)};
}

}  // namespace

Registry::Registry(sql::Database& db) : store_(db), alone_(db.dialect().embedded) {}

// ---- Reading ------------------------------------------------------------------------------------

void Registry::open() {
    patiently([&] {
        const std::lock_guard lock(writing_);
        load();
        ensure(default_name, std::nullopt, default_retention);
        ensure(system_name, store::NamespaceId{*Uuid::parse(system_id)}, system_retention);
    });
}

void Registry::ensure(std::string_view name,
                      std::optional<store::NamespaceId> id,
                      std::chrono::seconds retention) {
    if (find(std::string(name))) {
        return;
    }
    Namespace made{.id = id.value_or(store::NamespaceId::random()).text(),
                   .name = std::string(name),
                   .info = {}};
    made.info.set_min_reader(reader);
    made.info.set_state(temporal::api::enums::v1::NAMESPACE_STATE_REGISTERED);
    made.info.mutable_retention()->set_seconds(retention.count());
    try {
        store_.create(row_of(made), soon());
    } catch (const store::NamespaceAlreadyExists&) {
        // Another process was faster.
    }
    load();
}

void Registry::load() {
    const std::int64_t counter = store_.notification_version(soon());  // First: see refresh().
    std::map<std::string, NamespacePtr> by_id;
    std::unordered_map<std::string, NamespacePtr> by_name;
    store::NamespaceId after{};
    bool more = true;
    while (more) {
        const std::vector<store::Namespace> page = store_.list(page_rows, after, soon());
        for (const store::Namespace& row : page) {
            auto made = std::make_shared<const Namespace>(namespace_of(row));
            by_name[made->name] = made;
            by_id[made->id] = std::move(made);
            after = row.id;
        }
        more = std::ssize(page) == page_rows;
    }
    const std::lock_guard lock(mutex_);
    by_id_ = std::move(by_id);
    by_name_ = std::move(by_name);
    counter_ = counter;
    sure_ = true;
}

void Registry::load_if_changed() {
    bool sure = false;
    std::int64_t known = 0;
    {
        const std::shared_lock lock(mutex_);
        sure = sure_;
        known = counter_;
    }
    if (sure && (alone_ || store_.notification_version(soon()) == known)) {
        return;
    }
    load();
}

void Registry::refresh() {
    patiently([&] {
        const std::lock_guard lock(writing_);
        load_if_changed();
    });
}

NamespacePtr Registry::read(const std::string& name) {
    refresh();
    return find(name);
}

NamespacePtr Registry::read_id(const std::string& id) {
    refresh();
    return find_id(id);
}

// ---- Writing ------------------------------------------------------------------------------------

NamespacePtr Registry::create(std::string name, stored::Info info) {
    return patiently([&] {
        const std::lock_guard lock(writing_);
        Namespace made{.id = store::NamespaceId::random().text(),
                       .name = std::move(name),
                       .info = std::move(info)};
        made.info.set_min_reader(reader);
        const store::Namespace row = row_of(made);
        try {
            store_.create(row, soon());
        } catch (const Error& error) {
            if (error.outcome() == Outcome::unknown) {
                doubt(made.id);
            }
            throw;
        }
        try {
            load();  // With the number that the store gave it.
        } catch (...) {
            doubt(made.id);
            throw;
        }
        return find_id(made.id);
    });
}

NamespacePtr Registry::change(const std::string& id,
                              const std::function<bool(Namespace&)>& change) {
    return patiently([&]() -> NamespacePtr {
        const std::lock_guard lock(writing_);
        for (int tried = 1;; ++tried) {
            const std::int64_t counter = store_.notification_version(soon());
            const std::optional<store::Namespace> row = store_.find(store_id(id), soon());
            if (!row) {
                return nullptr;
            }
            Namespace made = namespace_of(*row);
            if (!change(made)) {
                return std::make_shared<const Namespace>(namespace_of(*row));
            }
            made.changed = counter;
            const store::Namespace written = row_of(made);
            try {
                store_.update(written, soon());
                put_written(written);
                return find_id(id);
            } catch (const store::ConditionFailed&) {
                if (tried == tries_max) {
                    throw;
                }
            } catch (const Error& error) {
                if (error.outcome() == Outcome::unknown) {
                    doubt(id);
                }
                throw;
            }
        }
    });
}

void Registry::remove(const std::string& id) {
    patiently([&] {
        const std::lock_guard lock(writing_);
        try {
            store_.remove(store_id(id), soon());
        } catch (const Error& error) {
            if (error.outcome() == Outcome::unknown) {
                doubt(id);
            }
            throw;
        }
        const std::lock_guard held(mutex_);
        drop(id);
    });
}

void Registry::put_written(const store::Namespace& written) {
    put(std::make_shared<const Namespace>(namespace_of(written)));
    const std::lock_guard lock(mutex_);
    if (counter_ == written.notification_version) {
        ++counter_;  // Moved by us. Else others were there, too, and the next refresh reads all.
    }
}

void Registry::put(NamespacePtr made) {
    const std::lock_guard lock(mutex_);
    NamespacePtr& held = by_id_[made->id];
    if (held) {
        by_name_.erase(held->name);
    }
    held = made;
    by_name_[made->name] = std::move(made);
}

void Registry::doubt(const std::string& id) {
    const std::lock_guard lock(mutex_);
    sure_ = false;
    drop(id);
}

// Requires: the lock is held.
void Registry::drop(const std::string& id) {
    if (const auto held = by_id_.find(id); held != by_id_.end()) {
        by_name_.erase(held->second->name);
        by_id_.erase(held);
    }
}

// ---- From memory --------------------------------------------------------------------------------

NamespacePtr Registry::find(const std::string& name) const {
    const std::shared_lock lock(mutex_);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

NamespacePtr Registry::find_id(const std::string& id) const {
    const std::shared_lock lock(mutex_);
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : found->second;
}

std::vector<NamespacePtr> Registry::list(std::size_t count, const std::string& after) const {
    std::vector<NamespacePtr> page;
    const std::shared_lock lock(mutex_);
    for (auto next = by_id_.upper_bound(after); next != by_id_.end() && page.size() < count;
         ++next) {
        page.push_back(next->second);
    }
    return page;
}

std::chrono::seconds Registry::retention(const std::string& namespace_id) const {
    const NamespacePtr found = find_id(namespace_id);
    return found ? std::chrono::seconds{found->info.retention().seconds()} : default_retention;
}

std::string Registry::name_of(const std::string& namespace_id) const {
    const NamespacePtr found = find_id(namespace_id);
    return found ? found->name : std::string{};
}

std::optional<std::string> Registry::id_of(const std::string& name) const {
    const NamespacePtr found = find(name);
    return found ? std::optional(found->id) : std::nullopt;
}

store::SearchAttributes Registry::indexed(const std::string& namespace_id,
                                          const Payloads& attributes) const {
    const NamespacePtr found = find_id(namespace_id);
    return search_attributes::to_stored(found ? found->info : stored::Info(), attributes);
}

NamespaceAnswer Registry::resolve(const std::string& name, NamespaceUse use) {
    if (std::optional<rpc::Refusal> wrong = frontend::name_refusal(name)) {
        return *std::move(wrong);
    }
    return answer(find(name), name, use);
}

NamespaceAnswer Registry::by_id(const std::string& id, NamespaceUse use) {
    return answer(find_id(id), id, use);
}

NamespaceAnswer Registry::answer(const NamespacePtr& found,
                                 const std::string& asked,
                                 NamespaceUse use) const {
    if (!found) {
        const std::shared_lock lock(mutex_);
        return sure_ ? frontend::namespace_not_found(asked) : not_read_yet(asked);
    }
    ResolvedNamespace resolved{.id = found->id, .name = found->name, .state = found->info.state()};
    if (std::optional<rpc::Refusal> wrong = frontend::state_refusal(resolved, use)) {
        return *std::move(wrong);
    }
    return resolved;
}

}  // namespace holdfast::server::namespaces
