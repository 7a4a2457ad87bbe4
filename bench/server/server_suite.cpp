#include <holdfast/server_bench/server_suite.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "plan.hpp"
#include "target.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::server_bench {
namespace {

using bench::Durability;
using bench::Pair;
using bench::Work;

constexpr int in_flight_usual = 64;
// Against another server, with 64 in flight.
constexpr double versus_floor = 5;

std::vector<std::string_view> scenarios() {
    std::vector<std::string_view> names;
    for (const Plan& plan : plans()) {
        names.push_back(plan.name);
    }
    names.insert(names.end(), {"backlog", "idle"});
    return names;
}

std::string_view scenario_of(const Pair& pair) {
    const std::size_t begin = pair.name.find('.') + 1;
    return std::string_view(pair.name).substr(begin, pair.name.rfind('.') - begin);
}

bool embedded(const std::string& url) {
    return sql::parse_url(url).embedded();
}

class ServerSuite final : public bench::Suite {
public:
    ServerSuite(const bench::WaitTicket& place, ServerSuiteOptions options)
        : place_(place), options_(std::move(options)) {
        if (options_.targets.size() > targets_max) {
            throw InvalidArgument(
                fmt::format("at most {} servers can be compared; leave --target out of the others",
                            targets_max));
        }
        const auto addresses = static_cast<std::size_t>(std::ranges::count_if(
            options_.targets, [](const auto& target) { return target != our_target; }));
        if (options_.targets.size() > addresses + 1) {
            throw InvalidArgument("one --target can be 'ours'; name another server as well");
        }
        if (options_.pids.size() > addresses) {
            throw InvalidArgument(
                "--pid names the process of a --target HOST:PORT; there are more of them");
        }
    }

    std::vector<Pair> pairs() override {
        std::vector<Pair> pairs;
        for (const std::string_view scenario : scenarios()) {
            if (options_.targets.size() == targets_max) {
                pairs.push_back(versus(scenario));
            } else if (!options_.targets.empty() && options_.targets[0] != our_target) {
                pairs.push_back(against_bare("target", scenario));
            } else {
                if (place_.db.empty() || embedded(place_.db)) {
                    pairs.push_back(against_bare("sqlite", scenario));
                }
                if (place_.db.empty() || !embedded(place_.db)) {
                    pairs.push_back(against_bare("postgres", scenario));
                }
            }
        }
        return pairs;
    }

    Durability prepare(std::span<const Pair> chosen) override {
        for (const Pair& pair : chosen) {
            const std::string side = pair.name.substr(0, pair.name.find('.'));
            if (side == "versus") {
                open("versus", 0);
                open("second", 1);
            } else {
                open(side, 0);
            }
        }
        return durability_;
    }

    bool able(const Pair& pair) override {
        return scenario_of(pair) != "updates" ||
               std::ranges::all_of(targets_,
                                   [](const auto& entry) { return entry.second.has_updates(); });
    }

private:
    [[nodiscard]] int in_flight() const {
        return place_.clients > 0 ? place_.clients : in_flight_usual;
    }
    [[nodiscard]] std::string name_of(std::string_view side, std::string_view scenario) const {
        return fmt::format("{}.{}.k{}", side, scenario, in_flight());
    }

    Pair against_bare(const std::string& side, std::string_view scenario) {
        return {.name = name_of(side, scenario),
                .unit = "workflows/s",
                .ours =
                    [this, side, scenario](auto time, const auto& stop) {
                        return targets_.at(side).run(scenario, time, stop);
                    },
                .limit =
                    [this, side](auto time, const auto& stop) {
                        return bare_.at(database_of(side))->limit(in_flight(), time, stop);
                    },
                .floor = {}};
    }

    Pair versus(std::string_view scenario) {
        const bool promised = options_.targets[0] == our_target && in_flight() == in_flight_usual &&
                              (scenario == "hello" || scenario == "chain1");
        return {.name = name_of("versus", scenario),
                .unit = "workflows/s",
                .ours =
                    [this, scenario](auto time, const auto& stop) {
                        last_ = targets_.at("versus").run(scenario, time, stop);
                        return last_;
                    },
                .limit =
                    [this, scenario](auto time, const auto& stop) {
                        Work work = targets_.at("second").run(scenario, time, stop);
                        tell_as_limit(work, last_);
                        return work;
                    },
                .floor = promised ? std::optional(versus_floor) : std::nullopt};
    }

    // The database that a side is compared with, or that ours is put beside.
    [[nodiscard]] std::string database_of(const std::string& side) const {
        if (side == "sqlite" || side == "postgres") {
            return side;
        }
        return place_.db.empty() || embedded(place_.db) ? "sqlite" : "postgres";
    }

    bench::BareDatabase& bare(const std::string& name) {
        std::unique_ptr<bench::BareDatabase>& one = bare_[name];
        if (!one) {
            one =
                name == "sqlite" ? bench::bare_file(place_) : bench::bare_server(place_, place_.db);
            durability_[name] = one->durability();
        }
        return *one;
    }

    void open(const std::string& side, std::size_t number) {
        if (targets_.contains(side)) {
            return;
        }
        const TargetOptions options{.name_space = options_.name_space,
                                    .in_flight = in_flight(),
                                    .open = options_.open,
                                    .round_time = options_.round_time};
        const std::string address =
            number < options_.targets.size() ? options_.targets[number] : our_target;
        if (address == our_target) {
            targets_.try_emplace(side, options_.program, bare(database_of(side)), options);
        } else {
            if (side == "target") {
                (void)bare(database_of(side));
            }
            durability_[address]["durability"] = "unknown";
            targets_.try_emplace(side, address, pid_of(number), options);
        }
        targets_.at(side).prepare(place_.stop);
    }

    [[nodiscard]] std::optional<std::int64_t> pid_of(std::size_t number) const {
        const auto before = static_cast<std::size_t>(
            std::count_if(options_.targets.begin(),
                          options_.targets.begin() + static_cast<std::ptrdiff_t>(number),
                          [](const auto& target) { return target != our_target; }));
        return before < options_.pids.size() ? std::optional(options_.pids[before]) : std::nullopt;
    }

    const bench::WaitTicket& place_;
    const ServerSuiteOptions options_;
    Durability durability_;
    std::map<std::string, std::unique_ptr<bench::BareDatabase>> bare_;
    std::map<std::string, Target> targets_;  // By side: sqlite, postgres, target, versus, second.
    Work last_;                              // Of the first of two targets.
};

}  // namespace

std::unique_ptr<bench::Suite> make_server_suite(const bench::WaitTicket& place,
                                                ServerSuiteOptions options) {
    return std::make_unique<ServerSuite>(place, std::move(options));
}

}  // namespace holdfast::server_bench
