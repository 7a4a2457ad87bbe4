#include "gateway/cluster.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <deque>
#include <iterator>

#include "dialect/functions.hpp"
#include "gateway/system_schema.hpp"
#include <fmt/core.h>

#include <holdfast/sql/error.hpp>

namespace holdfast::dsql {

namespace {

constexpr std::size_t verdicts_kept = 10'000;

// Requires: a schema.
std::string full_name(const TableName& name) {
    return fmt::format("{}.{}", quoted_name(name.schema), quoted_name(name.name));
}

constexpr std::string_view version_number = "160015";

// A call of version() becomes one of ours, which has the same name and so the same column.
void ask_for_our_version(std::string& text) {
    constexpr std::string_view call = "version()";
    constexpr std::string_view schema = "sys.";
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
    for (auto from = text.begin();;) {
        const auto found = std::search(from, text.end(), call.begin(), call.end(), same);
        if (found == text.end()) {
            return;
        }
        const char before = found == text.begin() ? ' ' : *std::prev(found);
        const auto at = found - text.begin();
        const bool ours =
            std::isspace(static_cast<unsigned char>(before)) != 0 || before == ',' || before == '(';
        if (ours) {
            text.insert(static_cast<std::size_t>(at), schema);
        }
        from = text.begin() + at + static_cast<std::ptrdiff_t>(call.size()) +
               static_cast<std::ptrdiff_t>(ours ? schema.size() : 0);
    }
}

// PostgreSQL takes a setting that it does not know only with a prefix.
void name_as_ours(CheckedStatement& statement) {
    const auto same = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
    std::string& text = statement.text;
    const auto found = std::search(
        text.begin(), text.end(), sync_index_setting.begin(), sync_index_setting.end(), same);
    if (statement.kind == Kind::show) {
        text = fmt::format(
            "SELECT current_setting('{}') AS {}", sync_index_setting_below, sync_index_setting);
    } else if (found != text.end()) {
        const bool quoted = found != text.begin() && *std::prev(found) == '"';
        const auto at = static_cast<std::size_t>(found - text.begin()) - (quoted ? 1 : 0);
        text.replace(at, sync_index_setting.size() + (quoted ? 2 : 0), sync_index_setting_below);
    }
}

// The text for the PostgreSQL below, where its answer to the original would differ.
void stand_in(CheckedStatement& statement) {
    if (statement.parameter == sync_index_setting) {
        name_as_ours(statement);
    } else if (statement.kind == Kind::show && statement.parameter == "server_version") {
        statement.text = fmt::format("SELECT '{}' AS server_version", reported_version);
    } else if (statement.kind == Kind::show && statement.parameter == "server_version_num") {
        statement.text = fmt::format("SELECT '{}' AS server_version_num", version_number);
    } else if (statement.kind == Kind::read) {
        ask_for_our_version(statement.text);
    }
}

class KnownTables final : public Tables {
public:
    KnownTables(Cluster& cluster, const std::string& path) : cluster_(cluster), path_(path) {}

