#include "flow/timeline.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "cli/terminal.hpp"
#include <fmt/core.h>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t name_max = 28;
constexpr std::size_t bar_least = 12;
constexpr std::size_t bar_most = 48;
constexpr std::size_t note_least = 16;

// Nothing, for what returns nothing.
std::string result_text(const flow::Payload& result) {
    return result.json == "null" ? std::string{} : result.json;
}

std::string attempt_note(const std::optional<int>& attempt) {
    return attempt ? fmt::format(" (attempt {})", *attempt) : std::string{};
}

// Reads a history once and keeps what is still open by what will close it.
class Reader {
public:
    void take(const flow::Event& event) {
        time_ms_ = event.time_ms;
        event_ = event.id;
        source_ = event.source;
        std::visit([this](const auto& body) { read(body); }, event.body);
    }
    [[nodiscard]] std::vector<Step> steps() && { return std::move(steps_); }

private:
    // Waits of one channel or signal, and the messages that came before a wait.
    struct Line {
        std::deque<std::size_t> waiting;
        std::deque<std::string> unread;
    };

    std::size_t open(std::string_view kind, std::string name, Fate fate = Fate::open) {
        steps_.push_back({.event = event_,
                          .kind = std::string(kind),
                          .name = std::move(name),
                          .begin_ms = time_ms_,
                          .end_ms = {},
                          .fate = fate,
                          .note = {}});
        by_event_[event_] = steps_.size() - 1;
        return steps_.size() - 1;
    }
    void fact(std::string_view kind, std::string name, std::string note = {}) {
        Step& step = steps_[open(kind, std::move(name), Fate::moment)];
        step.end_ms = time_ms_;
        step.note = std::move(note);
    }
    void close(std::size_t index, Fate fate, std::string note) {
        Step& step = steps_[index];
        if (step.fate == Fate::open) {
            step.end_ms = time_ms_;
            step.fate = fate;
            step.note = std::move(note);
        }
    }
    // An execution that has ended waits for nothing.
    void end(std::string_view kind, std::string note) {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            close(i, Fate::cancelled, "the execution ended");
        }
        fact(kind, "", std::move(note));
    }
    void answer(Fate fate, std::string note) {
        if (const auto found = by_event_.find(source_); found != by_event_.end()) {
            close(found->second, fate, std::move(note));
        }
    }

    void wait(Line& line, std::size_t index) {
        if (line.unread.empty()) {
            line.waiting.push_back(index);
            return;
        }
        close(index, Fate::done, line.unread.front());
        line.unread.pop_front();
    }
    void arrive(Line& line, const std::string& data) {
        while (!line.waiting.empty()) {
            const std::size_t index = line.waiting.front();
            line.waiting.pop_front();
            if (steps_[index].fate == Fate::open) {
                close(index, Fate::done, data);
                return;
            }
        }
        line.unread.push_back(data);
    }

    void read(const flow::ActivityScheduled& e) { open("activity", e.name); }
    void read(const flow::TimerCreated& e) {
        open("timer", elapsed(milliseconds{e.fire_at_ms - time_ms_}));
    }
    void read(const flow::ChildScheduled& e) { open("child", e.instance); }
    void read(const flow::MessageAwaited& e) {
        wait(channels_[e.channel], open("message", e.channel));
    }
    void read(const flow::SignalAwaited& e) {
        signals_[e.name].waiting.push_back(open("signal", e.name));
    }
    void read(const flow::MessageReceived& e) { arrive(channels_[e.channel], e.data.json); }
    void read(const flow::SignalReceived& e) {
        Line& line = signals_[e.name];
        arrive(line, e.data.json);
        line.unread.clear();  // A signal reaches only a wait that is already there.
    }
    void read(const flow::ActivityCompleted& e) {
        answer(Fate::done, result_text(e.result) + attempt_note(e.attempt));
    }
    void read(const flow::ActivityFailedEvent& e) {
        answer(Fate::failed, e.failure.text() + attempt_note(e.attempt));
    }
    void read(const flow::ChildCompleted& e) { answer(Fate::done, result_text(e.result)); }
    void read(const flow::ChildFailedEvent& e) { answer(Fate::failed, e.failure.text()); }
    void read(const flow::TimerFired&) { answer(Fate::done, {}); }
    void read(const flow::OperationCancelled& e) { answer(Fate::cancelled, e.reason); }

    void read(const flow::WorkflowDetached& e) { fact("detached", e.instance); }
    void read(const flow::CancelRequested& e) { fact("cancel", "requested", e.reason); }
    void read(const flow::WorkflowSuspended& e) { fact("suspended", "", e.reason); }
    void read(const flow::WorkflowResumed&) { fact("resumed", ""); }
    void read(const flow::UpdateHandled& e) {
        fact("update", e.name, e.failure ? e.failure->text() : std::string{});
    }
    void read(const flow::WorkflowCompleted& e) { end("completed", e.output.json); }
    void read(const flow::WorkflowFailed& e) { end("failed", e.failure.text()); }
    void read(const flow::WorkflowContinued& e) { end("continued", e.input.json); }
    // Events without duration that do not move the workflow are left to `flow history`.
    void read(const auto&) {}

    std::vector<Step> steps_;
    std::map<flow::EventId, std::size_t> by_event_;
    std::map<std::string, Line> channels_;
    std::map<std::string, Line> signals_;
    std::int64_t time_ms_ = 0;
    flow::EventId event_ = 0;
    flow::EventId source_ = 0;
};

