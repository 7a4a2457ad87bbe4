#include "postgres/session.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include <holdfast/base/assert.hpp>

namespace holdfast::sql::postgres {
namespace {

// How long a server may take to confirm that it has stopped. Then the connection is given up.
constexpr std::chrono::milliseconds grace{500};
constexpr std::chrono::seconds rollback_patience{2};

std::string step_name(const Rendered* statement) {
    return statement == nullptr ? "the transaction"
                                : fmt::format("statement '{}'", statement->name);
}

}  // namespace

PgSession::PgSession(Connection& connection,
                     const Dialect& dialect,
                     const AttemptOptions& options,
                     Mode mode,
                     Canceller& canceller,
                     Counters& counters)
    : connection_(connection),
      raw_(connection.raw()),
      dialect_(dialect),
      options_(options),
      mode_(mode),
      canceller_(canceller),
      counters_(counters),
      patience_(options.deadline) {
    libpq().PQenterPipelineMode(raw_);
    if (options.stop.stop_possible()) {
        connection.stop_signal().reset();
        on_stop_.emplace(options.stop, [&connection] { connection.stop_signal().raise(); });
    }
}

PgSession::~PgSession() {
    if (!on_stop_) {
        return;
    }
    on_stop_.reset();  // Waits for a callback that is running, so that the signal stays low.
    connection_.stop_signal().reset();
}

bool PgSession::reusable() const noexcept {
    // A cancel request may still be on its way, and would hit the next user of the connection.
    return !broken_ && interrupted_ == Wait::ready && libpq().PQstatus(raw_) == CONNECTION_OK &&
           libpq().PQtransactionStatus(raw_) == PQTRANS_IDLE && steps_.empty();
}

bool PgSession::in_block() const {
    return mode_ == Mode::transaction || options_.durability == Durability::relaxed ||
           !connection_.transaction_settings().empty();
}

void PgSession::begin_if_needed() {
    if (begun_) {
        return;
    }
    begun_ = true;
    if (!in_block()) {
        return;
    }
    queue_control(options_.read_only ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN",
                  StepKind::control);
    if (!connection_.transaction_settings().empty()) {
        queue_control(connection_.transaction_settings().c_str(), StepKind::control);
    }
    if (options_.durability == Durability::relaxed && dialect_.relaxed_commits) {
        queue_control("SET LOCAL synchronous_commit TO off", StepKind::control);
    }
}

void PgSession::queue_control(const char* text, StepKind kind) {
    if (libpq().PQsendQueryParams(raw_, text, 0, nullptr, nullptr, nullptr, nullptr, 0) == 0) {
        lost("queueing a command");
    }
    steps_.push_back(Step{.kind = kind});
}

std::size_t PgSession::send(const Call& call, bool keep_reply) {
    throw_failure();
    begin_if_needed();
    const std::size_t ticket = ++tickets_;
    if (call.statement->once || !connection_.keeps_session()) {
        queue_once(call, ticket, keep_reply);
    } else {
        queue_prepared(call, ticket, keep_reply);
    }
    return ticket;
}

void PgSession::queue_once(const Call& call, std::size_t ticket, bool keep) {
    const std::vector<Oid> types = types_of(call.args);
    Bound& bound = connection_.bound();
    bound.bind(call.args, *call.statement);
    if (libpq().PQsendQueryParams(raw_,
                                  call.statement->text.c_str(),
                                  bound.count(),
                                  types.data(),
                                  bound.values(),
                                  bound.lengths(),
                                  bound.formats(),
                                  1) == 0) {
        lost("queueing a query");
    }
    counters_.statements.fetch_add(1, std::memory_order_relaxed);
    steps_.push_back(Step{
        .kind = StepKind::statement, .statement = call.statement, .ticket = ticket, .keep = keep});
}

void PgSession::queue_prepared(const Call& call, std::size_t ticket, bool keep) {
    Connection::Prepared& prepared = connection_.prepared(call.statement, call.args);
    Bound& bound = connection_.bound();
    bound.bind(call.args, *call.statement);
    const bool queued = std::any_of(steps_.begin(), steps_.end(), [&](const Step& step) {
        return step.kind == StepKind::prepare && step.prepared == &prepared;
    });
    const bool was_ready = prepared.ready;
    if (!prepared.ready && !queued) {
        if (libpq().PQsendPrepare(raw_,
                                  prepared.name.c_str(),
                                  call.statement->text.c_str(),
                                  bound.count(),
                                  prepared.types.data()) == 0) {
            lost("preparing a statement");
        }
        steps_.push_back(
            Step{.kind = StepKind::prepare, .statement = call.statement, .prepared = &prepared});
    }
    if (libpq().PQsendQueryPrepared(raw_,
                                    prepared.name.c_str(),
                                    bound.count(),
                                    bound.values(),
                                    bound.lengths(),
                                    bound.formats(),
                                    1) == 0) {
        lost("queueing a statement");
    }
    counters_.statements.fetch_add(1, std::memory_order_relaxed);
    steps_.push_back(Step{.kind = StepKind::statement,
                          .statement = call.statement,
                          .prepared = &prepared,
                          .was_ready = was_ready,
                          .ticket = ticket,
                          .keep = keep});
}

Result PgSession::take(std::size_t ticket) {
    const auto find = [&] {
        return std::find_if(replies_.begin(), replies_.end(), [&](const auto& reply) {
            return reply.first == ticket;
        });
    };
    if (find() == replies_.end()) {
        flush();
    }
    const auto reply = find();
    HOLDFAST_ASSERT(reply != replies_.end());
    Result result = std::move(reply->second);
    replies_.erase(reply);
    return result;
}

void PgSession::run_script(const std::string& text) {
    throw_failure();
    begin_if_needed();
    queue_control(text.c_str(), StepKind::control);
    flush();
}

void PgSession::notify(std::string_view channel, std::string_view payload) {
    if (!dialect_.notifies) {
        return;
    }
    static const Rendered statement{
        .name = "sql.notify", .text = "SELECT pg_notify($1, $2)", .arguments = 2};
    const std::array<Param, 2> args{Param(channel), Param(payload)};
    (void)send(Call{&statement, args}, false);
}

void PgSession::commit() {
    throw_failure();
    refuse_if_over();
    if (!begun_) {
        ended_ = true;
        return;  // Nothing was asked, so nothing is to be ended.
    }
    if (in_block()) {
        queue_control("COMMIT", StepKind::commit);
    }
    commit_sent_ = true;
    exchange();
    ended_ = true;
    counters_.commits.fetch_add(1, std::memory_order_relaxed);
    for (const std::size_t ticket : checked_) {
        const std::int64_t changed = take(ticket).changed;
        HOLDFAST_ASSERT(changed <= 1);
        if (changed == 0) {
            throw FenceMissed{ticket};
        }
    }
}

void PgSession::rollback() noexcept {
    if (ended_ || !begun_ || broken_ || interrupted_ != Wait::ready) {
        return;
    }
    ended_ = true;
    if (steps_.empty() && libpq().PQtransactionStatus(raw_) == PQTRANS_IDLE) {
        return;  // The server has rolled back: a refused commit, or a statement by itself.
    }
    // What is still queued would be sent first. Without a block around it the flush that is to undo
    // it would commit it; and after the deadline it is not waited for.
    if (!steps_.empty() && (mode_ == Mode::autocommit || over())) {
        broken_ = true;
        return;
    }
    // The stop token has taken effect. What follows makes the connection usable again.
    on_stop_.reset();
    connection_.stop_signal().reset();
    try {
        patience_ = Deadline::after(rollback_patience);
        commit_sent_ = false;
        // If the server refuses any of what is queued, it also skips the ROLLBACK behind it, which
        // is then sent once more.
        for (int tries = 0; tries < 2 && !broken_; ++tries) {
            failure_.reset();
            stale_ = false;
            queue_control("ROLLBACK", StepKind::control);
            try {
                flush();
                return;
            } catch (const DatabaseError&) {
                continue;  // Its ROLLBACK was skipped.
            }
        }
    } catch (...) {
        broken_ = true;
    }
}

void PgSession::flush() {
    throw_failure();
    if (!ended_) {
        refuse_if_over();
    }
    exchange();
}

bool PgSession::over() const {
    return options_.stop.stop_requested() || options_.deadline.passed();
}

// After the deadline nothing more is sent; above all, no commit.
void PgSession::refuse_if_over() const {
    if (!over()) {
        return;
    }
    const bool stopped = options_.stop.stop_requested();
    throw DatabaseError(stopped ? ErrorClass::cancelled : ErrorClass::deadline,
                        SqlState{"57014"},
                        Outcome::not_applied,
                        fmt::format("the transaction was {} before it was committed",
                                    stopped ? "cancelled" : "overtaken by its deadline"));
}

void PgSession::exchange() {
    if (steps_.empty()) {
        return;
    }
    if (libpq().PQpipelineSync(raw_) == 0) {
        lost("sending");
    }
    counters_.round_trips.fetch_add(1, std::memory_order_relaxed);
    write_out();
    read_answers();
    throw_failure();
}

void PgSession::write_out() {
    for (;;) {
        const int left = libpq().PQflush(raw_);
        if (left == 0) {
            return;
        }
        if (left < 0) {
            lost("sending");
        }
        // Both directions: a server that is busy answering does not read.
        const Wait wait =
            wait_for_socket(libpq().PQsocket(raw_), true, patience_, connection_.stop_signal());
        if (wait != Wait::ready) {
            interrupt(wait);
        } else if (libpq().PQconsumeInput(raw_) == 0) {
            lost("sending");
        }
    }
}

void PgSession::read_answers() {
    const std::vector<Step> steps = std::exchange(steps_, {});
    for (const Step& step : steps) {
        read_answer(step);
    }
    ResultPtr end = next_result();
    // A single statement commits at the Sync, so that is where a deferred check or a conflict
    // shows.
    if (end != nullptr && libpq().PQresultStatus(end.get()) == PGRES_FATAL_ERROR &&
        libpq().PQresultErrorField(end.get(), PG_DIAG_SQLSTATE) != nullptr) {
        reject(Step{.kind = StepKind::commit}, end.get());
        end = next_result();  // The null that ends the error's answer.
        if (end == nullptr) {
            end = next_result();
        }
    }
    if (end == nullptr || libpq().PQresultStatus(end.get()) != PGRES_PIPELINE_SYNC) {
        lost("waiting for the end of the answers");
    }
}

void PgSession::read_answer(const Step& step) {
    const ResultPtr result = next_result();
    if (result == nullptr) {
        lost("waiting for an answer");
    }
    switch (libpq().PQresultStatus(result.get())) {
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK:
            accept(step, result.get());
            break;
        case PGRES_PIPELINE_ABORTED:
            break;  // The first error is the cause of the others.
        case PGRES_FATAL_ERROR:
            if (libpq().PQresultErrorField(result.get(), PG_DIAG_SQLSTATE) == nullptr) {
                lost("waiting for an answer");  // libpq's own words, not the server's.
            }
            reject(step, result.get());
            break;
        default:
            lost("reading an unexpected answer");
    }
    // A command's answer ends with a null.
    if (const ResultPtr end = next_result(); end != nullptr) {
        lost("reading the end of an answer");
    }
}

void PgSession::accept(const Step& step, PGresult* result) {
    answered_ = true;
    if (step.kind == StepKind::prepare) {
        step.prepared->ready = true;
    }
    if (step.keep) {
        replies_.emplace_back(step.ticket, Result{decode_rows(result), rows_changed(result)});
    }
    if (step.kind == StepKind::commit && std::strcmp(libpq().PQcmdStatus(result), "COMMIT") != 0) {
        // A COMMIT of a transaction that had failed is answered by ROLLBACK, without an error.
        failure_.emplace(SqlState{"25P02"},
                         Outcome::not_applied,
                         "the transaction had failed and was rolled back instead of committed");
    }
}

void PgSession::reject(const Step& step, const PGresult* result) {
    const bool at_commit =
        step.kind == StepKind::commit || (mode_ == Mode::autocommit && commit_sent_);
    DatabaseError error = server_error(result, dialect_, step_name(step.statement), at_commit);
    if (interrupted_ != Wait::ready && error.state() == SqlState{"57014"}) {
        const bool stopped = interrupted_ == Wait::stopped;
        error = DatabaseError(stopped ? ErrorClass::cancelled : ErrorClass::deadline,
                              error.state(),
                              Outcome::not_applied,
                              fmt::format("{} was {}",
                                          step_name(step.statement),
                                          stopped ? "cancelled" : "overtaken by its deadline"));
    }
    if (options_.read_only && error.state() == SqlState{"25006"}) {
        // As asked for: a function wrote, or a script, and the connection is as good as before.
        error = DatabaseError(ErrorClass::permanent,
                              error.state(),
                              Outcome::not_applied,
                              fmt::format("{} wrote, but its transaction is read only; drop "
                                          "read_only (SQLSTATE 25006)",
                                          step_name(step.statement)));
    }
    if (error.error_class() == ErrorClass::connection_lost) {
        broken_ = true;
    }
    if (!failure_) {
        // Missing, or there without our knowledge: another backend than the one we prepared for.
        // The server's refusal says that nothing was run, so a repeat is safe even where the
        // COMMIT was queued behind it.
        other_backend_ = (step.kind == StepKind::prepare && error.state() == SqlState{"42P05"}) ||
                         (step.prepared != nullptr && error.state() == SqlState{"26000"});
        stale_ = other_backend_ || (error.state() == SqlState{"0A000"} && step.was_ready);
        failure_ = std::move(error);
    }
}

ResultPtr PgSession::next_result() {
    while (libpq().PQisBusy(raw_) != 0) {
        wait_readable();
    }
    return ResultPtr(libpq().PQgetResult(raw_));
}

void PgSession::wait_readable() {
    const Wait wait =
        wait_for_socket(libpq().PQsocket(raw_), false, patience_, connection_.stop_signal());
    if (wait != Wait::ready) {
        interrupt(wait);
    } else if (libpq().PQconsumeInput(raw_) == 0 && libpq().PQisBusy(raw_) != 0) {
        lost("waiting for an answer");
    }
}

void PgSession::interrupt(Wait why) {
    const bool stopped = (interrupted_ == Wait::ready ? why : interrupted_) == Wait::stopped;
    if (interrupted_ == Wait::ready) {
        interrupted_ = why;
        on_stop_.reset();
        connection_.stop_signal().reset();
        patience_ = Deadline::after(grace);
        if (dialect_.cancels) {
            canceller_.cancel(raw_);
            return;
        }
        // Nothing stops that server's work but hanging up. Only a commit is worth the wait: its
        // answer says what became of it.
        if (commit_sent_) {
            return;
        }
    }
    broken_ = true;
    throw DatabaseError(
        stopped ? ErrorClass::cancelled : ErrorClass::deadline,
        SqlState{"57014"},
        commit_sent_ && !failure_ ? Outcome::unknown : Outcome::not_applied,
        fmt::format("the transaction was {} and the server did not answer in time to say more",
                    stopped ? "cancelled" : "overtaken by its deadline"));
}

void PgSession::lost(std::string_view doing) {
    broken_ = true;
    if (failure_) {
        throw_failure();
    }
    const std::string_view said = libpq().PQerrorMessage(raw_);
    ConnectionLost error(commit_sent_ ? Outcome::unknown : Outcome::not_applied,
                         fmt::format("the connection to the server was lost while {} ({})",
                                     doing,
                                     said.substr(0, said.find('\n'))));
    if (!answered_ && !commit_sent_) {
        throw DeadOnArrival{std::move(error)};
    }
    throw error;
}

void PgSession::throw_failure() {
    if (!failure_) {
        return;
    }
    if (stale_) {
        throw StaleStatement{*failure_, other_backend_};
    }
    if (broken_ && !answered_ && !commit_sent_) {
        throw DeadOnArrival{*failure_};
    }
    throw DatabaseError(*failure_);
}

}  // namespace holdfast::sql::postgres
