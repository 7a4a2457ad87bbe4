#include <holdfast/flow_testing/world.hpp>

#include <algorithm>
#include <atomic>

#include "waiting.hpp"
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::flow::test {
namespace {

using std::chrono::microseconds;

// Only the world takes activities, so they are never taken over.
constexpr milliseconds for_ever = std::chrono::hours{24 * 365 * 100};
constexpr int claims_max = 1'000;
constexpr std::string_view worker = "world";

// The wall time is moved by hand; durations are measured by the machine's clock, because retries
// and deadlines of the database are not part of a test.
class WorldClock final : public Clock {
public:
    [[nodiscard]] Steady steady_now() const override { return system_clock().steady_now(); }
    [[nodiscard]] Wall wall_now() const override { return Wall{microseconds{now_us_.load()}}; }
    [[nodiscard]] std::string boot_id() const override { return "world"; }
    [[nodiscard]] microseconds boot_now() const override {
        return wall_now().time_since_epoch() - microseconds{first_moment.time_since_epoch()};
    }
    // NOLINTNEXTLINE(modernize-use-nodiscard)
    bool sleep_until(Steady until, const std::stop_token& stop) const override {
        return system_clock().sleep_until(until, stop);
    }
    void advance(milliseconds by) { now_us_ += microseconds{by}.count(); }

private:
    std::atomic<std::int64_t> now_us_ = microseconds{first_moment.time_since_epoch()}.count();
};

sql::DatabaseOptions options_with(const Clock& clock) {
    sql::DatabaseOptions options;
    options.clock = &clock;
    return options;
}

// When an attempt will have taken as long as it may; empty: it may take as long as it needs.
std::optional<Moment> limit_of(const ClaimedActivity& claim) {
    const std::optional<ActivityRetry>& retry = claim.task.retry;
    return retry && retry->per_try_ms ? std::optional(claim.now + milliseconds{*retry->per_try_ms})
                                      : std::nullopt;
}

// Without jitter, so that a test is repeatable: every delay is the middle one.
constexpr double middle = 0.5;

}  // namespace

class World::Place {
public:
    Place() { sql::schema_apply(db, schema_part(), {}); }

    WorldClock clock;
    sql::Database db{"sqlite::memory:", options_with(clock)};
    SqlProvider provider{db};
    FaultyProvider faults{provider, [this](milliseconds by) { clock.advance(by); }};
};

World::World(WorldOptions options)
    : options_(std::move(options)),
      place_(std::make_unique<Place>()),
      store_(std::make_unique<Store>(place_->db, place_->faults)),
      client_(std::make_unique<Client>(*store_)) {}

World::~World() = default;

World& World::play(std::string_view name, detail::Stub run, bool transactional) {
    played_.insert_or_assign(std::string(name),
                             Played{.run = std::move(run), .transactional = transactional});
    return *this;
}

Delivery World::cancel(std::string_view id, std::string reason) {
    return client_->cancel(id, std::move(reason));
}

Payload World::ask(std::string_view id, bool update, std::string_view name, Payload input) {
    const std::string request = Uuid::v4().text();
    MessageBody message;
    if (update) {
        message = UpdateMessage{request, std::string(name), std::move(input)};
    } else {
        message = QueryMessage{request, std::string(name), std::move(input)};
    }
    const Delivery delivery = client_->send(id, std::move(message));
    run();
    const std::optional<Reply> answer =
        delivery == Delivery::delivered ? place_->provider.take_reply(request) : std::nullopt;
    if (!answer) {
        throw Unexpected(fmt::format("'{}' is not running, so it does not answer {}", id, name));
    }
    if (answer->failed) {
        throw Failure(decode_failure(answer->body));
    }
    return Payload{answer->body};
}

// --- time
// ----------------------------------------------------------------------------------------------

Moment World::now() const {
    return std::chrono::time_point_cast<milliseconds>(place_->clock.wall_now());
}

void World::move_clock(milliseconds by) {
    place_->clock.advance(by);
    for (Claimed& claimed : claimed_) {
        claimed.late = false;
    }
}

void World::skip(milliseconds by) {
    move_clock(by);
}

void World::run() {
    for (int step = 0; step < options_.steps_max; ++step) {
        runtime().run_until_idle();
        end_what_overran();
        claim_activities();
        bool performed = perform_one();
        const bool any = performed;
        // The workflow need not look each time one has ended.
        while (performed && options_.choose && !ready().empty() && choose(2) == 1) {
            performed = perform_one();
        }
        if (!any) {
            return;
        }
    }
    throw Unexpected(
        fmt::format("the world did not come to rest within {} steps", options_.steps_max));
}

void World::advance(milliseconds by) {
    if (by.count() < 0) {
        throw InvalidArgument("a world's clock does not go back");
    }
    const Moment target = now() + by;
    run();
    while (advance_to_next(target)) {
    }
    move_clock(target - now());
    run();
}

bool World::advance_to_next(Moment latest) {
    std::optional<milliseconds> wait = place_->provider.until_next_work();
    for (const Claimed& claimed : claimed_) {
        if (const std::optional<Moment> limit = limit_of(claimed.claim)) {
            const milliseconds left = *limit - now();
            wait = wait ? std::min(*wait, left) : left;
        }
    }
    if (!wait || now() + *wait > latest) {
        return false;
    }
    move_clock(std::max(*wait, milliseconds{1}));
    run();
    return true;
}

void World::run_to_end(std::string_view id) {
    // A lease that never runs out is nothing to wait for.
    const Moment latest = now() + for_ever / 2;
    run();
    for (int moves = 0; !is_final(status(id)); ++moves) {
        if (moves == options_.clock_moves_max) {
            throw Unexpected(fmt::format("the clock was moved {} times, to {:%FT%TZ}, and {}",
                                         moves,
                                         std::chrono::floor<std::chrono::seconds>(now()),
                                         why_not_ended(id)));
        }
        if (!unknown_code(id).empty() || !advance_to_next(latest)) {
            ended(id);
        }
    }
}

void World::crash() {
    runtime_.reset();
}

Runtime& World::runtime() {
    if (!runtime_) {
        RuntimeOptions options;
        options.manual = true;
        options.workflow_threads = 1;
        options.activity_threads = 0;  // The world plays them.
        options.shadow_replay_every = 1;
        options.limits = options_.limits;
        options.build_id = options_.build_id;
        Registry registry = registry_;  // In a test a mismatch is an end, not a wait.
        registry.on_nondeterminism(NondeterminismPolicy::fail);
        runtime_ = std::make_unique<Runtime>(*store_, registry, options);
    }
    return *runtime_;
}

// --- activities
// ----------------------------------------------------------------------------------------

int World::choose(std::size_t count) {
    if (!options_.choose || count < 2) {
        return 0;
    }
    const int choice = options_.choose(static_cast<int>(count));
    if (choice < 0 || static_cast<std::size_t>(choice) >= count) {
        throw InvalidArgument(
            fmt::format("the chooser returned {}; return a number below {}", choice, count));
    }
    chosen_.push_back(choice);
    return choice;
}

void World::claim_activities() {
    const ClaimActivities ask{
        .lease = for_ever,
        .count = claims_max,
        .tags = TagFilter::everything(),
        .session = SessionClaim{.owner = std::string(worker), .lease = for_ever}};
    for (ClaimedActivity& claim : place_->faults.claim_activities(ask)) {
        const bool late = options_.late_activities && choose(2) == 1;
        claimed_.push_back({.claim = std::move(claim), .late = late});
    }
}

// Ends attempts that exceed their time limit; a later answer of their worker is ignored.
void World::end_what_overran() {
    std::erase_if(claimed_, [this](const Claimed& claimed) {
        const std::optional<Moment> limit = limit_of(claimed.claim);
        if (!limit || *limit > now()) {
            return false;
        }
        const milliseconds most{*claimed.claim.task.retry->per_try_ms};
        end_attempt(claimed.claim, timeout_failure(most));
        return true;
    });
}

void World::end_attempt(const ClaimedActivity& claim, std::variant<Payload, FailureInfo> result) {
    const ActivityEnd end = end_of_attempt(claim, std::move(result), now() - claim.now, middle);
    (void)place_->faults.end_activities(std::span(&end, 1));
}

std::vector<std::size_t> World::ready() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < claimed_.size(); ++i) {
        if (!claimed_[i].late && !held_.contains(claimed_[i].claim.task.name)) {
            found.push_back(i);
        }
    }
    return found;
}

