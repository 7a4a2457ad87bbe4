#include "bench/show.hpp"

#include <chrono>
#include <string>

#include "cli/terminal.hpp"
#include "database.hpp"
#include <fmt/core.h>
#include <sys/statfs.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::app {
namespace {

constexpr double seconds_max = 3600;

std::string floor_text(const bench::Result& result) {
    if (!result.floor) {
        return "";
    }
    return fmt::format("{:g} {}", *result.floor, result.below_floor() ? "missed" : "reached");
}

std::string counts_text(const bench::Result& result) {
    std::string text;
    for (const bench::Count& count : result.counts) {
        text += fmt::format("{}{:.3g} {}", text.empty() ? "" : ", ", count.value, count.name);
    }
    return text;
}

std::string as_table(const bench::Report& report) {
    Table table{{{"benchmark"},
                 {"ours", Align::right},
                 {"limit", Align::right},
                 {"unit"},
                 {"ratio", Align::right},
                 {"quartiles", Align::right},
                 {"floor"},
                 {"CPU µs ours/limit", Align::right},
                 {"counts of ours"}}};
    for (const bench::Result& result : report.results) {
        table.add({result.name,
                   bench::grouped(result.ours.median),
                   bench::grouped(result.limit.median),
                   result.unit,
                   fmt::format("{:.3f}", result.ratio.median),
                   fmt::format("{:.3f}–{:.3f}", result.ratio.lower, result.ratio.upper),
                   floor_text(result),
                   fmt::format("{:.1f}/{:.1f}", result.ours_cpu_us, result.limit_cpu_us),
                   counts_text(result)});
    }
    std::string durability;
    for (const auto& [database, settings] : report.durability) {
        for (const auto& [name, value] : settings) {
            durability += fmt::format(", {} {} {}", database, name, value);
        }
    }
    return fmt::format("{}\n{} cores, a flush takes {:.0f} µs on {}{}. Peak memory {:.1f} MB.\n",
                       table.text(),
                       report.machine.cores,
                       report.machine.flush_us,
                       report.machine.filesystem,
                       durability,
                       static_cast<double>(report.peak_memory_bytes) / 1e6);
}

}  // namespace

bench::DriverOptions driver_options(const Context& context, const BenchRequest& request) {
    if (!(request.seconds > 0 && request.seconds <= seconds_max)) {
        throw InvalidArgument(fmt::format(
            "--seconds is {}; give more than 0 and at most {}", request.seconds, seconds_max));
    }
    return {
        .rounds = request.rounds,
        .round_time = std::chrono::nanoseconds{static_cast<std::int64_t>(request.seconds * 1e9)},
        .stop = context.stop};
}

std::filesystem::path scratch_parent(const Context& context, const BenchRequest& request) {
    if (!request.folder.empty()) {
        return request.folder;
    }
    const std::string& url = database_url(context);
    if (!url.empty()) {
        const sql::Url parsed = sql::parse_url(url);
        if (parsed.embedded() && parsed.rest != ":memory:") {
            return std::filesystem::absolute(parsed.rest).parent_path();
        }
    }
    constexpr auto tmpfs = 0x01021994;
    struct statfs info{};
    const bool in_memory = ::statfs("/tmp", &info) == 0 && info.f_type == tmpfs;
    return in_memory ? "/var/tmp" : "";
}

// A live line while a benchmark runs, and a line for each that is done, so that a long run can be
// followed in a log as well.
class Show::Watch final : public bench::Progress {
public:
    Watch(app::Progress& progress, bool notes) : progress_(progress), notes_(notes) {}

    void round(const bench::Pair& pair, int done, int rounds, double ratio) override {
        progress_.show(
            done == 0
                ? fmt::format("{}: warming up", pair.name)
                : fmt::format("{}: round {} of {}, ratio {:.2f}", pair.name, done, rounds, ratio));
    }
    void finished(const bench::Result& result) override {
        if (notes_) {
            progress_.note(fmt::format("{}: {} {}, ratio {:.3f}",
                                       result.name,
                                       bench::grouped(result.ours.median),
                                       result.unit,
                                       result.ratio.median));
        }
    }

    void failed(const bench::Pair& pair, const std::exception& error) override {
        progress_.note(
            fmt::format("holdfast: {} could not be measured: {}", pair.name, error.what()));
        exit_code_ = exit_code_ == exit_done ? exit_code_of(error) : exit_code_;
    }

    // Of the first that failed.
    [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

private:
    app::Progress& progress_;
    bool notes_;
    int exit_code_ = exit_done;
};

struct Show::Terminal {
    explicit Terminal(const Context& context)
        : progress(context.quiet), watch(progress, context.json || !progress.live()) {}

    Progress progress;
    Watch watch;
};

Show::Show(const Context& context, const BenchRequest& request)
    : context_(context), request_(request), terminal_(std::make_unique<Terminal>(context)) {}

Show::~Show() = default;

void Show::run(const std::function<bench::Report(bench::Progress&)>& measure) {
    Progress& progress = terminal_->progress;
    const bench::Report report = measure(terminal_->watch);
    progress.clear();
    if (report.machine.busy()) {
        progress.note(fmt::format(
            "holdfast: other programs keep the machine busy (load {:.1f} on {} cores), which "
            "distorts the ratios with many threads; measure again when it is idle",
            report.machine.load,
            report.machine.cores));
    }
    if (report.machine.filesystem == "tmpfs") {
        progress.note(
            "holdfast: the files are in memory (tmpfs), so a flush costs nothing; name a "
            "folder on a disk with --dir");
    }
    print(context_.json ? to_json(report) + "\n" : as_table(report));
    if (!request_.report.empty()) {
        bench::merge_into_page(request_.report, report);
        progress.note(fmt::format("holdfast: wrote {}", request_.report));
    }
}

int Show::exit_code() const {
    return terminal_->watch.exit_code();
}

}  // namespace holdfast::app
