#include <holdfast/flow/command_line.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/config.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/base/units.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/flow/client.hpp>
#include <holdfast/flow/runtime.hpp>
#include <holdfast/flow/store.hpp>
#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/stored.hpp>

namespace holdfast::flow {
namespace {

constexpr milliseconds drain_deadline{30'000};
constexpr std::array verbs{"run", "start", "query", "update", "replay"};

// The words of a command line: options with values, and the rest in order.
class Words {
public:
    // Requires: `words` begins after the verb. `options` take a value; --json is the one that does
    // not.
    Words(std::vector<std::string> words, const std::vector<std::string_view>& options) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (!words[i].starts_with("--")) {
                positional_.push_back(std::move(words[i]));
                continue;
            }
            if (words[i] == "--json") {
                json_ = true;
                continue;
            }
            const std::size_t equals = words[i].find('=');
            const std::string name = words[i].substr(0, equals);
            if (std::ranges::find(options, name) == options.end()) {
                throw InvalidArgument(fmt::format(
                    "unknown option '{}'; there are --json, {}", name, fmt::join(options, ", ")));
            }
            if (equals == std::string::npos && i + 1 == words.size()) {
                throw InvalidArgument(fmt::format("{} needs a value", name));
            }
            options_[name] = equals == std::string::npos ? words[++i] : words[i].substr(equals + 1);
        }
    }

    [[nodiscard]] std::string take(std::string_view what) {
        if (next_ == positional_.size()) {
            throw InvalidArgument(fmt::format("name {}", what));
        }
        return positional_[next_++];
    }
    [[nodiscard]] std::string take_or(std::string otherwise) {
        return next_ == positional_.size() ? std::move(otherwise) : positional_[next_++];
    }
    void no_more() const {
        if (next_ != positional_.size()) {
            throw InvalidArgument(
                fmt::format("unexpected argument '{}'; remove it", positional_[next_]));
        }
    }
    [[nodiscard]] std::string option(const std::string& name, std::string otherwise) const {
        const auto found = options_.find(name);
        if (found == options_.end()) {
            return otherwise;
        }
        return found->second;
    }
    [[nodiscard]] milliseconds duration(const std::string& name, std::string otherwise) const {
        return std::chrono::duration_cast<milliseconds>(
            parse_duration(option(name, std::move(otherwise))));
    }
    [[nodiscard]] bool json() const noexcept { return json_; }

private:
    std::vector<std::string> positional_;
    std::map<std::string, std::string> options_;
    std::size_t next_ = 0;
    bool json_ = false;
};

std::string database_url(const Words& words) {
    std::string url = words.option("--db", process_environment("HOLDFAST_DB").value_or(""));
    if (url.empty()) {
        throw InvalidArgument("no database is named; pass --db sqlite:FILE or set HOLDFAST_DB");
    }
    return url;
}

Payload arguments_of(const std::string& text) {
    try {
        (void)split_array(text);
    } catch (const Undecodable&) {
        throw InvalidArgument(
            fmt::format("{} is not a JSON array of arguments; write '[{}]'", text, text));
    }
    return Payload{text};
}

DuplicatePolicy policy_of(const std::string& name) {
    if (name == "reject") {
        return DuplicatePolicy::reject;
    }
    if (name == "use-existing") {
        return DuplicatePolicy::use_existing;
    }
    if (name == "restart") {
        return DuplicatePolicy::restart;
    }
    throw InvalidArgument(fmt::format(
        "unknown --on-duplicate '{}'; choose from reject, use-existing, restart", name));
}

void require_workflow(const Registry& registry, const std::string& name) {
    if (!registry.has_workflow(name)) {
        throw InvalidArgument(fmt::format("there is no workflow '{}'; this program has {}",
                                          name,
                                          fmt::join(registry.workflows(), ", ")));
    }
}

// Holds SIGTERM and SIGINT back until take(), in this thread and in those it starts.
class HeldSignals {
public:
    HeldSignals() {
        ::sigemptyset(&held_);
        ::sigaddset(&held_, SIGTERM);
        ::sigaddset(&held_, SIGINT);
        ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
    }
    ~HeldSignals() { release(); }
    HeldSignals(const HeldSignals&) = delete;
    HeldSignals& operator=(const HeldSignals&) = delete;