struct Mark {
    std::string_view sign;
    Ink ink;
};

Mark mark_of(const Step& step, bool blocks) {
    switch (step.fate) {
        case Fate::open:
            return {blocks ? "…" : ".", Ink::cyan};
        case Fate::failed:
            return {blocks ? "✗" : "!", Ink::red};
        case Fate::cancelled:
            return {blocks ? "⊘" : "x", Ink::yellow};
        case Fate::moment:
            return {" ", step.kind == "failed" || step.kind == "cancel" ? Ink::red : Ink::plain};
        case Fate::done:
            break;
    }
    return {blocks ? "✓" : " ", Ink::green};
}

std::string_view bar_of(Fate fate, bool blocks) {
    switch (fate) {
        case Fate::open:
        case Fate::cancelled:
            return blocks ? "╌" : "-";
        case Fate::moment:
            return blocks ? "◆" : "*";
        default:
            return blocks ? "━" : "=";
    }
}

class Drawing {
public:
    Drawing(const std::vector<flow::Event>& history,
            const std::vector<Step>& steps,
            const TimelineOptions& options)
        : options_(options), begin_ms_(history.front().time_ms) {
        const bool open =
            std::ranges::any_of(steps, [](const Step& step) { return step.fate == Fate::open; });
        end_ms_ = history.back().time_ms;
        if (open) {
            end_ms_ = std::max(end_ms_, options.now.time_since_epoch().count());
        }
        for (const Step& step : steps) {
            kind_width_ = std::max(kind_width_, width_of(step.kind));
            name_width_ = std::max(name_width_, width_of(shortened(step.name, name_max)));
        }
        // Offset, kind, name, bar, duration, sign and note, with blanks between them.
        const std::size_t fixed = offset_width + kind_width_ + name_width_ + took_width + 10;
        const std::size_t rest = options.width > fixed ? options.width - fixed : 0;
        bar_width_ = std::clamp(rest > note_least ? rest - note_least : 0, bar_least, bar_most);
        note_width_ = rest > bar_width_ ? std::max(rest - bar_width_, note_least) : note_least;
    }

