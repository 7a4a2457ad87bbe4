// The state behind Execution. See execution.hpp for the promises.
//
// A turn writes its events in this order: the messages it took, what the code then asked for, what
// the code gave up, and the end. So on replay the code has always seen a turn's messages before its
// own requests are compared, and what it asked for waits in `asked_`.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/left_open.hpp>
#include <holdfast/flow_engine/limits.hpp>

namespace holdfast::flow {

// How far a value is the one in the history.
enum class Likeness : std::uint8_t { same, other_fields, other };

class Execution::Engine final : public detail::Core {
public:
    Engine(std::string instance,
           ExecutionId execution,
           detail::Program program,
           ExecutionLimits limits,
           Logger* logger,
           std::string build);
    ~Engine() override;

    void begin(WorkflowStarted started, std::map<std::string, Payload> kv);
    void load(std::vector<Event> history, std::map<std::string, Payload> kv);
    Turn turn(Moment now, std::span<const Message> messages);
    std::optional<FailureInfo> check();

    [[nodiscard]] EventId last_event() const noexcept { return last_event_; }
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] bool waits_for(EventId event) const { return open_.contains(event); }
    [[nodiscard]] std::vector<EventId> open() const;
    [[nodiscard]] std::size_t bytes() const noexcept;
    [[nodiscard]] const WorkflowStarted& started() const { return started_; }
    [[nodiscard]] Moment begun() const { return Moment{std::chrono::milliseconds{begun_ms_}}; }

private:
    using SlotPtr = detail::SlotPtr;

    struct ChannelState {
        std::deque<std::pair<EventId, Payload>> buffered;
        std::deque<SlotPtr> waiting;
    };

    // --- asked by the code (execution.cpp)
    void asked(const SlotPtr& slot) override;
    void gave_up(const SlotPtr& slot) noexcept override;
    void gave_back(const SlotPtr& slot) noexcept override;
    [[nodiscard]] bool message_waits(std::string_view channel) const override;
    void start_code();
    void resume(detail::Listener* listener);

    // --- applying events (engine_apply.cpp)
    void apply(const Event& event);
    struct Applier;
    void match(const Event& event);
    [[nodiscard]] bool accepts(InputCheck check, Likeness input) const;
    void tell_of_input(const Event& event, Likeness input);
    [[nodiscard]] bool is_long() const noexcept;
    void tell_of_length() const;
    void answer(const Event& event, detail::Answer answer, std::size_t scheduled_kind);
    void deliver(const SlotPtr& slot, detail::Answer answer, EventId arrived);
    void receive(const Event& event, const MessageReceived& message);
    void serve_waiting();
    // Whether the code has made so many requests that this turn takes no more messages.
    [[nodiscard]] bool reads_no_more() const noexcept {
        return actions_ > limits_.actions_per_turn / 2;
    }
    // Channels whose messages the code waits for although they are there.
    [[nodiscard]] std::vector<std::string> cut_channels() const;
    void receive(const Event& event, const SignalReceived& signal);
    void cancelled(const Event& event, const OperationCancelled& what);
    void request_cancel(const Event& event, const CancelRequested& request);
    void handle_update(const UpdateHandled& update);
    void differs(std::string message);
    void bind(const SlotPtr& slot, EventId event);

    // --- taking messages (engine_turn.cpp)
    void prime(std::int64_t now_ms);
    void replay();
    // False: it belongs to the execution that follows.
    bool take(const Message& message);
    [[nodiscard]] bool inherits(const Message& message) const;
    void refuse(const MessageBody& message);
    struct Taker;
    bool duplicate(EventId source) const { return closed_.contains(source); }
    void take_answer(EventId source, EventBody body, std::size_t scheduled_kind);
    void take_cancel(const CancelMessage& message);
    void take_timer(const TimerMessage& message);
    void take_update(const UpdateMessage& message);
    void take_query(const QueryMessage& message);
    // Gives the body the next event, applies it and adds it to the turn.
    void record(EventBody body, EventId source = 0);
    void append(EventBody body, EventId source = 0);

    // --- ending a turn (engine_turn.cpp)
    void write_requests();
    struct Commander;
    void write_drops();
    void finish();
    void finish_with(Ending ending, EventBody terminal);
    void finish_from_error(const std::exception_ptr& error);
    void finish_with_result(Payload result);
    void finish_by_continuing(const Continuation& next);
    void finish_by_force();
    void abandon_open(std::string_view reason);
    void carry_messages();
    [[nodiscard]] bool stopped() const noexcept { return abort_.has_value() || forced_; }
    [[nodiscard]] bool code_ended() const noexcept { return root_ && root_->branch_done(); }
    void check_ending(const EventBody& last);  // engine_check.cpp

    detail::Program program_;
    ExecutionLimits limits_;
    std::string build_;               // Ours.
    std::string recorded_build_;      // The build that wrote these events; empty: not known.
    Likeness told_ = Likeness::same;  // What was warned of.
    Context context_{*this};
    WorkflowStarted started_;
    std::int64_t begun_ms_ = 0;
    std::vector<Event> history_;  // To replay; empty afterwards.
    bool primed_ = false;
    bool verifying_ = false;
    bool ended_ = false;
    bool forced_ = false;
    EventId cancel_event_ = 0;
    std::int64_t cancel_deadline_ms_ = 0;
    std::optional<FailureInfo> abort_;
    bool mismatch_ = false;  // Why it is aborted: the code does not follow the history.
    int actions_ = 0;
    detail::Frame handlers_;                       // Where handlers of queries and updates run.
    std::set<std::string, std::less<>> returned_;  // Channels that got a message back.

    std::list<SlotPtr> asked_;                   // Without an event yet, in order.
    std::unordered_map<EventId, SlotPtr> open_;  // Scheduled and not answered.
    std::unordered_set<EventId> closed_;         // Answered or given up.
    std::unordered_set<EventId> given_up_;       // The history says so.
    std::vector<SlotPtr> dropped_;               // Given up; the history does not say so yet.
    std::vector<SlotPtr> fresh_;                 // Scheduled in this turn.
    std::vector<LeftOpen> left_;  // Open by a history that the code did not follow to its end.
    std::map<std::string, ChannelState, std::less<>> channels_;
    std::map<std::string, std::deque<SlotPtr>, std::less<>> signals_;
    std::map<std::string, std::variant<Payload, FailureInfo>, std::less<>> updates_done_;
    Turn* turn_ = nullptr;
    std::optional<Task<Payload>> root_;  // Last: destroyed first, while the rest is there.
};

// Why a value cannot be stored. Nothing if it can.
[[nodiscard]] std::optional<FailureInfo> too_large(std::string_view what, std::size_t bytes);
// Whether the code has run. If the execution before wrote the first events, it has not.
[[nodiscard]] bool has_run(const std::vector<Event>& history);
// Requires: a request that is answered.
[[nodiscard]] Dropped dropped_kind(const EventBody& action);
[[nodiscard]] bool has_start_limit(const EventBody& action);
// The kind, the name and the input of a request, for messages.
[[nodiscard]] std::string describe_action(const EventBody& action);

}  // namespace holdfast::flow