bool World::perform_one() {
    for (;;) {
        const std::vector<std::size_t> candidates = ready();
        if (candidates.empty()) {
            return false;
        }
        const std::size_t at = candidates[static_cast<std::size_t>(choose(candidates.size()))];
        const ClaimedActivity claim = std::move(claimed_[at].claim);
        claimed_.erase(claimed_.begin() + static_cast<std::ptrdiff_t>(at));
        const std::vector<std::pair<ActivityKey, Uuid>> held{{claim.task.key, claim.token}};
        if (!place_->provider.renew_activities(held, for_ever).at(0)) {
            continue;  // Cancelled meanwhile: its result is not needed.
        }
        perform(claim);
        return true;
    }
}

void World::perform(const ClaimedActivity& claim) {
    const auto found = played_.find(claim.task.name);
    if (found == played_.end()) {
        throw Unexpected(
            fmt::format("'{}' asks for the activity '{}', and the world has no stub "
                        "for it; give it one with stub or activity",
                        claim.task.key.instance,
                        claim.task.name));
    }
    ++calls_[claim.task.name];
    const Played& played = found->second;
    ActivityContext ctx(claim, std::stop_token{}, null_logger(), [&](const Payload& progress) {
        place_->faults.heartbeat(claim.task.key, claim.token, progress);
    });
    std::variant<Payload, FailureInfo> result;
    try {
        if (played.transactional) {
            (void)place_->faults.end_activity_in_transaction(
                claim.task.key, claim.token, [&](sql::Tx& tx) {
                    Payload value = played.run(ctx, &tx, claim.task.input);
                    return end_of_attempt(claim, std::move(value), milliseconds{0}, middle)
                        .answer.value();
                });
            return;
        }
        result = played.run(ctx, nullptr, claim.task.input);
    } catch (...) {
        result = failure_now();
    }
    end_attempt(claim, std::move(result));
}