    [[nodiscard]] const TableFacts* find(const TableName& name) const override {
        auto found = cluster_.traits(cluster_.resolved(name, path_));
        return found ? &kept_.emplace_back(std::move(found->facts)) : nullptr;
    }

private:
    Cluster& cluster_;
    const std::string& path_;
    mutable std::deque<TableFacts> kept_;  // Grows without moving what was handed out.
};

}  // namespace

Doorman::Doorman(const GatewayLimits& limits, const Clock& clock)
    : limits_(limits),
      clock_(clock),
      tokens_(limits.openings_burst),
      refilled_(clock.steady_now()) {}

std::optional<ErrorResponse> Doorman::enter() {
    const std::lock_guard lock(mutex_);
    const Steady now = clock_.steady_now();
    const std::chrono::duration<double> passed = now - refilled_;
    refilled_ = now;
    tokens_ =
        std::min(limits_.openings_burst, tokens_ + passed.count() * limits_.openings_per_second);
    if (tokens_ < 1) {
        return ErrorResponse{.code = "53400",
                             .message = "Unable to accept connection, rate exceeded.",
                             .fatal = true};
    }
    tokens_ -= 1;
    if (inside_ >= limits_.connections) {
        return ErrorResponse{.code = "53300",
                             .message = "Unable to accept connection, too many open connections.",
                             .fatal = true};
    }
    ++inside_;
    return std::nullopt;
}

void Doorman::leave() {
    const std::lock_guard lock(mutex_);
    --inside_;
}

Cluster::Cluster(const GatewayOptions& options,
                 const Upstream& upstream,
                 const Clock& clock,
                 std::string id,
                 std::string database)
    : options_(options),
      upstream_(upstream),
      clock_(clock),
      id_(std::move(id)),
      database_(std::move(database)),
      doorman_(options.limits, clock) {
    {
        const auto owner = upstream_.as_owner(database_);
        if (database_.empty()) {
            database_ = text_of(owner->query("SELECT current_database()").at(0), 0);
        }
        std::string script(database_script());
        constexpr std::string_view hole = ":database";
        for (auto at = script.find(hole); at != std::string::npos; at = script.find(hole)) {
            script.replace(at, hole.size(), quoted_name(database_));
        }
        owner->script(script);
    }
    control_ = upstream_.as_role(gateway_role, database_);
    control_->script(schema_script());
    for (const auto& row : ask("SELECT DISTINCT proname FROM pg_catalog.pg_proc"
                               " WHERE pronamespace = 'pg_catalog'::regnamespace")) {
        system_functions_.insert(text_of(row, 0));
    }
}

std::unique_ptr<Backend> Cluster::connect(std::string_view role) {
    auto backend = upstream_.as_role(role, database_);
    backend->count_in(counters.exchanges);
    return backend;
}

Table Cluster::ask(const std::string& sql) {
    const std::lock_guard lock(control_mutex_);
    return control_->query(sql);
}

bool Cluster::has_role(std::string_view role) {
    return !ask(fmt::format(
                    "SELECT 1 FROM pg_roles r WHERE rolcanlogin AND rolname = {} AND NOT {}",
                    quoted_text(role),
                    powerful_role))
                .empty();
}

bool Cluster::granted(std::string_view role, std::string_view arn) {
    return !ask(fmt::format(
                    "SELECT 1 FROM holdfast_gateway.iam_grants WHERE role = {} AND arn = {}",
                    quoted_text(role),
                    quoted_text(arn)))
                .empty();
}

std::string Cluster::administer(const Work& work, Mode mode) {
    std::string names;
    for (const std::string& role : work.roles) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", quoted_text(role));
    }
    const std::lock_guard lock(control_mutex_);
    const auto powerful = names.empty()
                              ? Table{}
                              : control_->query(fmt::format(
                                    "SELECT rolname FROM pg_roles r WHERE rolname IN ({}) AND {}",
                                    names,
                                    powerful_role));
    if (!powerful.empty()) {
        return unsupported("feature not supported on system entity").bytes();
    }
    // All sessions share this connection: it must not wait for one that stalls.
    const Answer answer = control_->run({"BEGIN",
                                         "SET LOCAL lock_timeout = '1s'",
                                         work.text,
                                         mode == Mode::perform ? "COMMIT" : "ROLLBACK"});
    if (answer.ok()) {
        return {};
    }
    must(control_->run({"ROLLBACK"}));
    if (answer.what().code == "55P03") {
        return data_conflict().bytes();
    }
    std::string error;
    append_message(error, 'E', answer.error);
    return error;
}