    [[nodiscard]] std::string line(const Step& step) const {
        const Mark mark = mark_of(step, options_.blocks);
        const std::int64_t end_ms = step.end_ms.value_or(end_ms_);
        const std::string took =
            step.fate == Fate::moment ? "" : elapsed(milliseconds{end_ms - step.begin_ms});
        std::string line = fmt::format("  {:>{}}  {}  {}  {}  {:>{}}  {} {}",
                                       "+" + elapsed(milliseconds{step.begin_ms - begin_ms_}),
                                       offset_width,
                                       padded(step.kind, kind_width_),
                                       padded(shortened(step.name, name_max), name_width_),
                                       ink(mark.ink, bar(step, end_ms)),
                                       took,
                                       took_width,
                                       ink(mark.ink, mark.sign),
                                       ink(step.fate == Fate::failed ? Ink::red : Ink::grey,
                                           shortened(step.note, note_width_)));
        line.erase(line.find_last_not_of(' ') + 1);
        return line + "\n";
    }

    // Points at the marks from above the bars.
    [[nodiscard]] std::string marks() const {
        std::vector<std::string_view> cells(bar_width_, " ");
        for (const flow::Moment mark : options_.marks) {
            const std::size_t at = column(mark.time_since_epoch().count());
            cells[std::min(at, bar_width_ - 1)] = options_.blocks ? "▼" : "v";
        }
        std::string bar;
        for (const std::string_view cell : cells) {
            bar += cell;
        }
        return fmt::format(
            "  {}{}\n",
            padded(options_.marks_name, offset_width + kind_width_ + name_width_ + 6),
            ink(Ink::red, bar.substr(0, bar.find_last_not_of(' ') + 1)));
    }

private:
    static constexpr std::size_t offset_width = 10;
    static constexpr std::size_t took_width = 9;

    [[nodiscard]] std::size_t column(std::int64_t time_ms) const {
        const std::int64_t span = std::max<std::int64_t>(end_ms_ - begin_ms_, 1);
        const std::int64_t at = std::clamp<std::int64_t>(time_ms - begin_ms_, 0, span);
        return static_cast<std::size_t>(at * static_cast<std::int64_t>(bar_width_) / span);
    }
    [[nodiscard]] std::string bar(const Step& step, std::int64_t end_ms) const {
        const std::size_t first = std::min(column(step.begin_ms), bar_width_ - 1);
        const std::size_t last = std::max(column(end_ms), first + 1);
        std::string text(first, ' ');
        for (std::size_t i = first; i < last; ++i) {
            text += bar_of(step.fate, options_.blocks);
        }
        return padded(std::move(text), bar_width_);
    }

    const TimelineOptions& options_;
    std::int64_t begin_ms_;
    std::int64_t end_ms_ = 0;
    std::size_t kind_width_ = 0;
    std::size_t name_width_ = 0;
    std::size_t bar_width_ = bar_least;
    std::size_t note_width_ = note_least;
};

}  // namespace

std::string_view to_string(Fate fate) noexcept {
    switch (fate) {
        case Fate::open:
            return "open";
        case Fate::done:
            return "done";
        case Fate::failed:
            return "failed";
        case Fate::cancelled:
            return "cancelled";
        case Fate::moment:
            break;
    }
    return "moment";
}

std::vector<Step> steps_of(const std::vector<flow::Event>& history) {
    Reader reader;
    for (const flow::Event& event : history) {
        reader.take(event);
    }
    return std::move(reader).steps();
}

Json to_json(const Step& step) {
    return {{"event", step.event},
            {"kind", step.kind},
            {"name", step.name},
            {"fate", to_string(step.fate)},
            {"begin_ms", step.begin_ms},
            {"end_ms", step.end_ms ? Json(*step.end_ms) : Json(nullptr)},
            {"note", step.note}};
}

std::string draw_timeline(const std::vector<flow::Event>& history, const TimelineOptions& options) {
    if (history.empty()) {
        return {};
    }
    const std::vector<Step> steps = steps_of(history);
    const Drawing drawing(history, steps, options);
    const std::size_t left_out =
        steps.size() > options.lines_max ? steps.size() - options.lines_max : 0;
    std::string text;
    if (left_out > 0) {
        text += fmt::format("  {} earlier steps are left out; --all shows them\n", left_out);
    }
    if (!options.marks.empty()) {
        text += drawing.marks();
    }
    for (std::size_t i = left_out; i < steps.size(); ++i) {
        text += drawing.line(steps[i]);
    }
    return text;
}

}  // namespace holdfast::app