// --- looking
// -------------------------------------------------------------------------------------------

Status World::status(std::string_view id) {
    const std::optional<InstanceInfo> info = place_->provider.info(id);
    if (!info) {
        throw Unexpected(fmt::format("there is no workflow instance '{}'", id));
    }
    return info->status;
}

std::string World::unknown_code(std::string_view id) {
    for (const std::string& member : client_->tree(id)) {
        const std::optional<InstanceInfo> info = place_->provider.info(member);
        if (info && !is_final(info->status) && !registry_.has_workflow(info->name)) {
            return info->name;
        }
    }
    return {};
}

std::string World::why_not_ended(std::string_view id) {
    const std::string missing = unknown_code(id);
    if (!missing.empty()) {
        return fmt::format(
            "'{}' has not ended, and the world does not know the workflow "
            "'{}'; tell it with workflow",
            id,
            missing);
    }
    std::vector<std::string> words;
    for (const std::string& member : client_->tree(id)) {
        const std::optional<InstanceInfo> info = place_->provider.info(member);
        if (info && !is_final(info->status)) {
            words.push_back(fmt::format(
                "'{}' {}", member, waits_for(place_->provider, registry_, options_.limits, *info)));
        }
    }
    return fmt::format("'{}' has not ended: {}", id, fmt::join(words, ", "));
}

void World::ended(std::string_view id) {
    run();
    while (std::ranges::any_of(claimed_, &Claimed::late)) {
        move_clock(milliseconds{0});
        run();
    }
    if (is_final(status(id))) {
        return;
    }
    throw Unexpected(why_not_ended(id));
}

FaultyProvider& World::faults() noexcept {
    return place_->faults;
}

sql::Database& World::database() noexcept {
    return place_->db;
}

std::string World::order() const {
    return fmt::format("{}", fmt::join(chosen_, ", "));
}

}  // namespace holdfast::flow::test