std::int64_t Cluster::stored_size(std::string_view value) {
    constexpr std::int32_t type_bytea = 17;
    std::string bytes;
    append_own(bytes, "BEGIN");
    append_close_own(bytes);
    append_message(bytes,
                   'P',
                   BodyWriter()
                       .text(own_name)
                       .text("INSERT INTO holdfast_gateway.scales VALUES ($1)")
                       .int16(1)
                       .int32(type_bytea)
                       .body());
    append_message(bytes,
                   'B',
                   BodyWriter()
                       .text(own_name)
                       .text(own_name)
                       .int16(1)
                       .int16(1)
                       .int16(1)
                       .int32(static_cast<std::int32_t>(value.size()))
                       .bytes(value)
                       .int16(0)
                       .body());
    append_message(bytes, 'E', BodyWriter().text(own_name).int32(0).body());
    append_sync(bytes);
    const std::lock_guard lock(control_mutex_);
    if (!control_->exchange(bytes, {}).ok()) {
        must(control_->run({"ROLLBACK"}));
        return static_cast<std::int64_t>(value.size());
    }
    const auto size = control_->query(
        "SELECT max(pg_column_size(value)) FROM"
        " holdfast_gateway.scales");
    must(control_->run({"ROLLBACK"}));
    return std::stoll(size.at(0).at(0).value_or("0"));
}

std::optional<TableTraits> Cluster::traits(const TableName& name) {
    const std::string key = full_name(name);
    {
        const std::lock_guard lock(catalogue_mutex_);
        if (const auto found = traits_.find(key); found != traits_.end()) {
            return found->second;
        }
    }
    const auto columns = ask(fmt::format(
        "SELECT a.attname, format_type(a.atttypid, NULL),"
        " coalesce((SELECT array_position(i.indkey::int2[], a.attnum) FROM pg_index i"
        "  WHERE i.indrelid = a.attrelid AND i.indisprimary), -1),"
        " a.attidentity <> '' OR coalesce((SELECT bool_or(p.provolatile = 'v') FROM pg_attrdef d"
        "  JOIN pg_depend x ON x.classid = 'pg_attrdef'::regclass AND x.objid = d.oid"
        "   AND x.refclassid = 'pg_proc'::regclass JOIN pg_proc p ON p.oid = x.refobjid"
        "  WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum), false)"
        " OR coalesce((SELECT pg_get_expr(d.adbin, d.adrelid) ~"
        "  'nextval|random|clock_timestamp|timeofday|txid|uuid' FROM pg_attrdef d"
        "  WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum), false),"
        " EXISTS (SELECT FROM pg_constraint f WHERE f.confrelid = a.attrelid"
        "  AND (f.confdeltype IN ('c','n','d') OR f.confupdtype IN ('c','n','d')))"
        " FROM pg_attribute a WHERE a.attrelid = {} AND a.attnum > 0"
        " AND NOT a.attisdropped ORDER BY 3, a.attnum",
        oid_of(name.schema, name.name)));
    if (columns.empty()) {
        return std::nullopt;
    }
    TableTraits traits;
    for (const auto& row : columns) {
        traits.facts.columns.push_back({text_of(row, 0), text_of(row, 1)});
        if (text_of(row, 2) != "-1") {
            traits.facts.key.push_back(text_of(row, 0));
        }
        traits.volatile_defaults = traits.volatile_defaults || text_of(row, 3) == "t";
        traits.cascades = traits.cascades || text_of(row, 4) == "t";
    }
    const std::lock_guard lock(catalogue_mutex_);
    traits_[key] = traits;
    return traits;
}

bool Cluster::ripples(const CheckedStatement& statement) {
    return statement.writes_by_cte || (statement.target && statement.kind == Kind::write &&
                                       traits(*statement.target).value_or(TableTraits{}).cascades);
}

std::optional<std::int64_t> Cluster::rows_at_most(const CheckedStatement& statement) {
    if (statement.writes_by_cte || !statement.target) {
        return std::nullopt;
    }
    const auto found = traits(*statement.target);
    if (!found || found->cascades) {
        return std::nullopt;
    }
    if (statement.rows_of_values) {
        return statement.rows_of_values;
    }
    const auto& key = found->facts.key;
    const bool one_row =
        !key.empty() && std::all_of(key.begin(), key.end(), [&](const std::string& column) {
            return std::find(statement.equal_columns.begin(),
                             statement.equal_columns.end(),
                             column) != statement.equal_columns.end();
        });
    return one_row ? std::optional<std::int64_t>(1) : std::nullopt;
}

