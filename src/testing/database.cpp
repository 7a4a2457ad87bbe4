#include <holdfast/testing/database.hpp>

#include <charconv>
#include <cstdlib>
#include <functional>

#include "outside.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/testing/dsql.hpp>
#include <holdfast/testing/pgbouncer.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::test {

// The data of one test, and access to them from outside.
class Place {
public:
    virtual ~Place() = default;

    [[nodiscard]] virtual Backend backend() const noexcept = 0;
    [[nodiscard]] virtual const std::string& url() const noexcept = 0;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;
    [[nodiscard]] virtual Table run(const std::string& script) const = 0;
};

namespace {

class SqliteFile final : public Place {
public:
    SqliteFile() : name_(folder_ / "test.db"), url_(fmt::format("sqlite:{}?create=1", name_)) {}

    [[nodiscard]] Backend backend() const noexcept override { return Backend::sqlite; }
    [[nodiscard]] const std::string& url() const noexcept override { return url_; }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }
    [[nodiscard]] Table run(const std::string& script) const override {
        return run_on_sqlite(name_, script);
    }

private:
    TempDir folder_;
    std::string name_;
    std::string url_;
};

// The way to a database of the shared server: with HOLDFAST_TEST_PGBOUNCER=transaction in the
// environment through a pgbouncer that lends few backends to many clients.
[[nodiscard]] std::string url_of(const PostgresAddress& server, const std::string& name) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const char* const mode = std::getenv("HOLDFAST_TEST_PGBOUNCER");
    if (mode == nullptr) {
        return server.url(name);
    }
    static const PgBouncer bouncer(
        server,
        {.mode = mode == to_string(PoolMode::session) ? PoolMode::session : PoolMode::transaction});
    return bouncer.url(name);
}

class ServerDatabase final : public Place {
public:
    ServerDatabase(PostgresAddress server, const std::string& original)
        : server_(std::move(server)),
          name_(fmt::format("test_{:016x}", secure_seed())),
          url_(url_of(server_, name_)) {
        copy_database(server_, original, name_);
    }
    ~ServerDatabase() override { drop_database(server_, name_); }
    ServerDatabase(const ServerDatabase&) = delete;
    ServerDatabase& operator=(const ServerDatabase&) = delete;

    [[nodiscard]] Backend backend() const noexcept override { return Backend::postgres; }
    [[nodiscard]] const std::string& url() const noexcept override { return url_; }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }
    [[nodiscard]] Table run(const std::string& script) const override {
        return run_on_postgres(server_.conninfo(name_), script);
    }

private:
    PostgresAddress server_;
    std::string name_;
    std::string url_;
};

class ClusterBehindGateway final : public Place {
public:
    explicit ClusterBehindGateway(const std::string& original) : cluster_(original) {}

    [[nodiscard]] Backend backend() const noexcept override { return Backend::dsql; }
    [[nodiscard]] const std::string& url() const noexcept override { return url_; }
    [[nodiscard]] const std::string& name() const noexcept override { return cluster_.id(); }
    [[nodiscard]] Table run(const std::string& script) const override {
        return run_on_postgres(cluster_.outside(), script);
    }

private:
    DsqlCluster cluster_;
    std::string url_ = cluster_.url();
};

[[nodiscard]] std::unique_ptr<Place> make_place(Backend backend,
                                                const std::string& original = empty_database) {
    switch (backend) {
        case Backend::sqlite:
            return std::make_unique<SqliteFile>();
        case Backend::dsql:
            return std::make_unique<ClusterBehindGateway>(original);
        case Backend::postgres:
            break;
    }
    return std::make_unique<ServerDatabase>(shared_postgres(), original);
}

[[nodiscard]] const sql::Dialect& dialect_of(Backend backend) {
    return sql::dialect_named(to_string(backend));
}

// Other braces than the dialect's holes stay as they are: a script may hold JSON.
[[nodiscard]] std::string filled(std::string_view script, const sql::Dialect& dialect) {
    std::string text;
    while (!script.empty()) {
        const std::size_t open = std::min(script.find('{'), script.size());
        text += script.substr(0, open);
        script.remove_prefix(open);
        const std::size_t close = script.find('}');
        const std::string_view filling = close == std::string_view::npos
                                             ? std::string_view{}
                                             : sql::fill_hole(dialect, script.substr(1, close - 1));
        const bool hole = filling.data() != nullptr;
        text += hole ? filling : script.substr(0, 1);
        script.remove_prefix(hole ? close + 1 : std::min<std::size_t>(1, script.size()));
    }
    return text;
}

