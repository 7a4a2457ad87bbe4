#include "gateway/wire/wire_session.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::dsql {

namespace {

constexpr std::size_t portion = std::size_t{64} << 10U;
constexpr std::size_t steps_max = 1000;

}  // namespace

WireSession::WireSession(Cluster& cluster,
                         Channel& channel,
                         MessageStream& stream,
                         std::shared_ptr<Executor> executor,
                         bool has_settings)
    : cluster_(cluster),
      channel_(channel),
      stream_(stream),
      executor_(std::move(executor)),
      opened_(cluster.clock().steady_now()),
      has_settings_(has_settings) {}

bool WireSession::too_old() const {
    return executor_->idle() &&
           cluster_.clock().steady_now() - opened_ > cluster_.options().limits.connection_age;
}

void WireSession::flush() {
    if (!out_.empty() && !channel_.write(out_)) {
        throw HangUp{};
    }
    out_.clear();
}

// Empty when the client has left. No hold meanwhile, so others may move the transaction aside.
std::optional<Message> WireSession::next() {
    while (true) {
        if (auto message = stream_.next()) {
            return message;
        }
        flush();
        std::array<char, portion> bytes;  // NOLINT(*-member-init): filled by the read.
        const std::size_t size = channel_.read(bytes);
        if (size == 0) {
            return std::nullopt;
        }
        stream_.append({bytes.data(), size});
    }
}

void WireSession::put(std::string_view bytes) {
    out_ += held_;
    held_.clear();
    out_ += bytes;
    // Within a transaction a slow reader must not keep others waiting.
    if (out_.size() > portion && executor_->idle()) {
        flush();
    }
}

void WireSession::put(const Ending& ending) {
    put(ending.error);
    held_ = ending.completion;
}

void WireSession::ready() {
    const char status = executor_->status();
    std::string bytes;
    append_message(bytes, 'Z', {&status, 1});
    put(bytes);
}

Executor::Sink WireSession::sink() {
    return [this](const Message& message) { put(message.bytes); };
}

std::shared_ptr<const Script> WireSession::checked(const Hold& hold, std::string_view text) {
    if (!settings_) {
        settings_ = has_settings_ ? executor_->settings(hold) : Executor::Settings{};
    }
    return cluster_.checked(text,
                            {.documented_for_update = cluster_.options().documented_for_update,
                             .sync_create_index = settings_->sync_create_index},
                            settings_->search_path);
}

void WireSession::ran(const CheckedStatement& statement) {
    if (statement.sets_rules) {
        has_settings_ = true;
        settings_.reset();
    }
}

void WireSession::run() {
    while (!too_old()) {
        const auto message = next();
        if (!message || message->type == 'X') {
            return;
        }
        switch (message->type) {
            case 'Q':
                if (!steps_.empty()) {
                    process(false);  // Earlier steps are answered first.
                }
                if (!skipping_) {
                    query(BodyReader(message->body).text());
                }
                break;
            case 'P':
            case 'B':
            case 'D':
            case 'E':
            case 'C':
                steps_.push_back({message->type, std::string(message->body)});
                if (steps_.size() >= steps_max) {
                    process(false);
                }
                break;
            case 'S':
            case 'H':
                process(message->type == 'S');
                break;
            case 'd':
            case 'c':
            case 'f':
                break;  // What is left of a COPY that has failed.
            case 'F':
                put(Ending::failed(unsupported("unsupported statement: FunctionCall")));
                ready();
                break;
            default:
                put(ErrorResponse{.code = "08P01",
                                  .message = fmt::format("invalid frontend message type {}",
                                                         static_cast<int>(message->type)),
                                  .fatal = true}
                        .bytes());
                flush();
                return;
        }
    }
    flush();
}

// Whether a statement outside of a transaction needs no transaction of the gateway: it cannot
// exceed the row limit, nothing is checked at commit, nothing has to be undone.
bool WireSession::can_run_alone(const CheckedStatement& statement) {
    if (statement.refusal || !statement.role.empty() || cluster_.has_faults()) {
        return false;
    }
    switch (statement.kind) {
        case Kind::read:
        case Kind::show:
        case Kind::set:
        case Kind::copy_out:
        case Kind::empty:
        case Kind::unparsed:
        case Kind::analyze:
            return true;
        case Kind::write:
            break;
        default:
            return false;
    }
    const auto rows = cluster_.rows_at_most(statement);
    return rows && *rows <= cluster_.options().limits.rows;
}

// BEGIN, COMMIT, ROLLBACK.
Ending WireSession::control(Hold& hold, const CheckedStatement& statement) {
    switch (statement.kind) {
        case Kind::begin:
            if (executor_->failed()) {
                return Ending::failed(in_failed_transaction());
            }
            if (executor_->idle()) {
                executor_->begin(hold, statement.read_only, false);
            } else {
                executor_->unwrap();
            }
            return Ending::done("BEGIN");
        case Kind::commit:
            return executor_->idle() ? Ending::done("COMMIT") : commit(hold);
        default:
            if (!executor_->idle()) {
                executor_->rollback(hold);
            }
            return Ending::done("ROLLBACK");
    }
}

Ending WireSession::commit(Hold& hold) {
    const bool counts = executor_->has_written() && !executor_->failed();
    const auto fault = counts ? cluster_.fault_at(FaultPoint::commit) : std::nullopt;
    if (!fault) {
        return executor_->commit(hold);
    }
    if (*fault == GatewayFault::unavailable_after || *fault == GatewayFault::hang_up_after) {
        Ending ending = executor_->commit(hold);
        if (!ending.ok()) {
            return ending;
        }
    } else {
        executor_->rollback(hold);
    }
    switch (*fault) {
        case GatewayFault::data_conflict:
            return Ending::failed(data_conflict());
        case GatewayFault::schema_conflict:
            return Ending::failed(schema_conflict());
        case GatewayFault::unavailable:
        case GatewayFault::unavailable_after:
            return Ending::failed(server_unavailable());
        default:
            throw HangUp{};
    }
}