std::vector<WritingFunction> Cluster::writing_functions() {
    {
        const std::lock_guard lock(catalogue_mutex_);
        if (writing_functions_) {
            return *writing_functions_;
        }
    }
    std::vector<WritingFunction> writing;
    std::vector<WritingFunction> others;
    for (const auto& row :
         ask("SELECT p.proname, f.body, f.body ~* 'insert|update|delete', f.body ~*"
             " 'nextval|random|clock_timestamp|timeofday|txid|uuid' FROM pg_proc p,"
             " LATERAL (SELECT coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) AS body) f"
             " WHERE p.provolatile = 'v' AND p.prokind = 'f' AND p.pronamespace NOT IN"
             " (SELECT oid FROM pg_namespace WHERE nspname IN"
             "  ('pg_catalog', 'information_schema', 'sys', 'holdfast_gateway',"
             "   'holdfast_gateway_owner'))")) {
        auto& kind = text_of(row, 2) == "t" ? writing : others;
        kind.push_back({text_of(row, 0), text_of(row, 1), text_of(row, 3) == "t"});
    }
    for (std::size_t i = 0; i < writing.size(); ++i) {  // Grows by the functions that call them.
        for (auto other = others.begin(); other != others.end();) {
            if (other->body.find(writing[i].name) == std::string::npos) {
                ++other;
                continue;
            }
            other->differs = other->differs || writing[i].differs;
            writing.push_back(std::move(*other));
            other = others.erase(other);
        }
    }
    const std::lock_guard lock(catalogue_mutex_);
    writing_functions_ = writing;
    return writing;
}

// A query that calls a writing function is a write, of an unknown number of rows.
void Cluster::look_into_functions(CheckedStatement& statement) {
    const bool runs = statement.kind == Kind::read || statement.kind == Kind::lock ||
                      statement.kind == Kind::write;
    if (!runs || statement.functions.empty()) {
        return;
    }
    for (const WritingFunction& function : writing_functions()) {
        const auto& called = statement.functions;
        if (std::find(called.begin(), called.end(), function.name) != called.end()) {
            statement.kind = Kind::write;
            statement.writes_by_cte = true;
            statement.calls_volatile = statement.calls_volatile || function.differs;
            statement.returning = true;
            statement.rewrite.clear();
        }
    }
}

// A function of PostgreSQL's own must be in the list of harmless ones.
void Cluster::refuse_functions(CheckedStatement& statement) {
    for (const std::string& name : statement.system_functions) {
        if (!statement.refusal && system_functions_.contains(name) && !is_accepted_function(name)) {
            statement.refusal = Refusal{.rule = "function",
                                        .code = "0A000",
                                        .message = fmt::format("function {} not supported", name),
                                        .offset = statement.offset};
        }
    }
}

TableName Cluster::resolved(TableName name, const std::string& path) {
    if (!name.schema.empty()) {
        return name;
    }
    name.schema = "public";
    if (!path.empty()) {
        const auto found = ask(fmt::format(
            "SELECT p.name FROM unnest({0}::text[]) WITH ORDINALITY AS p(name, at)"
            " LEFT JOIN pg_class c ON c.relnamespace = to_regnamespace(quote_ident(p.name))"
            "  AND c.relname = {1} ORDER BY c.relname IS NULL, p.at LIMIT 1",
            quoted_text(path),
            quoted_text(name.name)));
        name.schema = found.empty() ? name.schema : text_of(found[0], 0);
    }
    return name;
}

std::shared_ptr<const Script> Cluster::checked(std::string_view sql,
                                               const Rules& rules,
                                               const std::string& path) {
    std::string key = fmt::format("{}{}{}", rules.sync_create_index ? 's' : ' ', path, sql);
    std::uint64_t version = 0;
    {
        const std::lock_guard lock(catalogue_mutex_);
        if (const auto found = checked_.find(key); found != checked_.end()) {
            return found->second;
        }
        version = version_;
    }
    const KnownTables tables(*this, path);
    Script verdict = check_statements(sql, rules, &tables);
    const auto resolve = [&](TableName& name) { name = resolved(std::move(name), path); };
    for (CheckedStatement& statement : verdict) {
        std::for_each(statement.tables.begin(), statement.tables.end(), resolve);
        if (statement.target) {
            resolve(*statement.target);
        }
        look_into_functions(statement);
        refuse_functions(statement);
        stand_in(statement);
    }
    auto script = std::make_shared<const Script>(std::move(verdict));
    const std::lock_guard lock(catalogue_mutex_);
    if (checked_.size() >= verdicts_kept) {
        checked_.clear();
    }
    if (version == version_) {
        checked_.emplace(std::move(key), script);
    }
    return script;
}

