// Properties 3 and 5 of docs/conformance/properties.md, on the databases themselves: conflicts are
// tried again within the policy, and every other error is of one class, is counted once, and
// changes nothing.
#include <array>
#include <string>
#include <string_view>

#include "chosen.hpp"
#include "test/store_fixture.hpp"
#include <fmt/core.h>
#include <rapidcheck.h>

#include <holdfast/base/metrics.hpp>
#include <holdfast/dsql/gateway.hpp>
#include <holdfast/sql/error.hpp>
#include <holdfast/store/task_queue.hpp>
#include <holdfast/testing/dsql.hpp>

namespace holdfast::store::tests {
namespace {

enum class Moment : std::uint8_t { statement, commit };

// On a server a trigger refuses with any SQLSTATE, and a sequence, which no rollback turns back,
// counts how often. SQLite has one error for all triggers.
constexpr std::string_view refusals_of_servers = R"(
CREATE SEQUENCE refusals_at_statement MINVALUE -1000 START 1;
CREATE SEQUENCE refusals_at_commit MINVALUE -1000 START 1;
CREATE TABLE refusals (state text NOT NULL);
INSERT INTO refusals VALUES ('40001');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
  IF nextval(TG_ARGV[0]::regclass) <= 0 THEN
    RAISE EXCEPTION '40001 OC000, on purpose' USING ERRCODE = (SELECT state FROM refusals);
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER at_statement BEFORE UPDATE ON task_queues
  FOR EACH ROW EXECUTE FUNCTION refuse('refusals_at_statement');
CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON task_queues
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse('refusals_at_commit');)";
constexpr std::string_view refusals_of_files = R"(
CREATE TABLE refusals (times INTEGER NOT NULL);
INSERT INTO refusals VALUES (0);
CREATE TRIGGER at_statement BEFORE UPDATE ON task_queues
  WHEN (SELECT times FROM refusals) > 0 BEGIN SELECT RAISE(ABORT, '40001 OC000'); END;)";

// A task queue, its owner, and a database that refuses the owner's writes when it is told to.
class RefusedQueue {
public:
    explicit RefusedQueue(test::Backend backend) : place_(backend) {
        place_.execute(backend == test::Backend::sqlite ? refusals_of_files : refusals_of_servers);
        place_.execute("CREATE UNIQUE INDEX one_each ON task_queues (data)");
        TaskQueues(place_).create(key_, state_);
        TaskQueues(place_).create({.ns = key_.ns, .name = "other"}, taken_);
    }
    ~RefusedQueue() { refuse_nothing(); }
    RefusedQueue(const RefusedQueue&) = delete;
    RefusedQueue& operator=(const RefusedQueue&) = delete;

    // Conflicts that the next write meets; there are none on SQLite, where writers wait.
    int refuse_by_conflicts(Moment moment, int wanted) {
        switch (place_.backend()) {
            case test::Backend::sqlite:
                return 0;
            case test::Backend::postgres:
                refuse(moment, *rc::gen::element<std::string>("40001", "40P01"), wanted);
                return wanted;
            case test::Backend::dsql:
                break;
        }
        if (wanted > 0) {
            test::shared_gateway().arm(
                {.point = moment == Moment::commit ? dsql::FaultPoint::commit
                                                   : dsql::FaultPoint::statement,
                 .fault = *rc::gen::element(dsql::GatewayFault::data_conflict,
                                            dsql::GatewayFault::schema_conflict),
                 .nth = 1,
                 .times = wanted,
                 .cluster = place_.name()});
        }
        return wanted;
    }
    // From now on so many writes are refused, as far as the database has words for it.
    void refuse(Moment moment, const std::string& state, int times) {
        if (place_.backend() == test::Backend::sqlite) {
            place_.execute(fmt::format("UPDATE refusals SET times = {}", times));
            return;
        }
        place_.execute(fmt::format("UPDATE refusals SET state = '{}'", state));
        place_.execute(fmt::format("SELECT setval('refusals_at_{}', -{})",
                                   moment == Moment::commit ? "commit" : "statement",
                                   times));
    }
    void refuse_nothing() {
        if (place_.backend() == test::Backend::dsql) {
            test::shared_gateway().disarm();
        }
        refuse(Moment::statement, "40001", 0);
        refuse(Moment::commit, "40001", 0);
    }

    // The owner takes it once more.
    void write(TaskQueues& queues) {
        write(queues, blob(fmt::format("write {}", static_cast<std::int64_t>(state_.range))));
    }
    // What another queue holds already.
    void write_what_is_taken(TaskQueues& queues) { write(queues, taken_.info); }
    [[nodiscard]] bool is_as_written() const { return TaskQueues(db()).find(key_) == state_; }

    [[nodiscard]] test::Backend backend() const { return place_.backend(); }
    [[nodiscard]] const std::string& url() const { return place_.url(); }
    [[nodiscard]] const sql::DatabaseOptions& options() const { return place_.options(); }

private:
    void write(TaskQueues& queues, Blob info) {
        const TaskQueue next{.range = RangeId{static_cast<std::int64_t>(state_.range) + 1},
                             .info = std::move(info)};
        queues.update(key_, next, state_.range);
        state_ = next;
    }
    [[nodiscard]] sql::Database& db() const { return place_; }

    mutable MigratedDatabase place_;
    const TaskQueueKey key_{.ns = NamespaceId::random(), .name = "orders"};
    const TaskQueue taken_{.range = RangeId{1}, .info = blob("taken")};
    TaskQueue state_{.range = RangeId{1}, .info = blob("first")};
};