    void take() const {
        int signal = 0;
        ::sigwait(&held_, &signal);
    }
    // From here on another signal has its usual effect and ends the process at once.
    void release() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    ::sigset_t held_{};
    ::sigset_t before_{};
};

int run(const Registry& registry, const Words& words, sql::DatabaseOptions options) {
    words.no_more();
    const std::string url = database_url(words);
    HeldSignals signals;
    const std::unique_ptr<Logger> logger = make_logger({.level = Level::warn});
    if (options.logger == nullptr) {
        options.logger = logger.get();
    }
    Store store{url, std::move(options)};
    Runtime runtime{store, registry, {.logger = logger.get()}};
    fmt::print(stderr, "working on {}; SIGTERM ends it\n", fmt::join(registry.workflows(), ", "));
    signals.take();
    signals.release();
    const DrainReport report = runtime.drain(drain_deadline);
    if (!report.clean()) {
        throw Error(Code::deadline,
                    holdfast::Outcome::not_applied,
                    fmt::format("{} turns and {} activities were given up; others take them over "
                                "when their leases run out",
                                report.turns_abandoned,
                                report.activities_abandoned + report.activities_stuck));
    }
    return exit_done;
}

// Prints how the workflow ended, as text or as JSON.
int report_end(const InstanceInfo& info, bool json) {
    if (json) {
        fmt::print("{{\"id\":{},\"status\":{},\"{}\":{}}}\n",
                   quote(info.instance),
                   quote(to_string(info.status)),
                   info.status == Status::completed ? "output" : "failure",
                   info.output);
    } else if (info.status == Status::completed) {
        fmt::print("{}\n", info.output);
    }
    if (info.status == Status::completed) {
        return exit_done;
    }
    if (!json) {
        throw Error(Code::condition_failed,
                    holdfast::Outcome::not_applied,
                    fmt::format("{} {}: {}",
                                info.instance,
                                to_string(info.status),
                                Client::failure_of(info).text()));
    }
    return exit_refused;
}

int start(const Registry& registry, Words words, const sql::DatabaseOptions& database) {
    const std::string name = words.take("the workflow to start");
    words.no_more();
    require_workflow(registry, name);
    const Payload input = arguments_of(words.option("--input", "[]"));
    const StartOptions options{.version = words.option("--version", ""),
                               .delay = words.duration("--delay", "0"),
                               .duplicate = policy_of(words.option("--on-duplicate", "reject")),
                               .cron = words.option("--cron", "")};
    const milliseconds wait = words.duration("--wait", "0");
    const std::string id = words.option("--id", Uuid::v4().text());
    Store store{database_url(words), database};
    Client client{store};
    if (wait.count() == 0) {
        const bool created = client.start_by_name(options, name, id, input);
        if (words.json()) {
            fmt::print("{{\"id\":{},\"created\":{}}}\n", quote(id), created);
        } else {
            fmt::print("{}\n", id);
        }
        return exit_done;
    }
    // No other worker may be running, and this program has the code.
    const Runtime runtime{store, registry};
    client.start_by_name(options, name, id, input);
    return report_end(client.wait(id, wait), words.json());
}

int ask(const Registry& registry, Words words, bool update, const sql::DatabaseOptions& options) {
    const std::string id = words.take("the instance");
    const std::string name = words.take(update ? "the update" : "the query");
    const Payload input = arguments_of(words.take_or("[]"));
    words.no_more();
    const milliseconds timeout = words.duration("--timeout", "10s");
    sql::Database db{database_url(words), options};
    Store store{db};
    Client client{store};
    // This runtime can answer if no worker is running.
    const Runtime runtime{store, registry, {.workflow_threads = 1, .activity_threads = 0}};
    try {
        const Payload reply = client.ask(id, timeout, update, name, input);
        fmt::print("{}\n", reply.json);
    } catch (const Failure& failure) {
        throw Error(Code::condition_failed, holdfast::Outcome::not_applied, failure.info().text());
    }
    return exit_done;
}

ExportedHistory read_history(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string lines;
    const bool readable = !std::filesystem::is_directory(path);
    if (readable) {
        lines.assign(std::istreambuf_iterator<char>(file), {});
    }
    if (!file || !readable) {
        throw Error(Code::not_found,
                    holdfast::Outcome::not_applied,
                    fmt::format("cannot read '{}'; name a file of holdfast flow export", path));
    }
    try {
        return decode_export(lines);
    } catch (const Undecodable& error) {
        throw InvalidArgument(fmt::format("{}: {}", path, error.what()));
    }
}

ExecutionId execution_of(const std::string& text) {
    ExecutionId number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc{} || end != text.data() + text.size() || number == 0) {
        throw InvalidArgument(fmt::format("--execution '{}' is not a positive number", text));
    }
    return number;
}