std::uint64_t Cluster::version() {
    const std::lock_guard lock(catalogue_mutex_);
    return version_;
}

void Cluster::schema_changed(const std::vector<TableName>& tables) {
    const std::lock_guard lock(catalogue_mutex_);
    ++version_;
    for (const TableName& table : tables) {
        changed_[full_name(table)] = version_;
    }
    traits_.clear();
    writing_functions_.reset();
    checked_.clear();
}

bool Cluster::changed_since(std::uint64_t version, const std::vector<TableName>& tables) {
    if (options_.schema_conflicts == SchemaConflicts::off) {
        return false;
    }
    const std::lock_guard lock(catalogue_mutex_);
    if (version >= version_) {
        return false;
    }
    if (options_.schema_conflicts == SchemaConflicts::any_table) {
        return !tables.empty();
    }
    return std::any_of(tables.begin(), tables.end(), [&](const TableName& table) {
        const auto found = changed_.find(full_name(table));
        return found != changed_.end() && found->second > version;
    });
}

void Cluster::enter(int pid, const std::shared_ptr<Executor>& executor) {
    const std::lock_guard lock(executors_mutex_);
    executors_[pid] = executor;
}

void Cluster::leave(int pid) {
    const std::lock_guard lock(executors_mutex_);
    executors_.erase(pid);
}

std::shared_ptr<Executor> Cluster::find(int pid) {
    const std::lock_guard lock(executors_mutex_);
    const auto found = executors_.find(pid);
    return found == executors_.end() ? nullptr : found->second.lock();
}

std::vector<int> Cluster::blockers_of(int pid) {
    std::vector<int> pids;
    for (const auto& row : ask(fmt::format("SELECT DISTINCT unnest(pg_blocking_pids({}))", pid))) {
        const std::string& text = text_of(row, 0);
        int found = 0;
        std::from_chars(text.data(), text.data() + text.size(), found);
        pids.push_back(found);
    }
    return pids;
}

void Cluster::cancel(int pid) {
    (void)ask(fmt::format("SELECT pg_cancel_backend({})", pid));
}

void Cluster::cut_off() {
    std::string pids;
    {
        const std::lock_guard lock(executors_mutex_);
        for (const auto& [pid, executor] : executors_) {
            pids += fmt::format("{}{}", pids.empty() ? "" : ",", pid);
        }
    }
    if (!pids.empty()) {
        (void)ask(
            fmt::format("SELECT pg_terminate_backend(pid) FROM unnest('{{{}}}'::int[]) pid", pids));
    }
}

std::optional<GatewayFault> Cluster::fault_at(FaultPoint point) {
    const std::lock_guard lock(faults_mutex_);
    std::optional<GatewayFault> fault;
    for (ArmedRule& armed : rules_) {
        if (armed.rule.point != point) {
            continue;
        }
        ++armed.seen;
        if (armed.seen >= armed.rule.nth && armed.seen < armed.rule.nth + armed.rule.times) {
            fault = armed.rule.fault;
        }
    }
    std::erase_if(rules_, [](const ArmedRule& armed) {
        return armed.seen >= armed.rule.nth + armed.rule.times - 1;
    });
    return fault;
}

bool Cluster::has_faults() {
    const std::lock_guard lock(faults_mutex_);
    return !rules_.empty();
}

void Cluster::arm(const FaultRule& rule) {
    const std::lock_guard lock(faults_mutex_);
    rules_.push_back({rule});
}

void Cluster::disarm() {
    const std::lock_guard lock(faults_mutex_);
    rules_.clear();
}

}  // namespace holdfast::dsql
