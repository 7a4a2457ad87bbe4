#include "gateway/executor.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace holdfast::dsql {

namespace {

using namespace std::chrono_literals;

constexpr auto short_wait = 20ms;
constexpr int looks_apart_max = 8;  // Times the backend's patience.

// The arguments of a Bind, with all results asked for as text.
std::string with_text_results(std::string_view arguments) {
    BodyReader reader(arguments);
    const std::int16_t formats = reader.int16();
    (void)reader.bytes(static_cast<std::size_t>(formats) * 2);
    for (std::int16_t left = reader.int16(); left > 0; --left) {
        if (const std::int32_t size = reader.int32(); size > 0) {
            (void)reader.bytes(static_cast<std::size_t>(size));
        }
    }
    return std::string(arguments.substr(0, arguments.size() - reader.rest().size())) +
           std::string(2, '\0');
}

std::string_view first_word(std::string_view text) {
    return text.substr(0, text.find_first_of(" \t\r\n("));
}

}  // namespace

Ending Ending::done(std::string_view tag) {
    Ending ending;
    append_message(ending.completion, 'C', BodyWriter().text(tag).body());
    return ending;
}

Executor::Executor(Cluster& cluster,
                   std::unique_ptr<Backend> backend,
                   std::string role,
                   bool early_abort)
    : cluster_(cluster),
      backend_(std::move(backend)),
      role_(std::move(role)),
      early_abort_(early_abort),
      schema_seen_(cluster.version()) {}

char Executor::status() const noexcept {
    switch (state_) {
        case State::open:
            return 'T';
        case State::failed:
            return 'E';
        case State::idle:
            break;
    }
    return 'I';
}

void Executor::begin(const Hold&, bool read_only, bool wrapped) {
    backend_->prepend({read_only ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
                                 : "BEGIN ISOLATION LEVEL REPEATABLE READ",
                       "SELECT 1",  // Takes the snapshot.
                       fmt::format("SAVEPOINT {}", own_name)});
    state_ = State::open;
    wrapped_ = wrapped;
    began_ = cluster_.clock().steady_now();
    schema_at_begin_ = cluster_.version();
}

void Executor::end() {
    state_ = State::idle;
    wrapped_ = detached_ = doomed_ = cancelled_ = yielded_ = dml_ = false;
    movable_ = true;
    ddl_ = 0;
    rows_ = bytes_ = 0;
    log_.clear();
    tables_.clear();
    changed_.clear();
    before_commit_.clear();
    after_commit_.clear();
}

void Executor::rollback(const Hold&) {
    must(backend_->run({"ROLLBACK"}));
    end();
}

void Executor::rollback_to_snapshot() {
    must(backend_->run({fmt::format("ROLLBACK TO {}", own_name)}));
    detached_ = true;
}

Executor::Way Executor::make_way() {
    Hold hold(busy_, std::defer_lock);
    if (!hold.try_lock_for(short_wait)) {
        return Way::busy;  // It is running, and ends or waits by itself.
    }
    if (idle()) {
        return Way::free;
    }
    if (!detached_) {
        if (!movable_) {
            return Way::blocked;
        }
        ++cluster_.counters.detached;
    }
    rollback_to_snapshot();  // Again, if it has read since: a lock on a table is in the way of DDL.
    return Way::free;
}

// True if there were any.
bool Executor::let_blockers_make_way() {
    const std::vector<int> pids = cluster_.blockers_of(backend_->pid());
    for (const int pid : pids) {
        const auto other = cluster_.find(pid);
        if (!other || other.get() == this) {
            continue;
        }
        const Way way = other->make_way();
        cancelled_ = cancelled_ || way == Way::blocked;
        // Two executors that wait for each other would wait for ever; each of them checks.
        yielded_ =
            yielded_ || (way == Way::busy && may_yield_ && !cluster_.blockers_of(pid).empty());
        if (cancelled_ || yielded_) {
            cluster_.cancel(backend_->pid());
            break;
        }
    }
    return !pids.empty();
}

