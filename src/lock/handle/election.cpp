#include <holdfast/lock/election.hpp>

#include <limits>

#include <holdfast/lock/key.hpp>
#include <holdfast/lock/with_lock.hpp>

namespace holdfast::lock {

// One run: fires when it is to end.
class Election::Candidacy {
public:
    Candidacy(Election& election, const std::stop_token& stop)
        : election_(election), by_caller_(stop, End{end_}) {
        const std::lock_guard lock(election_.mutex_);
        if (election_.running_) {
            throw LockError(LockCode::invalid_argument, "the candidate is running already");
        }
        election_.running_ = end_;
    }
    ~Candidacy() {
        const std::lock_guard lock(election_.mutex_);
        election_.running_.reset();
    }
    Candidacy(const Candidacy&) = delete;
    Candidacy& operator=(const Candidacy&) = delete;

    [[nodiscard]] std::stop_token over() const { return end_.get_token(); }

    struct End {
        std::stop_source& source;
        void operator()() const { source.request_stop(); }
    };

private:
    Election& election_;
    std::stop_source end_;
    std::stop_callback<End> by_caller_;
};

Election::Election(Backend& backend, std::string_view key, ElectionOptions options)
    : backend_(backend), key_(normalised_key(key)), options_(std::move(options)) {
    check_auto_extend(options_.auto_extend, options_.ttl);
    if (options_.observe_every.count() < 1) {
        throw LockError(LockCode::invalid_argument, "observe_every must be positive");
    }
    if (options_.keeper == nullptr) {
        own_keeper_ = options_.clock == nullptr ? std::make_unique<Keeper>()
                                                : std::make_unique<Keeper>(*options_.clock);
    }
    keeper_ = own_keeper_ ? own_keeper_.get() : options_.keeper;
}

void Election::run(const Lead& lead, const std::stop_token& stop) {
    const Candidacy candidacy(*this, stop);
    const std::stop_token over = candidacy.over();
    while (true) {
        std::optional<Handle> lock = wait_until_elected(over);
        if (!lock || serve(*lock, lead, over)) {
            return;
        }
    }
}

void Election::resign() {
    std::optional<std::stop_source> running;
    {
        const std::lock_guard lock(mutex_);
        running = running_;
    }
    if (running) {
        running->request_stop();
    }
}

// Empty if the candidacy is over.
std::optional<Handle> Election::wait_until_elected(const std::stop_token& over) {
    // The first try does not wait, so that a candidate knows the leader early.
    Acquisition acquisition{.max_retries = std::numeric_limits<int>::max(),
                            .timeout = std::chrono::milliseconds{0},
                            .meta = options_.meta,
                            .clock = options_.clock};
    while (!over.stop_requested()) {
        try {
            Acquired acquired = acquire_waiting(backend_, key_, options_.ttl, acquisition, over);
            if (std::holds_alternative<Grant>(acquired)) {
                return Handle(backend_,
                              key_,
                              std::move(acquired),
                              {.logger = options_.logger, .clock = options_.clock});
            }
        } catch (const LockError& error) {
            const bool may_pass = error.retryable() ||
                                  error.lock_code() == LockCode::acquisition_timeout ||
                                  error.lock_code() == LockCode::aborted;
            if (!may_pass) {
                throw;
            }
        }
        acquisition.timeout = options_.observe_every;
        if (!over.stop_requested()) {
            look_who_leads();
        }
    }
    return std::nullopt;
}

bool Election::serve(Handle& lock, const Lead& lead, const std::stop_token& over) {
    std::stop_source term;
    const std::stop_callback by_candidate(over, Candidacy::End{term});
    const std::stop_callback by_loss(lock.lost(), Candidacy::End{term});
    keeper_->keep(lock, options_.ttl, options_.auto_extend);

    struct Leading {
        std::atomic<std::uint64_t>& fence;
        ~Leading() { fence = 0; }
    };
    {
        our_fence_ = value_of(lock.fence());
        const Leading leading{our_fence_};
        announce({.owner = {},
                  .meta = options_.meta,
                  .fence = lock.fence(),
                  .expires_at = lock.expires_at(),
                  .ours = true});
        lead(lock, term.get_token());
    }

    lock.dispose();
    std::optional<LostReason> lost = lock.lost_reason();
    if (lock.gone_at_release()) {
        lost = lost.value_or(LostReason::refused);
    }
    if (lost && options_.on_lost) {
        options_.on_lost(*lost);
    }
    return !lost;
}

std::optional<Leader> Election::observe(const CallOptions& options) {
    const std::optional<RawLockInfo> found = backend_.find_raw(key_, options);
    if (!found) {
        return std::nullopt;
    }
    return Leader{.owner = found->owner,
                  .meta = found->meta,
                  .fence = found->info.fence,
                  .expires_at = found->info.expires_at,
                  .ours = value_of(found->info.fence) == our_fence_};
}

void Election::look_who_leads() {
    std::optional<Leader> leader;
    try {
        leader = observe();
    } catch (const LockError& error) {
        if (!error.retryable()) {
            throw;
        }
        return;  // Next time.
    }
    if (leader) {
        announce(*leader);
    }
}

void Election::announce(const Leader& leader) {
    if (leader.fence != newest_) {
        newest_ = leader.fence;
        if (options_.on_new_leader) {
            options_.on_new_leader(leader);
        }
    }
}

}  // namespace holdfast::lock
