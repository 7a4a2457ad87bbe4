// Histories that are kept in files.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/log.hpp>
#include <holdfast/flow_engine/execution.hpp>
#include <holdfast/flow_engine/stored.hpp>
#include <holdfast/flow_testing/world.hpp>

namespace holdfast::flow::test {
namespace {

constexpr const char* golden_variable = "HOLDFAST_GOLDEN";

std::string read(const std::filesystem::path& file) {
    const std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) {
        throw Unexpected(fmt::format("{} cannot be read; {}=write in the environment writes it",
                                     file.string(),
                                     golden_variable));
    }
    return text.str();
}

void write(const std::filesystem::path& file, std::string_view text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    if (!out.flush()) {
        throw Unexpected(fmt::format("{} cannot be written", file.string()));
    }
}

std::string first_difference(std::string_view is, std::string_view should) {
    for (int line = 1;; ++line) {
        const std::string_view mine = is.substr(0, is.find('\n'));
        const std::string_view theirs = should.substr(0, should.find('\n'));
        if (mine != theirs) {
            return fmt::format("line {} is\n  {}\nand should be\n  {}",
                               line,
                               is.empty() ? "missing" : mine,
                               should.empty() ? "missing" : theirs);
        }
        is.remove_prefix(std::min(is.size(), mine.size() + 1));
        should.remove_prefix(std::min(should.size(), theirs.size() + 1));
    }
}

}  // namespace

std::string World::history(std::string_view id) {
    std::string text = encode(client_->history(id));
    if (!text.empty() && text.back() != '\n') {
        text += '\n';
    }
    return text;
}

void World::expect_history(std::string_view id, const std::filesystem::path& file) {
    const std::string is = history(id);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const char* const wish = std::getenv(golden_variable);
    if (wish != nullptr && std::string_view(wish) == "write") {
        write(file, is);
        return;
    }
    const std::string should = read(file);
    if (is != should) {
        throw Unexpected(fmt::format("the history of '{}' is not that of {}: {}",
                                     id,
                                     file.string(),
                                     first_difference(is, should)));
    }
}

void check_history(flow::detail::Program program,
                   const std::filesystem::path& file,
                   std::string instance,
                   ExecutionId execution) {
    ExportedHistory history;
    try {
        history = decode_export(read(file));
    } catch (const Undecodable& error) {
        throw Unexpected(fmt::format("{}: {}", file.string(), error.what()));
    }
    const bool told = !history.instance.empty();
    const std::unique_ptr<Logger> logger = make_logger({.level = Level::warn});
    const std::optional<FailureInfo> failure =
        check_replay(told ? history.instance : std::move(instance),
                     program,
                     std::move(history.events),
                     std::move(history.kv),
                     told ? history.execution : execution,
                     program_build_id(),
                     logger.get());
    if (failure) {
        throw Unexpected(
            fmt::format("the code does not do what {} says: {}", file.string(), failure->text()));
    }
}

}  // namespace holdfast::flow::test