// Called during a slow exchange: another transaction may block it.
std::function<void()> Executor::watch() {
    cancelled_ = yielded_ = false;
    // While no transaction blocks it, such as with a slow disk, it checks less and less often.
    return [this, waits = 0, next_look = 1]() mutable {
        if (++waits >= next_look) {
            next_look = waits + (let_blockers_make_way() ? 1 : std::min(waits, looks_apart_max));
        }
    };
}

Answer Executor::exchange(std::string_view bytes, const Sink& sink) {
    return backend_->exchange(bytes, sink, watch());
}

Answer Executor::converse(std::string_view bytes, const Sink& sink) {
    return backend_->converse(bytes, sink, watch());
}

// Everything for one run of `text` with the call's arguments, under a name of our own.
void Executor::append_call(std::string& bytes,
                           const Call& call,
                           std::string_view text,
                           bool describe) {
    append_close_own(bytes);
    append_message(bytes, 'P', BodyWriter().text(own_name).text(text).bytes(call.types).body());
    append_message(
        bytes, 'B', BodyWriter().text(own_name).text(own_name).bytes(call.arguments).body());
    if (describe) {
        append_message(bytes, 'D', BodyWriter().bytes("P").text(own_name).body());
    }
    append_message(bytes, 'E', BodyWriter().text(own_name).int32(0).body());
}

// The same with the end of an exchange.
std::string Executor::bytes_of(const Call& call, std::string_view text, bool describe) {
    std::string bytes;
    append_call(bytes, call, text, describe);
    append_message(bytes, 'S', {});
    return bytes;
}

std::string Executor::types_of(const Call& call) {
    std::string bytes;
    append_message(bytes, 'C', BodyWriter().bytes("S").text(own_name).body());
    append_message(bytes,
                   'P',
                   BodyWriter().text(own_name).text(call.statement->text).bytes(call.types).body());
    append_message(bytes, 'D', BodyWriter().bytes("S").text(own_name).body());
    append_message(bytes, 'S', {});
    std::string types = call.types;
    (void)exchange(bytes, [&types](const Message& message) {
        if (message.type == 't') {
            types = message.body;
        }
    });
    return types;
}

// Requires: our turn.
void Executor::replay() {
    if (!detached_ || doomed_) {
        return;
    }
    for (const Call& call : log_) {
        if (!exchange(bytes_of(call, call.statement->text, false), {}).ok()) {
            doomed_ = true;
            rollback_to_snapshot();
            return;
        }
    }
    detached_ = false;
    if (!log_.empty()) {
        ++cluster_.counters.replayed;
    }
}

std::chrono::seconds Executor::age() const {
    return std::chrono::duration_cast<std::chrono::seconds>(cluster_.clock().steady_now() - began_);
}

// Why a statement must not run now.
std::optional<ErrorResponse> Executor::objection(const CheckedStatement& statement) {
    if (failed()) {
        return in_failed_transaction();
    }
    const GatewayLimits& limits = cluster_.options().limits;
    const std::chrono::seconds age = this->age();
    if (age > limits.transaction_age) {
        return ErrorResponse{.code = "54000",
                             .message = fmt::format("transaction age limit of {}s exceeded",
                                                    limits.transaction_age.count()),
                             .detail = fmt::format("Current transaction age {}s exceeds {}s",
                                                   age.count(),
                                                   limits.transaction_age.count())};
    }
    if (cluster_.changed_since(schema_seen_, statement.tables)) {
        schema_seen_ = cluster_.version();
        return schema_conflict();
    }
    return objection_to_mixture(statement);
}

std::optional<ErrorResponse> Executor::objection_to_mixture(const CheckedStatement& statement) {
    const bool ddl = statement.kind == Kind::ddl;
    const bool dml = statement.kind == Kind::write || statement.kind == Kind::copy_in;
    if (ddl && ddl_ > 0) {
        return unsupported("multiple ddl statements not supported in a transaction");
    }
    if ((ddl && dml_) || (dml && ddl_ > 0)) {
        return unsupported("ddl and dml are not supported in the same transaction");
    }
    ddl_ += ddl ? 1 : 0;
    dml_ = dml_ || dml;
    return std::nullopt;
}

