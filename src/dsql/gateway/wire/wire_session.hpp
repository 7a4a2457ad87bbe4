// The protocol between a client and the gateway after the login.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/cluster.hpp"
#include "gateway/executor.hpp"
#include "gateway/wire/channel.hpp"

#include <holdfast/dsql/wire.hpp>

namespace holdfast::dsql {

// The connection ends at once, by a fault rule.
struct HangUp {};

// What the gateway does itself: BEGIN, COMMIT, ROLLBACK.
[[nodiscard]] constexpr bool is_control(Kind kind) noexcept {
    return kind == Kind::begin || kind == Kind::commit || kind == Kind::rollback;
}

class WireSession {
public:
    WireSession(Cluster& cluster,
                Channel& channel,
                MessageStream& stream,
                std::shared_ptr<Executor> executor,
                bool has_settings);

    // Until the client leaves, or the connection is too old.
    void run();

private:
    // A statement the client has prepared, or bound to arguments.
    struct Prepared {
        std::shared_ptr<const Script> script;
        std::string types;

        [[nodiscard]] const CheckedStatement* single() const {
            return script->size() == 1 ? &script->front() : nullptr;
        }
    };
    struct Portal {
        Prepared statement;
        std::string arguments;
    };
    struct Step {
        char type;
        std::string body;
    };
    // Steps that wait to be sent together.
    struct Waiting {
        std::size_t step = 0;  // Its place among the steps.
        // Its change of the prepared statements must be undone if the step is not reached.
        std::optional<std::string> name{};
        std::optional<Prepared> before{};
    };
    using Hold = Executor::Hold;

    [[nodiscard]] std::optional<Message> next();
    [[nodiscard]] bool too_old() const;
    void put(std::string_view bytes);
    void put(const Ending& ending);
    void ready();
    void flush();

    // Simple protocol.
    void query(std::string_view text);
    [[nodiscard]] bool run_script(Hold& hold, const std::shared_ptr<const Script>& script);
    void run_alone(const Hold& hold, const CheckedStatement& statement);
    [[nodiscard]] Ending run_statement(Hold& hold, const Call& call, std::string_view bytes);
    [[nodiscard]] std::string collect_copy(Hold& hold, const CheckedStatement& statement);
    [[nodiscard]] std::size_t copy_bytes_max() const;
    [[nodiscard]] Ending copy_in(Hold& hold, const Call& call);

    // Extended protocol.
    void process(bool synced);
    [[nodiscard]] bool may_run_alone(const Hold& hold);
    void run_alone(const Hold& hold);
    void take(Hold& hold, const Step& step);
    void parse(Hold& hold, const Step& step);
    void bind(Hold& hold, const Step& step);
    void describe(const Step& step);
    void execute(Hold& hold, const Step& step);
    void close(const Step& step);
    void append_part(Part part);
    void append_step(const Step& step);
    void append_own_answer(std::string_view bytes);
    void name_statement(std::string_view name, std::optional<Prepared> statement);
    [[nodiscard]] bool may_commit_with_parts();
    [[nodiscard]] bool flush_parts(Hold& hold, Ending* committed = nullptr);
    [[nodiscard]] bool flush_first(Hold& hold, std::size_t count, Ending* committed = nullptr);
    void step_back(std::size_t done, bool again);
    void execute_by_itself(Hold& hold, const Step& step, const Call& call);
    void execute_control(Hold& hold, const CheckedStatement& statement);
    void synchronise(Hold& hold);
    void fail(const Ending& ending);
    [[nodiscard]] Prepared prepared(const Hold& hold,
                                    std::string_view text,
                                    std::string_view types);
    [[nodiscard]] const Prepared* find_statement(std::string_view name) const;
    [[nodiscard]] const Portal* find_portal(std::string_view name) const;

    // Both.
    [[nodiscard]] bool can_run_alone(const CheckedStatement& statement);
    [[nodiscard]] Ending control(Hold& hold, const CheckedStatement& statement);
    [[nodiscard]] Ending commit(Hold& hold);
    [[nodiscard]] Executor::Sink sink();
    [[nodiscard]] std::shared_ptr<const Script> checked(const Hold& hold, std::string_view text);
    void ran(const CheckedStatement& statement);

    Cluster& cluster_;
    Channel& channel_;
    MessageStream& stream_;
    std::shared_ptr<Executor> executor_;
    const Steady opened_;
    // Whether the client has ever changed a setting that decides how statements are checked.
    bool has_settings_;
    std::optional<Executor::Settings> settings_{};  // Empty if they may have changed.

    std::string out_;
    std::string held_;  // The end of a statement whose transaction is not yet committed.
    std::vector<Step> steps_;
    std::size_t next_step_ = 0;
    // What has not been sent to the server below yet, and what belongs to each part.
    std::vector<Part> parts_;
    std::vector<Waiting> waiting_;
    std::size_t parts_bytes_ = 0;
    bool one_by_one_ = false;  // After an unexpected answer; until the Sync.
    bool skipping_ = false;
    std::map<std::string, Prepared, std::less<>> statements_;
    std::map<std::string, Portal, std::less<>> portals_;
};

}  // namespace holdfast::dsql
