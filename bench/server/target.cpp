#include "target.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "process.hpp"

#include <holdfast/base/error.hpp>

namespace holdfast::server_bench {

Target::Target(const std::filesystem::path& program,
               bench::BareDatabase& database,
               const TargetOptions& options)
    : options_(options),
      database_(&database),
      child_(std::make_unique<MeasuredChild>(program, database.make_empty())),
      address_(child_->address()),
      pid_(child_->pid()) {}

Target::Target(std::string address, std::optional<std::int64_t> pid, const TargetOptions& options)
    : options_(options), address_(std::move(address)), pid_(pid) {}

void Target::prepare(const std::stop_token& stop) {
    Link link(address_);
    link.connect();
    require_namespace(link, options_.name_space, stop);
    has_updates_ = server_bench::has_updates(link, options_.name_space, stop);
}

Target::Reading Target::read() {
    Reading now;
    if (pid_) {
        now.cpu_seconds = cpu_seconds_of(*pid_);
    }
    if (child_) {
        now.counts = child_->counts();
        now.disk_bytes = database_->disk_bytes();
    }
    return now;
}

bench::Work Target::load(std::string_view scenario,
                         std::chrono::nanoseconds time,
                         const LoadOptions& options) const {
    Link link(address_);
    link.connect();
    // A warm-up is a part of a round, and so are its workflows.
    const double share =
        std::chrono::duration<double>(time) / std::chrono::duration<double>(options_.round_time);
    const auto count =
        std::max<std::int64_t>(1, std::llround(share * static_cast<double>(options_.open)));
    if (scenario == "backlog") {
        return run_backlog(link, options, count);
    }
    if (scenario == "idle") {
        return run_open(link, options, count);
    }
    const auto plan = std::ranges::find(plans(), scenario, &Plan::name);
    return run_plan(link, *plan, options, time);
}

bench::Work Target::run(std::string_view scenario,
                        std::chrono::nanoseconds time,
                        const std::stop_token& stop) {
    LoadOptions options{
        .name_space = options_.name_space, .in_flight = options_.in_flight, .stop = stop};
    if (pid_) {
        options.resident_bytes = [pid = *pid_] { return resident_bytes_of(pid); };
        options.cpu_seconds = [pid = *pid_] { return cpu_seconds_of(pid); };
    }
    Reading before = read();
    options.warm = [&] { before = read(); };
    bench::Work work = load(scenario, time, options);
    const Reading after = read();
    if (pid_) {
        work.counts.push_back({"server_cpu_us", 1e6 * (after.cpu_seconds - before.cpu_seconds)});
        work.figures.push_back({"resident_mb", resident_bytes_of(*pid_) / 1e6});
    }
    if (child_) {
        const auto add = [&work](const char* name, double from, double to) {
            work.counts.push_back({name, to - from});
        };
        add("run_commits", before.counts.run_commits, after.counts.run_commits);
        add("other_commits", before.counts.other_commits, after.counts.other_commits);
        add("commits", before.counts.commits, after.counts.commits);
        add("statements", before.counts.statements, after.counts.statements);
        add("disk_bytes", before.disk_bytes, after.disk_bytes);
    }
    return work;
}

void tell_as_limit(bench::Work& limit, const bench::Work& ours) {
    const auto value_of = [](const std::vector<bench::Count>& counts, const std::string& name) {
        const auto found = std::ranges::find(counts, name, &bench::Count::name);
        return found == counts.end() ? 0 : found->value;
    };
    std::vector<bench::Count> told;
    for (const bench::Count& count : limit.counts) {
        told.push_back({"limit_" + count.name, count.value / limit.operations});
    }
    for (const bench::Count& figure : limit.figures) {
        told.push_back({"limit_" + figure.name, figure.value});
    }
    const double our_cpu = value_of(ours.counts, "server_cpu_us") / ours.operations;
    const double our_memory = value_of(ours.figures, "resident_mb");
    if (our_cpu > 0) {
        told.push_back({"limit_cpu_times_ours", value_of(told, "limit_server_cpu_us") / our_cpu});
    }
    if (our_memory > 0) {
        told.push_back(
            {"limit_memory_times_ours", value_of(told, "limit_resident_mb") / our_memory});
    }
    limit.counts.clear();
    limit.figures = std::move(told);
}

}  // namespace holdfast::server_bench
