#include "migration_text.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/statement.hpp>

namespace holdfast::sql {
namespace {

constexpr std::string_view only_mark = "-- only:";

[[noreturn]] void refuse(const MigrationFile& file, std::string_view why) {
    throw InvalidArgument(fmt::format("migration {} {}; correct the file", file.name, why));
}

// Whether an `-- only:` line names the dialect; refuses names that no dialect has.
bool names(const MigrationFile& file, std::string_view list, const Dialect& dialect) {
    std::istringstream words{std::string(list)};
    bool found = false;
    for (std::string word; words >> word;) {
        if (std::ranges::find(every_dialect(), word, &Dialect::name) == every_dialect().end()) {
            refuse(file, fmt::format("names the unknown database '{}'", word));
        }
        found = found || word == dialect.name;
    }
    return found;
}

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) {
        return {};
    }
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace

std::vector<std::string> migration_steps(const MigrationFile& file,
                                         const Dialect& dialect,
                                         const TableNames* names_of_tables) {
    std::vector<std::string> steps;
    std::string statement;
    bool wanted = true;
    bool quoted = false;  // Inside '...', where neither `;` nor `--` means anything.
    std::istringstream lines{std::string(file.text)};
    for (std::string line; std::getline(lines, line);) {
        if (!quoted && trimmed(line).starts_with(only_mark)) {
            wanted = names(file, trimmed(line).substr(only_mark.size()), dialect);
            continue;
        }
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (line[i] == '\'') {
                quoted = !quoted;
            }
            if (!quoted && line.compare(i, 2, "--") == 0) {
                break;
            }
            if (quoted || line[i] != ';') {
                statement += line[i];
                continue;
            }
            const std::string text{trimmed(statement)};
            if (wanted && !text.empty()) {
                steps.push_back(render(dialect, file.name, text, names_of_tables).text);
            }
            statement.clear();
            wanted = true;
        }
        statement += '\n';
    }
    if (!trimmed(statement).empty()) {
        refuse(file, "ends in a statement without `;`");
    }
    return steps;
}

}  // namespace holdfast::sql
