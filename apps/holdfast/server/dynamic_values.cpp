#include "server/dynamic_values.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <string_view>
#include <utility>

#include "cli/answer.hpp"
#include <fmt/format.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/units.hpp>

namespace holdfast::app {
namespace {

using server::ServerOptions;

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
        return static_cast<char>(std::tolower(letter));
    });
    return lower;
}

std::int64_t count_in(const std::string& key, const Json& value, std::int64_t max) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 ||
        value.get<std::int64_t>() > max) {
        throw InvalidArgument(
            fmt::format("the dynamic value of {} is not a number from 1 to {}", key, max));
    }
    return value.get<std::int64_t>();
}

// A number counts seconds; a text has units, such as "1m30s".
std::chrono::milliseconds time_in(const std::string& key, const Json& value) {
    constexpr std::chrono::hours longest{1};
    std::chrono::milliseconds time{-1};
    if (value.is_number() && value.get<double>() < std::chrono::seconds(longest).count()) {
        time = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::duration<double>(value.get<double>()));
    } else if (value.is_string()) {
        time = std::chrono::duration_cast<std::chrono::milliseconds>(
            parse_duration(value.get<std::string>()));
    }
    if (time < std::chrono::milliseconds{0} || time > longest) {
        throw InvalidArgument(
            fmt::format("the dynamic value of {} is not a time of at most an hour", key));
    }
    return time;
}

std::vector<std::string> names_in(const std::string& key, const Json& value) {
    const bool all_texts = value.is_array() && std::ranges::all_of(value, [](const Json& each) {
                               return each.is_string();
                           });
    if (!all_texts) {
        throw InvalidArgument(fmt::format("the dynamic value of {} is not a list of texts", key));
    }
    return value.get<std::vector<std::string>>();
}

using Apply = void (*)(const std::string& key, const Json& value, ServerOptions& options);

constexpr std::int64_t any_count = std::int64_t{1} << 40;
constexpr std::int64_t id_bytes_max = 1000;       // What the store takes.
constexpr std::int64_t blob_bytes_max = 4 << 20;  // What a request takes.

const std::array<std::pair<std::string_view, Apply>, 9> honoured{{
    {"limit.maxidlength",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.id_bytes = static_cast<std::size_t>(count_in(key, value, id_bytes_max));
     }},
    {"limit.blobsize.error",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.blob_bytes = static_cast<std::size_t>(count_in(key, value, blob_bytes_max));
     }},
    {"limit.historycount.error",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.history_events = count_in(key, value, any_count);
     }},
    {"limit.historysize.error",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.history_bytes = count_in(key, value, any_count);
     }},
    {"limit.historycount.suggestcontinueasnew",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.history_events_suggest = count_in(key, value, any_count);
     }},
    {"limit.historysize.suggestcontinueasnew",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.history_bytes_suggest = count_in(key, value, any_count);
     }},
    {"matching.longpollexpirationinterval",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.limits.poll = time_in(key, value);
     }},
    {"system.shutdowndrainduration",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         options.drain = time_in(key, value);
     }},
    {"frontend.httpallowedhosts",
     [](const std::string& key, const Json& value, ServerOptions& options) {
         if (options.http) {
             options.http->hosts = names_in(key, value);
         }
     }},
}};

// What they switch is as they say, or is not a thing of this server.
constexpr std::array<std::string_view, 20> needless{
    "frontend.activityapisenabled",
    "frontend.enableexecutemultioperation",
    "frontend.enableserverversioncheck",
    "frontend.listworkersenabled",
    "history.enablechasm",
    "history.enablechasmcallbacks",
    "history.enablechasmsignalbacklinks",
    "history.enablerequestidreflinks",
    "history.enablesignalwithstartfromworkflow",
    "history.enabletransitionhistory",
    "history.enableupdatecallbacks",
    "limit.blobsize.warn",
    "limit.historycount.warn",
    "limit.historysize.warn",
    "limit.memosize.warn",
    "matching.usenewmatcher",
    "system.enablecancelactivityworkercommand",
    "system.forcesearchattributescacherefreshonread",
    "system.refreshnexusendpointsminwait",
    "worker.buildidscavengerenabled"};

}  // namespace

std::vector<std::string> apply_dynamic_values(const std::vector<std::string>& values,
                                              ServerOptions& options) {
    std::vector<std::string> without_effect;
    for (const std::string& text : values) {
        const std::size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw InvalidArgument(fmt::format("--dynamic-config-value '{}' is not KEY=JSON", text));
        }
        const std::string key = text.substr(0, equals);
        const Json value = Json::parse(text.substr(equals + 1), nullptr, false);
        if (value.is_discarded()) {
            throw InvalidArgument(fmt::format(
                "the dynamic value of {} is not JSON; a text needs quotes: {}='\"1s\"'", key, key));
        }
        const std::string known = in_lower_case(key);
        const auto* const found =
            std::ranges::find(honoured, known, &std::pair<std::string_view, Apply>::first);
        if (found != honoured.end()) {
            found->second(key, value, options);
        } else if (std::ranges::find(needless, known) == needless.end()) {
            without_effect.push_back(key);
        }
    }
    return without_effect;
}

}  // namespace holdfast::app