Ending Executor::refuse(const Hold&, const ErrorResponse& response) {
    if (state_ == State::open) {
        rollback_to_snapshot();
        state_ = State::failed;
    }
    return Ending::failed(response);
}

// The server's own error, passed on.
Ending Executor::failed_with(const Answer& answer) {
    Ending ending;
    append_message(ending.error, 'E', answer.error);
    if (state_ == State::open) {
        rollback_to_snapshot();
        state_ = State::failed;
    }
    return ending;
}

Executor::Settings Executor::settings(const Hold&) {
    const auto row =
        backend_
            ->query(fmt::format("SELECT current_schemas(false), lower(current_setting('{}'))"
                                " IN ('off', 'false', 'no', '0')",
                                sync_index_setting_below))
            .at(0);
    return {.search_path = row.at(0).value_or(""), .sync_create_index = row.at(1) == "t"};
}

Ending Executor::pass(const Hold& hold, std::string_view bytes, const Sink& sink) {
    if (failed()) {
        return refuse(hold, in_failed_transaction());
    }
    const Answer answer = exchange(bytes, sink);
    return answer.ok() ? Ending{.completion = answer.completion, .error = {}} : failed_with(answer);
}

Ending Executor::execute_alone(const Hold&,
                               const std::vector<TableName>& tables,
                               std::string_view bytes,
                               const Sink& sink) {
    if (cluster_.changed_since(schema_seen_, tables)) {
        schema_seen_ = cluster_.version();
        return Ending::failed(schema_conflict());
    }
    const Answer answer = exchange(bytes, sink);
    if (answer.ok()) {
        return {.completion = answer.completion, .error = {}};
    }
    const ServerError error = answer.what();
    if (error.is_conflict() || (error.code == "57014" && cancelled_)) {
        ++cluster_.counters.conflicts;
        return Ending::failed(data_conflict());
    }
    return failed_with(answer);
}

Ending Executor::execute(Hold& hold, const Call& call, std::string_view bytes, const Sink& sink) {
    const CheckedStatement& statement = *call.statement;
    if (const auto response = objection(statement)) {
        return refuse(hold, *response);
    }
    if (const auto response = objection_to_size(call)) {
        return refuse(hold, *response);
    }
    if (auto work = work_of(statement)) {
        return administer(hold, statement, std::move(*work));
    }
    tables_.insert(tables_.end(), statement.tables.begin(), statement.tables.end());
    if (statement.kind == Kind::deallocate) {
        touches_.clear();  // They are gone with the client's.
    }
    const bool needs_replay = detached_ && !doomed_ && !log_.empty();
    if (doomed_ && depends_on_own_writes(statement)) {
        return told_early();
    }
    if (only_reads(statement.kind) && !needs_replay) {
        const Answer answer = exchange(bytes, sink);
        return answer.ok() ? Ending{.completion = answer.completion, .error = {}}
                           : failed_with(answer);
    }
    const Turn turn(*this, hold);
    replay();
    if (doomed_ && depends_on_own_writes(statement)) {
        return told_early();
    }
    return run_in_turn(call, bytes, sink);
}

// A doomed transaction's writes are undone. A statement that depends on them reports the conflict
// before the commit.
bool Executor::depends_on_own_writes(const CheckedStatement& statement) const {
    return std::any_of(log_.begin(), log_.end(), [&](const Call& call) {
        const auto& target = call.statement->target;
        return call.statement->kind == Kind::write && target &&
               std::find(statement.tables.begin(), statement.tables.end(), *target) !=
                   statement.tables.end();
    });
}

Ending Executor::told_early() {
    state_ = State::failed;
    ++cluster_.counters.conflicts;
    return Ending::failed(data_conflict());
}

