#include "flow/bulk.hpp"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "flow/filter.hpp"
#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

constexpr int page_size = 50;
constexpr std::size_t named_max = 20;  // Of failures, and of matches in a dry run.

// The matches, page by page. A page is named by where the one before ended, so that what the
// command does to them moves nothing.
class Matches {
public:
    Matches(FlowAccess& flows, flow::ListInstances ask) : flows_(flows), ask_(std::move(ask)) {}

    // Calls `visit` with each page; false from it ends the walk. Returns where to go on; empty if
    // everything was visited.
    template <class Visit>
    std::string walk(const Visit& visit) {
        for (;;) {
            const flow::InstancePage page = flows_.client().list(ask_);
            const bool more = visit(page.instances);
            if (page.next.empty() || !more) {
                return page.next;
            }
            ask_.page = page.next;
        }
    }
    [[nodiscard]] const std::string& page() const noexcept { return ask_.page; }

private:
    FlowAccess& flows_;
    flow::ListInstances ask_;
};

struct Found {
    std::int64_t count = 0;
    std::vector<std::string> first;
};

Found count_matches(const Context& context,
                    FlowAccess& flows,
                    const flow::ListInstances& ask,
                    const BulkAction& action) {
    Found found;
    Matches(flows, ask).walk([&](const std::vector<flow::InstanceInfo>& page) {
        for (const flow::InstanceInfo& info : page) {
            if (!action.concerns(info)) {
                continue;
            }
            ++found.count;
            if (found.first.size() < named_max) {
                found.first.push_back(info.instance);
            }
        }
        return !context.stop.stop_requested();
    });
    return found;
}

// True: go on.
bool confirmed(const FlowRequest& request, const BulkAction& action, std::int64_t count) {
    if (request.yes) {
        return true;
    }
    if (isatty(STDIN_FILENO) == 0 || isatty(STDERR_FILENO) == 0) {
        throw InvalidArgument(fmt::format(
            "{} workflows match --where; --yes confirms to {} them all", count, action.verb));
    }
    std::cerr << fmt::format("{} {} workflows? [y/N] ", action.verb, count) << std::flush;
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
}

struct Outcomes {
    std::int64_t done = 0;
    std::int64_t skipped = 0;  // They changed since they were counted.
    std::int64_t failed = 0;
    std::vector<std::pair<std::string, std::string>> failures;  // The first ones.
    std::string next;  // Where to go on; empty: everything was done.
};

void apply_one(FlowAccess& flows,
               const BulkAction& action,
               const flow::InstanceInfo& info,
               Outcomes& outcomes) {
    try {
        ++(action.apply(flows, info) ? outcomes.done : outcomes.skipped);
    } catch (const Error& error) {
        if (error.code() == Code::unavailable) {
            throw;
        }
        if (error.code() == Code::not_found) {
            ++outcomes.skipped;
            return;
        }
        ++outcomes.failed;
        if (outcomes.failures.size() < named_max) {
            outcomes.failures.emplace_back(info.instance, error.what());
        }
    }
}

// A stop takes effect between two pages, so that `next` is exact.
Outcomes apply_all(const Context& context,
                   FlowAccess& flows,
                   const flow::ListInstances& ask,
                   const BulkAction& action,
                   std::int64_t count) {
    Outcomes outcomes;
    Progress progress(context.quiet || context.json);
    Matches matches(flows, ask);
    try {
        outcomes.next = matches.walk([&](const std::vector<flow::InstanceInfo>& page) {
            for (const flow::InstanceInfo& info : page) {
                if (action.concerns(info)) {
                    apply_one(flows, action, info, outcomes);
                }
            }
            progress.show(fmt::format("{}: {} of {}",
                                      action.verb,
                                      outcomes.done + outcomes.skipped + outcomes.failed,
                                      count));
            return !context.stop.stop_requested();
        });
    } catch (Error& error) {
        progress.clear();
        error.add_context(
            fmt::format("{} of {} are done; the same command with --page '{}' continues",
                        outcomes.done,
                        count,
                        matches.page()));
        throw;
    }
    progress.clear();
    return outcomes;
}

int report(const Context& context,
           const BulkAction& action,
           std::int64_t count,
           const Outcomes& outcomes) {
    if (context.json) {
        Json json{{"verb", action.verb},
                  {"matched", count},
                  {"done", outcomes.done},
                  {"skipped", outcomes.skipped},
                  {"failed", outcomes.failed},
                  {"failures", Json::array()},
                  {"next", outcomes.next}};
        for (const auto& [id, why] : outcomes.failures) {
            json["failures"].push_back({{"id", id}, {"error", why}});
        }
        print(json_line(json) + "\n");
    } else {
        std::string text = fmt::format("{}: {} of {} done, {} had changed, {} failed\n",
                                       action.verb,
                                       outcomes.done,
                                       count,
                                       outcomes.skipped,
                                       outcomes.failed);
        for (const auto& [id, why] : outcomes.failures) {
            text += fmt::format("  {}: {}\n", shortened(id, 48), why);
        }
        if (!outcomes.next.empty()) {
            text += fmt::format("stopped; --page '{}' continues\n", outcomes.next);
        }
        print(text);
    }
    return outcomes.failed > 0 ? exit_refused : exit_done;
}

int report_dry_run(const Context& context, const BulkAction& action, const Found& found) {
    if (context.json) {
        return say(context,
                   {{"verb", action.verb},
                    {"dry_run", true},
                    {"matched", found.count},
                    {"first", found.first}},
                   "");
    }
    std::string text = fmt::format("would {} {} workflows\n", action.verb, found.count);
    for (const std::string& id : found.first) {
        text += "  " + shortened(id, terminal_width() - 2) + "\n";
    }
    print(text);
    return exit_done;
}

}  // namespace

int run_bulk(const Context& context, const FlowRequest& request, const BulkAction& action) {
    const FlowFilter filter = parse_filter(request.where);
    FlowAccess flows(context);
    flow::ListInstances ask = listing_of(filter, flows);
    ask.limit = page_size;
    ask.page = request.page;
    const flow::Moment soon = flows.now() + std::chrono::milliseconds{1};
    ask.created_before = std::min(ask.created_before.value_or(soon), soon);
    const Found found = count_matches(context, flows, ask, action);
    if (request.dry_run) {
        return report_dry_run(context, action, found);
    }
    if (found.count > 0 && !confirmed(request, action, found.count)) {
        throw Error(Code::condition_failed,
                    Outcome::not_applied,
                    fmt::format("{} workflows match, and nothing was done", found.count));
    }
    return report(
        context, action, found.count, apply_all(context, flows, ask, action, found.count));
}

}  // namespace holdfast::app