// A handle with a policy of its own, and what it has counted.
class Handle {
public:
    Handle(const RefusedQueue& queue, int max_retries)
        : retries_max(max_retries), db_(queue.url(), options_of(queue)) {}

    [[nodiscard]] TaskQueues& queues() noexcept { return queues_; }
    [[nodiscard]] int errors(sql::ErrorClass of) const {
        return static_cast<int>(metrics_.value("holdfast_sql_tx_errors_total",
                                               {{"operation", "UpdateTaskQueue"},
                                                {"db", "refused"},
                                                {"error_class", sql::to_string(of)},
                                                {"outcome", "not_applied"}}));
    }
    [[nodiscard]] int retries() const {
        int all = 0;
        for (const std::string_view attempt : {"1", "2", "3", "4"}) {
            all += static_cast<int>(metrics_.value(
                "holdfast_sql_tx_retries_total",
                {{"operation", "UpdateTaskQueue"}, {"db", "refused"}, {"attempt", attempt}}));
        }
        return all;
    }

    const int retries_max;

private:
    sql::DatabaseOptions options_of(const RefusedQueue& queue) {
        sql::DatabaseOptions options = queue.options();
        options.metrics = &metrics_;
        options.name = "refused";
        options.retry.max_retries = retries_max;
        return options;
    }

    Metrics metrics_;
    sql::Database db_;
    TaskQueues queues_{db_};
};

// ---- Property 3 -------------------------------------------------------------------------------

class Property3 : public testing::TestWithParam<test::Backend> {};

TEST_P(Property3, SerializationConflictRetry) {
    HOLDFAST_CHECK("Property 3");
    RefusedQueue queue(GetParam());
    std::array<Handle, 3> handles{Handle(queue, 0), Handle(queue, 2), Handle(queue, 4)};
    EXPECT_TRUE(rc::check("conflicts are tried again within the policy", [&] {
        Handle& handle = handles.at(test::chosen<std::size_t>(0, handles.size()));
        const Moment moment = *rc::gen::element(Moment::statement, Moment::commit);
        const int conflicts = queue.refuse_by_conflicts(moment, test::chosen(0, 7));
        const int retries_before = handle.retries();
        const int errors_before = handle.errors(sql::ErrorClass::retryable);

        std::optional<int> gave_up_after;
        try {
            queue.write(handle.queues());
        } catch (const sql::Exhausted& error) {
            RC_ASSERT(error.outcome() == Outcome::not_applied);
            RC_ASSERT(sql::classify(error) == sql::ErrorClass::retryable);
            gave_up_after = error.attempts();
        }
        queue.refuse_nothing();

        const bool hopeless = conflicts > handle.retries_max;
        RC_ASSERT(gave_up_after.has_value() == hopeless);
        RC_ASSERT(gave_up_after.value_or(handle.retries_max + 1) == handle.retries_max + 1);
        RC_ASSERT(handle.retries() - retries_before == std::min(conflicts, handle.retries_max));
        RC_ASSERT(handle.errors(sql::ErrorClass::retryable) - errors_before ==
                  std::min(conflicts, handle.retries_max + 1));
        RC_ASSERT(queue.is_as_written());
    }));
}

INSTANTIATE_TEST_SUITE_P(Every, Property3, test::every_backend(), test::backend_name);

// ---- Property 5 -------------------------------------------------------------------------------

class Property5 : public testing::TestWithParam<test::Backend> {};

// What the database is to say, and the class of that.
struct Trouble {
    bool is_taken = false;  // Another row has the value; else a trigger refuses, with a state.
    std::string state{};
    sql::ErrorClass expected{};
};

Trouble any_trouble(test::Backend backend) {
    if (test::chosen(0, 4) == 0) {
        return {.is_taken = true, .expected = sql::ErrorClass::duplicate};
    }
    if (backend == test::Backend::sqlite) {
        return {.state = "23514", .expected = sql::ErrorClass::permanent};
    }
    const std::string state = *rc::gen::element<std::string>("0A000",
                                                             "53300",
                                                             "53400",
                                                             "54000",
                                                             "54001",
                                                             "23505",
                                                             "23502",
                                                             "22003",
                                                             "42501",
                                                             "42P01",
                                                             "P0001",
                                                             "HV000");
    return {.state = state, .expected = sql::classify(sql::SqlState{state})};
}

TEST_P(Property5, ErrorHandlingRobustness) {
    HOLDFAST_CHECK("Property 5");
    RefusedQueue queue(GetParam());
    Handle handle(queue, 3);
    EXPECT_TRUE(rc::check("every error is of one class, is counted, and nothing is applied", [&] {
        constexpr int always = 100;
        const Trouble trouble = any_trouble(queue.backend());
        const int retries_before = handle.retries();
        const int errors_before = handle.errors(trouble.expected);
        std::optional<Outcome> outcome;
        std::optional<sql::ErrorClass> found;
        try {
            if (trouble.is_taken) {
                queue.write_what_is_taken(handle.queues());
            } else {
                queue.refuse(Moment::statement, trouble.state, always);
                queue.write(handle.queues());
            }
        } catch (const Error& error) {
            outcome = error.outcome();
            found = sql::classify(error);
        }
        queue.refuse_nothing();
        RC_ASSERT(found == trouble.expected);
        RC_ASSERT(outcome == Outcome::not_applied);
        RC_ASSERT(handle.errors(trouble.expected) == errors_before + 1);
        RC_ASSERT(handle.retries() == retries_before);
        RC_ASSERT(queue.is_as_written());
        queue.write(handle.queues());  // And the next one is none the worse for it.
        RC_ASSERT(queue.is_as_written());
    }));
}

INSTANTIATE_TEST_SUITE_P(Every, Property5, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