Ending Executor::run_in_turn(const Call& call, std::string_view bytes, const Sink& sink) {
    const CheckedStatement& statement = *call.statement;
    const bool ripples = cluster_.ripples(statement);
    const std::int64_t before = ripples ? rows_changed_so_far() : 0;
    const Answer answer = exchange(bytes, sink);
    if (!answer.ok()) {
        return refused(call, answer, sink);
    }
    if (only_reads(statement.kind)) {
        return {.completion = answer.completion, .error = {}};
    }
    const bool counts = statement.kind == Kind::write;
    const std::int64_t rows = ripples ? rows_changed_so_far() - before : answer.rows();
    const Ending ending = completed(call, answer, counts ? rows : 0);
    return ending.ok() && statement.async ? order_job(call, sink, {}) : ending;
}

Ending Executor::completed(const Call& call, const Answer& answer, std::int64_t rows) {
    const CheckedStatement& statement = *call.statement;
    rows_ += rows;
    if (rows_ > cluster_.options().limits.rows) {
        rollback_to_snapshot();
        state_ = State::failed;
        return Ending::failed({.code = "54000", .message = "transaction row limit exceeded"});
    }
    if (statement.kind == Kind::write || statement.kind == Kind::copy_in) {
        bytes_ += call.size();
    }
    if (statement.kind == Kind::ddl) {
        changed_.insert(changed_.end(), statement.tables.begin(), statement.tables.end());
    }
    if (doomed_) {
        rollback_to_snapshot();  // Its locks would only block others.
    } else {
        const bool differs =
            statement.calls_volatile || statement.kind == Kind::copy_in ||
            statement.kind == Kind::call ||
            (statement.target && statement.kind == Kind::write &&
             cluster_.traits(*statement.target).value_or(TableTraits{}).volatile_defaults);
        movable_ = movable_ && !differs;
        log_.push_back(call);
    }
    return {.completion = answer.completion, .error = {}};
}

std::int64_t Executor::rows_changed_so_far() {
    const auto rows = backend_->query(
        "SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_xact_user_tables");
    return std::stoll(rows.at(0).at(0).value_or("0"));
}

// Handles an error of the server below: a conflict, or an error of the statement itself.
Ending Executor::refused(const Call& call, const Answer& answer, const Sink& sink) {
    const CheckedStatement& statement = *call.statement;
    if (statement.async && answer.what().code == "23505" && !statement.index_name.empty()) {
        return leave_invalid_index(call, sink);
    }
    if (conflicts(answer.what())) {
        return doomed(call, sink);
    }
    return failed_with(answer);
}

bool Executor::conflicts(const ServerError& error) {
    if (error.is_conflict() || (error.code == "57014" && cancelled_)) {
        return true;
    }
    // An existing key, or a missing parent: already in the snapshot, or by a later commit?
    const bool duplicate = error.code == "23505";
    const bool orphan = error.code == "23503" &&
                        error.detail.find(") is not present in table \"") != std::string_view::npos;
    if (!duplicate && !orphan) {
        return false;
    }
    rollback_to_snapshot();
    replay();
    if (doomed_) {
        return true;
    }
    return orphan ? parent_is_visible(error) : !row_is_visible(error);
}

// The values in "Key (a, b)=(1, x) already exists.", as one text; empty if they are missing.
std::optional<std::string_view> Executor::key_values(const ServerError& error) {
    constexpr std::string_view middle = ")=(";
    const std::size_t between = error.detail.find(middle);
    const std::size_t end = std::max(error.detail.rfind(") already exists") + 1,
                                     error.detail.rfind(") is not present in table") + 1);
    if (between == std::string_view::npos || end <= between + middle.size()) {
        return std::nullopt;
    }
    const std::size_t from = between + middle.size();
    return error.detail.substr(from, end - 1 - from);
}

// In the snapshot, with the transaction's own writes.
bool Executor::row_is_visible(const ServerError& error) {
    constexpr std::string_view opening = "Key (";
    const auto values = key_values(error);
    if (!values || !error.detail.starts_with(opening)) {
        return true;  // Unknown: trust the server.
    }
    const std::string_view columns =
        error.detail.substr(opening.size(), error.detail.find(")=(") - opening.size());
    return has_row(fmt::format("{}.{}", quoted_name(error.schema), quoted_name(error.table)),
                   columns,
                   *values);
}

