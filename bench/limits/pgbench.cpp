#include "limits/pgbench.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <libpq-fe.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/subprocess.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::bench {
namespace {

// Beyond its own time, for connecting and for a slow machine.
constexpr std::chrono::seconds pgbench_patience{60};

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

// Options of the URL that are ours alone (pool=8) are unknown to libpq.
std::string url_for_libpq(const sql::Url& url) {
    const Options known{PQconndefaults(), &PQconninfoFree};
    std::string text = "postgresql:" + url.rest;
    char separator = '?';
    for (const auto& [name, value] : url.options) {
        for (const PQconninfoOption* option = known.get(); option && option->keyword; ++option) {
            if (name == option->keyword) {
                text += fmt::format("{}{}={}", separator, name, value);
                separator = '&';
            }
        }
    }
    return text;
}

// The connection's parameters travel in the environment, where other users cannot read the
// password; on the command line they could.
std::vector<std::string> environment_for(const std::string& url) {
    std::vector<std::string> variables;
    char* problem = nullptr;
    const Options options{PQconninfoParse(url.c_str(), &problem), &PQconninfoFree};
    const std::unique_ptr<char, decltype(&PQfreemem)> owned{problem, &PQfreemem};
    if (!options) {
        throw InvalidArgument(problem != nullptr ? problem : "the database URL is malformed");
    }
    for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
        if (option->val != nullptr && option->envvar != nullptr) {
            variables.push_back(fmt::format("{}={}", option->envvar, option->val));
        }
    }
    return variables;
}

std::string output_of(Subprocess& child, Deadline deadline) {
    std::string output;
    while (const auto more = child.read(deadline)) {
        if (more->empty()) {
            return output;
        }
        output += *more;
    }
    throw Error(Code::unavailable,
                Outcome::not_applied,
                "pgbench does not end; look whether the server still answers");
}

// The number after `label` in "tps = 8123.4 (without initial connection time)".
std::optional<double> number_after(std::string_view text, std::string_view label) {
    const std::size_t at = text.find(label);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    return std::strtod(std::string(text.substr(at + label.size(), 40)).c_str(), nullptr);
}

std::string last_line(std::string text) {
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Work run_pgbench(const PgbenchRun& run, const std::stop_token& stop) {
    const auto time = std::chrono::ceil<std::chrono::seconds>(run.time);
    std::vector<std::string> environment = environment_for(url_for_libpq(sql::parse_url(run.url)));
    if (!run.password.empty()) {
        environment.push_back("PGPASSWORD=" + run.password);
    }
    Subprocess child{{.arguments = {"pgbench",
                                    "--protocol=prepared",
                                    "--no-vacuum",
                                    fmt::format("--client={}", run.clients),
                                    fmt::format("--jobs={}", std::min(run.clients, 2)),
                                    fmt::format("--time={}", time.count()),
                                    fmt::format("--max-tries={}", run.tries_max),
                                    fmt::format("--file={}", run.script.string())},
                      .environment = std::move(environment),
                      .with_errors = true}};
    std::string output;
    {
        const std::stop_callback interrupt{stop, [&child] { child.kill(); }};
        output = output_of(child, Deadline::after(time + pgbench_patience));
    }
    const bool succeeded = child.wait();
    if (stop.stop_requested()) {
        return {};
    }
    const auto rate = number_after(output, "tps = ");
    const auto transactions = number_after(output, "number of transactions actually processed: ");
    if (!succeeded || !rate || !transactions || *rate <= 0) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("pgbench failed: {}", last_line(output)));
    }
    return {.operations = *transactions, .seconds = *transactions / *rate, .counts = {}};
}

}  // namespace holdfast::bench
