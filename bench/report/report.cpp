#include <holdfast/bench/report.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>

namespace holdfast::bench {
namespace {

using Json = nlohmann::ordered_json;  // In the order a person would read it.

Json machine_to_json(const Machine& machine) {
    return {{"cores", machine.cores},
            {"cpu", machine.cpu},
            {"kernel", machine.kernel},
            {"memory_bytes", machine.memory_bytes},
            {"flush_us", machine.flush_us},
            {"load", machine.load},
            {"filesystem", machine.filesystem}};
}

Machine machine_from_json(const Json& json) {
    return {.cores = json.at("cores").get<int>(),
            .cpu = json.at("cpu").get<std::string>(),
            .kernel = json.at("kernel").get<std::string>(),
            .memory_bytes = json.at("memory_bytes").get<std::int64_t>(),
            .flush_us = json.at("flush_us").get<double>(),
            .load = json.at("load").get<double>(),
            .filesystem = json.at("filesystem").get<std::string>()};
}

Json result_to_json(const Result& result) {
    const auto quartiles = [](const Spread& spread) { return Json{spread.lower, spread.upper}; };
    Json json{{"name", result.name},
              {"ours", result.ours.median},
              {"limit", result.limit.median},
              {"unit", result.unit},
              {"ratio", result.ratio.median},
              {"floor", nullptr},
              {"ours_quartiles", quartiles(result.ours)},
              {"limit_quartiles", quartiles(result.limit)},
              {"ratio_quartiles", quartiles(result.ratio)},
              {"rounds", result.ratio.rounds.size()},
              {"counts", Json::object()},
              {"ours_cpu_us", result.ours_cpu_us},
              {"limit_cpu_us", result.limit_cpu_us},
              {"ours_rounds", result.ours.rounds},
              {"limit_rounds", result.limit.rounds},
              {"ratio_rounds", result.ratio.rounds}};
    if (result.floor) {
        json["floor"] = *result.floor;
    }
    for (const Count& count : result.counts) {
        json["counts"][count.name] = count.value;
    }
    return json;
}

// Medians and quartiles are computed again, so a page cannot disagree with its own rounds.
Result result_from_json(const Json& json) {
    const auto spread = [&json](const char* key) {
        return spread_of(json.at(key).get<std::vector<double>>());
    };
    Result result{.name = json.at("name").get<std::string>(),
                  .unit = json.at("unit").get<std::string>(),
                  .ours = spread("ours_rounds"),
                  .limit = spread("limit_rounds"),
                  .ratio = spread("ratio_rounds"),
                  .floor = {},
                  .ours_cpu_us = json.at("ours_cpu_us").get<double>(),
                  .limit_cpu_us = json.at("limit_cpu_us").get<double>(),
                  .counts = {}};
    if (!json.at("floor").is_null()) {
        result.floor = json.at("floor").get<double>();
    }
    for (const auto& [name, value] : json.at("counts").items()) {
        result.counts.push_back({name, value.get<double>()});
    }
    return result;
}

}  // namespace

std::string grouped(double value) {
    const bool small = std::abs(value) < 100 && value != std::round(value);
    std::string text = small ? fmt::format("{:.2f}", value) : fmt::format("{:.0f}", value);
    const std::size_t end = std::min(text.find('.'), text.size());
    const std::size_t begin = text.starts_with('-') ? 1 : 0;
    for (std::size_t at = end; at > begin + 3;) {
        at -= 3;
        text.insert(at, 1, ',');
    }
    return text;
}

std::string to_json(const Report& report) {
    Json json{{"bench", report.bench},
              {"time", report.time},
              {"machine", machine_to_json(report.machine)},
              {"durability", report.durability},
              {"results", Json::array()},
              {"failed", Json::array()},
              {"peak_memory_bytes", report.peak_memory_bytes}};
    for (const Result& result : report.results) {
        json["results"].push_back(result_to_json(result));
    }
    for (const Unmeasured& unmeasured : report.failed) {
        json["failed"].push_back({{"name", unmeasured.name}, {"error", unmeasured.error}});
    }
    return json.dump();
}

Report report_from_json(std::string_view text) {
    try {
        const Json json = Json::parse(text);
        Report report{.bench = json.at("bench").get<std::string>(),
                      .time = json.at("time").get<std::string>(),
                      .machine = machine_from_json(json.at("machine")),
                      .durability = json.at("durability").get<Durability>(),
                      .results = {},
                      .failed = {},
                      .peak_memory_bytes = json.at("peak_memory_bytes").get<std::int64_t>()};
        for (const Json& result : json.at("results")) {
            report.results.push_back(result_from_json(result));
        }
        if (json.contains("failed")) {  // A page may hold reports of earlier builds.
            for (const Json& failed : json.at("failed")) {
                report.failed.push_back({.name = failed.at("name").get<std::string>(),
                                         .error = failed.at("error").get<std::string>()});
            }
        }
        return report;
    } catch (const Json::exception& error) {
        throw InvalidArgument(fmt::format("this is not a benchmark's JSON: {}", error.what()));
    }
}

}  // namespace holdfast::bench