bool Executor::parent_is_visible(const ServerError& error) {
    const auto values = key_values(error);
    const auto parent = backend_->query(fmt::format(
        "SELECT c.confrelid::regclass, string_agg(quote_ident(a.attname), ', ' ORDER BY k.at)"
        " FROM pg_constraint c CROSS JOIN LATERAL unnest(c.confkey) WITH ORDINALITY AS k(num, at)"
        " JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.num"
        " WHERE c.conname = {} AND c.conrelid = to_regclass({}) GROUP BY 1",
        quoted_text(error.constraint),
        quoted_text(fmt::format("{}.{}", quoted_name(error.schema), quoted_name(error.table)))));
    if (!values || parent.empty()) {
        return false;  // Unknown: trust the server.
    }
    return has_row(parent.at(0).at(0).value_or(""), parent.at(0).at(1).value_or(""), *values);
}

bool Executor::has_row(std::string_view table, std::string_view columns, std::string_view values) {
    return !backend_
                ->query(fmt::format("SELECT 1 FROM {} WHERE concat_ws(', ', {}) = {} LIMIT 1",
                                    table,
                                    columns,
                                    quoted_text(values)))
                .empty();
}

// Requires: the statement has failed because of a conflict.
Ending Executor::doomed(const Call& call, const Sink& sink) {
    rollback_to_snapshot();
    doomed_ = true;
    const bool must_tell = early_abort_ || depends_on_own_writes(*call.statement);
    const Ending ending = must_tell ? Ending{} : answer_as_run(call, sink);
    return ending.completion.empty() ? told_early() : ending;
}

// As in the service: the statement succeeds, the commit will fail. Empty if the answer is not
// known.
Ending Executor::answer_as_run(const Call& call, const Sink& sink) {
    const CheckedStatement& statement = *call.statement;
    if (statement.kind == Kind::write && statement.rows_of_values && !statement.returning &&
        !statement.on_conflict) {
        return Ending::done(fmt::format("INSERT 0 {}", *statement.rows_of_values));
    }
    if (statement.rewrite.empty()) {
        return {};
    }
    Call rewrite = call;
    rewrite.types = types_of(call);
    if (statement.kind == Kind::lock) {
        const Answer answer = exchange(bytes_of(rewrite, statement.rewrite, call.simple),
                                       [&](const Message& message) {
                                           if (message.type == 'D' || message.type == 'T') {
                                               sink(message);
                                           }
                                       });
        return {.completion = answer.ok() ? answer.completion : std::string{}, .error = {}};
    }
    rewrite.arguments = with_text_results(call.arguments);
    std::string count;
    const Answer answer =
        exchange(bytes_of(rewrite, statement.rewrite, false), [&count](const Message& message) {
            if (message.type == 'D') {
                BodyReader body(message.body);
                (void)body.int16();
                count = body.bytes(static_cast<std::size_t>(body.int32()));
            }
        });
    if (!answer.ok() || count.empty()) {
        return {};
    }
    std::string verb(first_word(statement.text));
    std::transform(verb.begin(), verb.end(), verb.begin(), ::toupper);
    return Ending::done(fmt::format("{} {}", verb, count));
}

Ending Executor::copy_in(Hold& hold, const Call& call, const std::string& data) {
    if (const auto response = objection(*call.statement)) {
        return refuse(hold, *response);
    }
    tables_.insert(tables_.end(), call.statement->tables.begin(), call.statement->tables.end());
    const Turn turn(*this, hold);
    replay();
    // The server waits for data after its first answer, so they may come right behind the query.
    std::string bytes;
    append_message(bytes, 'Q', BodyWriter().text(call.statement->text).body());
    const Answer answer = exchange(bytes + data, {});
    if (!answer.ok()) {
        return refused(call, answer, {});
    }
    bytes_ += static_cast<std::int64_t>(data.size());
    return completed(call, answer, answer.rows());
}

}  // namespace holdfast::dsql