int replay(const Registry& registry, Words words) {
    const std::string path = words.take("the file that holdfast flow export wrote");
    words.no_more();
    ExportedHistory history = read_history(path);
    // Ids of children and random numbers come from the instance's id. A bare history does not say.
    const std::string known =
        history.instance.empty() ? std::filesystem::path(path).stem().string() : history.instance;
    const std::string id = words.option("--id", known);
    const ExecutionId execution =
        execution_of(words.option("--execution", std::to_string(history.execution)));
    std::vector<Event>& events = history.events;
    const auto* started =
        events.empty() ? nullptr : std::get_if<WorkflowStarted>(&events.front().body);
    if (started == nullptr) {
        throw InvalidArgument(fmt::format("{} does not begin with a workflow's start", path));
    }
    const std::string name = started->name;
    const std::string version = started->version;
    require_workflow(registry, name);
    const auto program = registry.find_workflow(name, version);
    if (!program) {
        throw InvalidArgument(fmt::format("this program has no version {} of {}, only {}",
                                          version,
                                          name,
                                          fmt::join(registry.versions(name), ", ")));
    }
    const std::size_t count = events.size();
    const std::unique_ptr<Logger> logger = make_logger({.level = Level::warn});
    const auto difference = check_replay(id,
                                         *program,
                                         std::move(events),
                                         std::move(history.kv),
                                         execution,
                                         program_build_id(),
                                         logger.get());
    if (words.json()) {
        fmt::print("{{\"file\":{},\"workflow\":{},\"version\":{},\"events\":{},\"same\":{}{}}}\n",
                   quote(path),
                   quote(name),
                   quote(version),
                   count,
                   !difference,
                   difference ? ",\"failure\":" + encode(*difference) : "");
        return difference ? exit_refused : exit_done;
    }
    if (difference) {
        throw Error(Code::condition_failed,
                    holdfast::Outcome::not_applied,
                    fmt::format("{}: {}", path, difference->text()));
    }
    fmt::print("{}: {} {} does what its {} events say\n", path, name, version, count);
    return exit_done;
}

int dispatch(const Registry& registry,
             std::vector<std::string> words,
             const sql::DatabaseOptions& options) {
    if (words.empty() || std::ranges::find(verbs, words.front()) == verbs.end()) {
        const std::string what =
            words.empty() ? "no command" : fmt::format("unknown command '{}'", words.front());
        throw InvalidArgument(fmt::format("{}; choose from {}", what, fmt::join(verbs, ", ")));
    }
    const std::string name = words.front();
    words.erase(words.begin());
    if (name == "run") {
        return run(registry, Words(std::move(words), {"--db"}), options);
    }
    if (name == "start") {
        return start(registry,
                     Words(std::move(words),
                           {"--db",
                            "--id",
                            "--input",
                            "--version",
                            "--delay",
                            "--cron",
                            "--wait",
                            "--on-duplicate"}),
                     options);
    }
    if (name == "replay") {
        return replay(registry, Words(std::move(words), {"--db", "--id", "--execution"}));
    }
    return ask(registry, Words(std::move(words), {"--db", "--timeout"}), name == "update", options);
}

}  // namespace

int command_line(const Registry& registry,
                 int argc,
                 const char* const* argv,
                 const sql::DatabaseOptions& options) {
    const std::string program =
        argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "holdfast";
    try {
        return dispatch(registry, {argv + std::min(argc, 1), argv + argc}, options);
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", program, sentence_of(error));
        return exit_code_of(error);
    }
}

}  // namespace holdfast::flow