// A statement that is not transaction control, within a transaction.
Ending WireSession::run_statement(Hold& hold, const Call& call, std::string_view bytes) {
    const CheckedStatement& statement = *call.statement;
    if (statement.refusal && !executor_->failed()) {
        return executor_->refuse(
            hold,
            {.code = std::string(statement.refusal->code), .message = statement.refusal->message});
    }
    const auto fault = cluster_.fault_at(FaultPoint::statement);
    if (fault) {
        switch (*fault) {
            case GatewayFault::data_conflict:
                return executor_->refuse(hold, data_conflict());
            case GatewayFault::schema_conflict:
                return executor_->refuse(hold, schema_conflict());
            case GatewayFault::unavailable:
                return executor_->refuse(hold, server_unavailable());
            default:
                throw HangUp{};
        }
    }
    const Ending ending = executor_->execute(hold, call, bytes, sink());
    ran(statement);
    return ending.ok() && statement.kind == Kind::show ? Ending::done("SHOW") : ending;
}

// ---- Simple protocol
// -----------------------------------------------------------------------------

void WireSession::query(std::string_view text) {
    Hold hold = executor_->hold();
    settings_.reset();  // They may have been made within a transaction that has ended.
    const auto script = checked(hold, text);
    const bool single = script->size() == 1;
    if (single && executor_->idle() && can_run_alone(script->front())) {
        run_alone(hold, script->front());
    } else {
        const bool ok = run_script(hold, script);
        if (executor_->wrapped()) {
            if (ok) {
                const Ending ending = commit(hold);
                if (!ending.ok()) {
                    held_.clear();
                    put(ending.error);
                }
            } else {
                executor_->rollback(hold);
            }
        }
    }
    executor_->settle(hold);
    ready();
}

void WireSession::run_alone(const Hold& hold, const CheckedStatement& statement) {
    std::string bytes;
    append_message(bytes, 'Q', BodyWriter().text(statement.text).body());
    const Ending ending = executor_->execute_alone(hold, statement.tables, bytes, sink());
    ran(statement);
    put(ending.ok() && statement.kind == Kind::show ? Ending::done("SHOW") : ending);
}

// False if one of them failed; the rest is then left out.
bool WireSession::run_script(Hold& hold, const std::shared_ptr<const Script>& script) {
    for (const CheckedStatement& statement : *script) {
        const bool transaction_begins =
            executor_->idle() && !is_control(statement.kind) && !statement.refusal;
        if (transaction_begins) {
            executor_->begin(hold, false, true);
        }
        const Call call{.script = script, .statement = &statement};
        Ending ending;
        if (is_control(statement.kind) && !statement.refusal) {
            ending = control(hold, statement);
        } else if (statement.kind == Kind::copy_in && !statement.refusal && !executor_->failed()) {
            ending = copy_in(hold, call);
        } else {
            std::string bytes;
            append_message(bytes, 'Q', BodyWriter().text(statement.text).body());
            ending = run_statement(hold, call, bytes);
        }
        put(ending);
        if (!ending.ok()) {
            return false;
        }
    }
    return true;
}

Ending WireSession::copy_in(Hold& hold, const Call& call) {
    const std::string data = collect_copy(hold, *call.statement);
    hold.lock();
    if (data.empty()) {
        return executor_->refuse(hold, {.code = "57014", .message = "COPY from stdin failed"});
    }
    if (data.size() > copy_bytes_max()) {
        return executor_->refuse(hold,
                                 transaction_too_large(static_cast<std::int64_t>(data.size()),
                                                       cluster_.options().limits.bytes));
    }
    return executor_->copy_in(hold, call, data);
}

// More than any transaction may have, so the rest is not needed.
std::size_t WireSession::copy_bytes_max() const {
    return 2 * static_cast<std::size_t>(cluster_.options().limits.bytes);
}

// All messages of the client's data, up to and with its CopyDone. Empty if the client has given up.
// The hold is given up meanwhile: a client that stalls must not stop others.
std::string WireSession::collect_copy(Hold& hold, const CheckedStatement& statement) {
    const auto traits =
        statement.target ? cluster_.traits(*statement.target) : std::optional<TableTraits>{};
    const auto columns =
        static_cast<std::int16_t>(statement.copy_columns > 0 ? statement.copy_columns
                                  : traits                   ? traits->facts.columns.size()
                                                             : 1);
    const std::int16_t format = statement.binary_copy ? 1 : 0;
    const auto overall = static_cast<char>(format);
    BodyWriter response;
    response.bytes({&overall, 1}).int16(columns);
    for (std::int16_t i = 0; i < columns; ++i) {
        response.int16(format);
    }
    std::string bytes;
    append_message(bytes, 'G', response.body());
    put(bytes);
    hold.unlock();
    std::string data;
    while (const auto message = next()) {
        switch (message->type) {
            case 'd':
                // One message is kept beyond the bound, so that the limit is seen to be exceeded.
                data += data.size() > copy_bytes_max() ? std::string_view{} : message->bytes;
                break;
            case 'c':
                return data += message->bytes;
            case 'f':
                return {};
            default:
                break;  // Flush and Sync mean nothing here.
        }
    }
    throw HangUp{};
}

}  // namespace holdfast::dsql