// By its text, so that a changed schema finds no older one's copy.
[[nodiscard]] std::string name_of_original(const sql::SchemaPart& part, Backend backend) {
    const std::size_t text = std::hash<std::string>{}(schema_dump(part, dialect_of(backend)));
    return fmt::format("original_{}_{}_{:016x}", to_string(backend), part.name, text);
}

// A database with the tables of the part, to be copied from then on.
void make_original(Backend backend, const sql::SchemaPart& part, const std::string& name) {
    Database made(backend);
    sql::schema_apply(made, part, {});
    made.close();
    rename_database(shared_postgres(), made.name(), name);
}

[[nodiscard]] std::unique_ptr<Place> make_copy(Backend backend, const sql::SchemaPart& part) {
    const std::string original = name_of_original(part, backend);
    try {
        return make_place(backend, original);
    } catch (const Error&) {
        make_original(backend, part, original);  // It does not exist yet.
    }
    return make_place(backend, original);
}

}  // namespace

std::string_view to_string(Backend backend) noexcept {
    switch (backend) {
        case Backend::sqlite:
            return "sqlite";
        case Backend::postgres:
            return "postgres";
        case Backend::dsql:
            return "dsql";
    }
    return "";
}

Backend that_forks(Backend backend) {
    if (backend == Backend::dsql) {
        fork_gateway();
    }
    return backend;
}

sql::DatabaseOptions quick_options() {
    sql::DatabaseOptions options;
    options.retry.base_delay = std::chrono::milliseconds{1};
    options.retry.max_delay = std::chrono::milliseconds{10};
    options.sources["dsql"] = gateway_source();
    return options;
}

Database::Database(Backend backend, sql::DatabaseOptions options)
    : Database(make_place(backend), std::move(options)) {}

Database::Database(Backend backend, const sql::SchemaPart& part, sql::DatabaseOptions options)
    : Database(backend == Backend::sqlite ? make_place(backend) : make_copy(backend, part),
               std::move(options)) {
    if (backend == Backend::sqlite) {
        sql::schema_apply(*handle_, part, {});
    }
}

Database::Database(const PostgresAddress& server, sql::DatabaseOptions options)
    : Database(std::make_unique<ServerDatabase>(server, empty_database), std::move(options)) {}

Database::Database(std::unique_ptr<Place> place, sql::DatabaseOptions options)
    : options_(std::move(options)), place_(std::move(place)) {
    options_.clock_offset_us = &offset_us_;
    reopen();
}

Database::~Database() = default;

Backend Database::backend() const noexcept {
    return place_->backend();
}
const std::string& Database::url() const noexcept {
    return place_->url();
}
const std::string& Database::name() const noexcept {
    return place_->name();
}

std::int64_t Database::lease_now_us() {
    static constexpr sql::Statement clock{"test.lease_clock", "SELECT {lease_us}"};
    return handle_->run("ReadLeaseClock", {}, clock).rows[0].get<std::int64_t>(0);
}

void Database::close() {
    handle_.reset();
}

void Database::reopen() {
    close();
    handle_ = std::make_unique<sql::Database>(url(), options_);
}

void Database::execute(std::string_view script) const {
    (void)look(script);
}

std::vector<Database::Cells> Database::look(std::string_view query) const {
    return place_->run(filled(query, dialect_of(backend())));
}

std::int64_t Database::number(std::string_view query) const {
    const std::vector<Cells> rows = look(query);
    if (rows.size() != 1 || rows[0].size() != 1 || !rows[0][0]) {
        throw Error(Code::internal, Outcome::unknown, fmt::format("not one number: {}", query));
    }
    const std::string text = rows[0][0].value_or("");
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size()) {
        throw Error(Code::internal, Outcome::unknown, fmt::format("not a number: {}", text));
    }
    return value;
}

}  // namespace holdfast::test
