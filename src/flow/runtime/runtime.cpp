#include <holdfast/flow/runtime.hpp>

#include <algorithm>
#include <iterator>

#include "runtime/runtime_state.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>

namespace holdfast::flow {
namespace {

constexpr milliseconds lease_min{2'000};
constexpr std::chrono::milliseconds keep_pause{500};
constexpr int commit_lanes_on_a_server = 4;
constexpr std::size_t build_id_bytes_max = 64;
constexpr std::size_t owed_max = 1'000;
constexpr std::chrono::milliseconds owed_pause{500};

RuntimeOptions checked_options(RuntimeOptions options) {
    if (options.workflow_threads < 0 || options.activity_threads < 0) {
        throw InvalidArgument("a runtime cannot have a negative number of threads");
    }
    if (options.workflow_lease < lease_min || options.activity_lease < lease_min ||
        options.session_lease < lease_min) {
        throw InvalidArgument(fmt::format(
            "a lease is at least {} ms, so that it can be renewed in time", lease_min.count()));
    }
    if (options.session_idle <= options.activity_lease - options.activity_lease / 3) {
        throw InvalidArgument(
            "session_idle must be longer than an activity goes between renewals, "
            "else a session is lost while its activity runs");
    }
    if (options.retention < milliseconds{0}) {
        throw InvalidArgument("the retention must not be negative; 0 keeps everything");
    }
    if (options.max_attempts < 1) {
        throw InvalidArgument("max_attempts must be at least 1");
    }
    if (options.tags.tags.size() > 5) {
        throw InvalidArgument("a worker serves at most 5 tags");
    }
    const bool plain =
        std::ranges::all_of(options.build_id, [](char c) { return c > ' ' && c <= '~'; });
    if (!plain || options.build_id.size() > build_id_bytes_max) {
        throw InvalidArgument(fmt::format(
            "a build id has at most {} letters, digits and signs of ASCII", build_id_bytes_max));
    }
    options.clock = options.clock == nullptr ? &system_clock() : options.clock;
    return options;
}

}  // namespace

// What is needed to give a claim back.
ClaimedInstance Runtime::State::receipt_of(const std::string& instance,
                                           const Uuid& token,
                                           const std::vector<InboxMessage>& mail) {
    ClaimedInstance receipt;
    receipt.instance = instance;
    receipt.token = token;
    for (const InboxMessage& message : mail) {
        receipt.messages.emplace_back().position = message.position;
    }
    return receipt;
}

Runtime::State::State(Store& store, Registry registry, RuntimeOptions options)
    : store_(store),
      provider_(store.provider()),
      registry_(std::move(registry)),
      options_(checked_options(std::move(options))),
      worker_id_(options_.worker_id.empty() ? make_token() : options_.worker_id),
      instances_(
          {.instances_max = options_.cached_instances_max, .bytes_max = options_.cached_bytes_max}),
      activities_(provider_,
                  registry_,
                  options_,
                  meters_,
                  unserved_,
                  {.ended = [this](ActivityEnd end) { ended(std::move(end)); },
                   .mailed = [this](const std::string& id) { store_.bus().mailed(id); },
                   .room = [this] { look_for_activities(); }}),
      runner_(provider_,
              registry_,
              options_,
              instances_,
              activities_,
              clock_,
              *meters_,
              *unserved_,
              [this] { look_for_mail(); }) {
    clock_.heard(std::chrono::floor<std::chrono::milliseconds>(options_.clock->wall_now()));
    hear_clock();
    std::string replays;
    for (const auto& [low, high] : options_.versions.ranges) {
        replays += fmt::format("{}{}-{}", replays.empty() ? "" : ",", low.text(), high.text());
    }
    log().info("a runtime starts",
               {{"engine", engine_version.text()}, {"replays", replays}, {"worker", worker_id_}});
    store_.bus().join(*this);
    if (options_.manual) {
        retry_blocked();
    } else {
        start_threads();
    }
}

Runtime::State::~State() {
    drain(std::chrono::seconds{10});
}

void Runtime::State::start_threads() {
    for (int i = 0; i < options_.workflow_threads; ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { turn_loop(stop); });
    }
    // One writer is all an embedded database has; a server flushes for several at once.
    const bool embedded = store_.database().dialect().embedded;
    for (int i = 0; i < (embedded ? 1 : commit_lanes_on_a_server); ++i) {
        threads_.emplace_back([this](const std::stop_token& stop) { commit_loop(stop); });
    }
    threads_.emplace_back([this](const std::stop_token& stop) { poll_loop(stop); });
    threads_.emplace_back([this](const std::stop_token& stop) { keep_loop(stop); });
}

Logger& Runtime::State::log() const {
    return options_.logger != nullptr ? *options_.logger : null_logger();
}

// --- LocalRuntime --------------------------------------------------------------------------------

void Runtime::State::expect(const std::string& instance, const Uuid& token) {
    instances_.expect(instance, token);
}

void Runtime::State::call_off(const std::string& instance) {
    instances_.call_off(instance);
}

bool Runtime::State::offer_start(std::string_view workflow,
                                 const std::string& instance,
                                 const Uuid& token) {
    return runs(workflow) && instances_.add_started(instance, token);
}

bool Runtime::State::offer_first_turn(const std::shared_ptr<detail::FirstTurn>& turn) {
    return !options_.manual && heard_clock_ && runs(turn->start().name) &&
           instances_.add_first_turn(turn);
}

bool Runtime::State::runs(std::string_view workflow) const {
    return !draining_ && options_.workflow_threads > 0 && registry_.has_workflow(workflow);
}

bool Runtime::State::has(const std::string& instance) const {
    return !draining_ && instances_.has(instance);
}

bool Runtime::State::offer_mail(const std::string& instance) {
    return !draining_ && instances_.add_mail(instance);
}

void Runtime::State::look_for_mail() {
    const std::lock_guard lock(poll_mutex_);
    want_instances_ = true;
    poll_wanted_.notify_one();
}

void Runtime::State::look_for_activities() {
    const std::lock_guard lock(poll_mutex_);
    want_activities_ = true;
    poll_wanted_.notify_one();
}

// --- turns
// -----------------------------------------------------------------------------------------

void Runtime::State::turn_loop(const std::stop_token& stop) {
    TurnInput input;
    while (Instance* const instance = instances_.next(stop, input)) {
        take_turn(*instance, std::move(input));
    }
}

void Runtime::State::take_turn(Instance& instance, TurnInput input) {
    std::vector<ActivityEnd> unwanted;
    const std::string id = instance.id;
    const std::vector<ActivityEnd> answers = input.answers;
    std::optional<ClaimedInstance> claim;
    if (input.claim) {
        claim = receipt_of(input.claim->instance, input.claim->token, input.claim->messages);
        workflow_lease_.looked_after(clock_.now() - input.claim->now, steady_now());
    }
    try {
        std::optional<PreparedTurn> turn = runner_.run(instance, std::move(input), unwanted);
        if (turn) {
            post(std::move(*turn));
        }
    } catch (const std::exception& error) {
        // The database failed while the turn was being read: leases and mail bring it back.
        log().warn("a turn could not be taken", {{"instance", id}, {"error", error.what()}});
        TurnInput left = instances_.forget(instance);
        unwanted = answers;
        unwanted.insert(unwanted.end(), left.answers.begin(), left.answers.end());
        const auto* const failed = dynamic_cast<const Error*>(&error);
        if (claim && failed != nullptr && may_pass(*failed)) {
            owe(std::move(*claim));
        }
        if (left.claim) {
            instances_.add_claim(std::move(*left.claim));
        }
        look_for_mail();
    }
    post(std::move(unwanted));
}

// Best effort: if the database cannot be reached, the lease runs out instead.
void Runtime::State::give_back(const ClaimedInstance& claim,
                               milliseconds delay,
                               bool ignore_attempt) noexcept {
    try {
        provider_.abandon_instance(claim, delay, ignore_attempt);
    } catch (const std::exception& error) {
        log().warn("an instance could not be given back",
                   {{"instance", claim.instance}, {"error", error.what()}});
        if (ignore_attempt) {
            owe(receipt_of(claim.instance, claim.token, claim.messages));
        }
    }
}

// The database failed, not the workflow: the attempt must not count. The claim is given back after
// a pause, and its lease keeps the messages in order until then. If the database still fails, this
// is repeated; an attempt stays counted only if another process claims the instance before.
void Runtime::State::owe(ClaimedInstance claim) {
    {
        const std::lock_guard lock(owed_mutex_);
        if (owed_.size() < owed_max) {
            owed_.push_back({.claim = std::move(claim), .due = steady_now() + owed_pause});
        }
    }
    wake_at((clock_.now() + owed_pause).time_since_epoch().count());
}

// False: the database is still unavailable, and nothing should be claimed.
bool Runtime::State::give_back_owed(Steady until) {
    std::vector<Owed> due;
    {
        const std::lock_guard lock(owed_mutex_);
        const auto later =
            std::ranges::partition(owed_, [until](const Owed& one) { return one.due > until; });
        due.assign(std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
        owed_.erase(later.begin(), later.end());
    }
    bool available = true;
    std::vector<Owed> left;
    for (Owed& one : due) {
        try {
            if (available) {
                provider_.abandon_instance(one.claim, milliseconds{0}, true);
                continue;
            }
        } catch (const std::exception& error) {
            log().warn("a claim could not be given back",
                       {{"instance", one.claim.instance}, {"error", error.what()}});
            const auto* const failed = dynamic_cast<const Error*>(&error);
            if (failed == nullptr || !may_pass(*failed)) {
                continue;  // Its lease runs out instead.
            }
            available = failed->code() != Code::unavailable;
        }
        left.push_back(std::move(one));
    }
    const std::lock_guard lock(owed_mutex_);
    owed_.insert(
        owed_.end(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
    return available;
}

// --- draining
// ----------------------------------------------------------------------------------------

bool Runtime::State::quiet() const {
    return instances_.backlog() == 0 && activities_.idle();
}

DrainReport Runtime::State::drain(milliseconds deadline) {
    const std::lock_guard lock(drain_mutex_);
    if (drained_) {
        return report_;
    }
    draining_ = true;
    pauses_.request_stop();
    store_.bus().leave(*this);
    activities_.close();
    constexpr milliseconds longest = std::chrono::years{1};  // "For ever" must not overflow.
    // Threads end in machine time, whatever clock is injected.
    const Clock& machine = system_clock();
    const Steady until = machine.steady_now() + std::min(deadline, longest);
    if (options_.manual) {
        run_until_idle();
    } else {
        // The end of an activity begins a turn, and a turn may begin activities.
        while (!quiet() && machine.steady_now() < until) {
            instances_.wait_idle(until - machine.steady_now());
            activities_.wait_idle(until - machine.steady_now());
        }
    }
    const bool in_time = quiet();
    report_ = activities_.stop(in_time ? milliseconds{0} : options_.cancel_grace);
    give_back_claims();
    for (std::jthread& thread : threads_) {
        thread.request_stop();
    }
    instances_.wake_all();
    threads_.clear();
    for (Outbox outbox = take_outbox(); !outbox.empty(); outbox = take_outbox()) {
        commit(std::move(outbox));
    }
    // A poll or a commit that was under way may have brought more, and no thread is left to run it.
    report_.activities_abandoned += activities_.stop(milliseconds{0}).activities_abandoned;
    give_back_claims();
    drained_ = true;
    return report_;
}

void Runtime::State::give_back_claims() {
    for (const ClaimedInstance& claim : instances_.take_waiting_claims()) {
        ++report_.turns_abandoned;
        give_back(claim, milliseconds{0}, true);
    }
    give_back_owed(Steady::max());
}

int Runtime::State::run_until_idle() {
    int steps = 0;
    const bool may_claim = give_back_owed(Steady::max());
    for (bool worked = true; worked;) {
        worked = may_claim && poll_instances().count > 0;
        worked = poll_activities() > 0 || worked;
        TurnInput input;
        while (Instance* const instance = instances_.try_next(input)) {
            take_turn(*instance, std::move(input));
            ++steps;
            worked = true;
        }
        for (Outbox outbox = take_outbox(); !outbox.empty(); outbox = take_outbox()) {
            commit(std::move(outbox));
            worked = true;
        }
        while (activities_.run_one()) {
            ++steps;
            worked = true;
        }
    }
    if (options_.retention > milliseconds{0}) {
        forget_old();
    }
    measure(steady_now());
    return steps;
}

RuntimeStats Runtime::State::stats() const {
    return {.turns = meters_->turns,
            .turns_from_cache = meters_->from_cache,
            .turns_lost = meters_->lost,
            .events_replayed = meters_->events_replayed,
            .history_bytes_read = meters_->history_bytes_read,
            .commits = meters_->commits,
            .activities = meters_->activities,
            .shadow_replays = meters_->shadow_replays,
            .cached_instances = static_cast<std::int64_t>(instances_.size())};
}

// --- keeping
// -----------------------------------------------------------------------------------------

// A worker that starts may have the code that blocked work waits for.
void Runtime::State::retry_blocked() noexcept {
    RetryBlocked ask;
    if (options_.workflow_threads > 0) {
        ask.fits = [this](BlockKind kind,
                          std::string_view workflow,
                          std::string_view version,
                          std::string_view build) {
            const bool known = version.empty()
                                   ? registry_.has_workflow(workflow)
                                   : registry_.find_workflow(workflow, version).has_value();
            const bool another = build.empty() || build != options_.build_id;
            return known && (kind == BlockKind::unregistered || another);
        };
    }
    if (options_.activity_threads > 0) {
        ask.knows = [this](std::string_view activity) {
            return registry_.find_activity(activity) != nullptr;
        };
    }
    try {
        if (provider_.retry_blocked(ask) > 0) {
            look_for_mail();
            look_for_activities();
        }
    } catch (const std::exception& error) {
        log().warn("blocked work could not be made due; it is retried later",
                   {{"error", error.what()}});
    }
}

void Runtime::State::keep_loop(const std::stop_token& stop) {
    retry_blocked();
    const auto next = [this] {
        return std::min(steady_now() + keep_pause, activities_.next_limit());
    };
    while (options_.clock->sleep_until(next(), stop)) {
        try {
            keep(steady_now());
        } catch (const std::exception& error) {
            log().warn("leases could not be renewed", {{"error", error.what()}});
        }
    }
}

void Runtime::State::keep(Steady now) {
    activities_.tick(now);
    for (const InstanceTable::Lease& lease :
         instances_.leases_older_than(now - options_.workflow_lease / 3)) {
        if (provider_.renew_instance(lease.id, lease.token, workflow_lease_.get())) {
            instances_.renewed(lease.id, now);
        }
        const Steady done = steady_now();
        workflow_lease_.looked_after(done - lease.since, done);
    }
    keep_sessions(now);
    sweep(now);
    measure(now);
}

void Runtime::State::keep_sessions(Steady now) {
    if (activities_.sessions() == 0 || now - sessions_kept_ < options_.session_lease / 3) {
        return;
    }
    sessions_kept_ = now;
    const std::vector<std::string> owners{worker_id_};
    provider_.renew_sessions(owners, options_.session_lease, options_.session_idle);
}

void Runtime::State::sweep(Steady now) {
    constexpr std::chrono::seconds pause{30};
    if (now - swept_ < pause) {
        return;
    }
    if (swept_ != Steady{}) {
        hear_clock();
        const int early = provider_.sweep(options_.early_mail_ttl, options_.reply_ttl);
        provider_.sweep_sessions();
        if (early > 0) {
            log().warn("early mail was deleted: its instances never started",
                       {{"mailboxes", early}});
        }
    }
    swept_ = now;
    if (options_.retention > milliseconds{0}) {
        forget_old();
    }
}

void Runtime::State::measure(Steady now) {
    if (meters_->wanted() && (measured_ == Steady{} || now - measured_ >= options_.gauges_every)) {
        measured_ = now;
        meters_->measured(provider_.stats(), instances_.size());
    }
}

// A bounded number at a time, so that leases are renewed in between.
void Runtime::State::forget_old() {
    constexpr int instances_per_sweep = 200;
    const Moment before = provider_.now() - options_.retention;
    const DeleteCounts ended = provider_.delete_ended(
        {.ids = {}, .completed_before = before, .limit = instances_per_sweep});
    const DeleteCounts pruned = provider_.prune_ended(before, instances_per_sweep);
    if (ended.instances + pruned.executions > 0) {
        log().info("instances and executions past the retention were deleted",
                   {{"instances", ended.instances}, {"executions", pruned.executions}});
    }
}

// --- Runtime
// -----------------------------------------------------------------------------------------

Runtime::Runtime(std::shared_ptr<Store> store, Registry registry, RuntimeOptions options)
    : store_(std::move(store)),
      state_(std::make_unique<State>(*store_, std::move(registry), std::move(options))) {}

Runtime::Runtime(Store& store, Registry registry, RuntimeOptions options)
    : state_(std::make_unique<State>(store, std::move(registry), std::move(options))) {}

Runtime::~Runtime() = default;

DrainReport Runtime::drain(milliseconds deadline) {
    return state_->drain(deadline);
}

int Runtime::run_until_idle() {
    return state_->run_until_idle();
}

RuntimeStats Runtime::stats() const {
    return state_->stats();
}

}  // namespace holdfast::flow
