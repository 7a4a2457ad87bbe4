#include "dsql/lint.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/dsql/lint.hpp>

namespace holdfast::app {
namespace {

constexpr std::string_view standard_input = "-";

std::string read(const std::string& file) {
    std::ifstream opened;
    std::error_code ignored;
    if (file != standard_input && !std::filesystem::is_directory(file, ignored)) {
        opened.open(file, std::ios::binary);
    }
    std::istream& in = file == standard_input ? std::cin : opened;
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad() || (file != standard_input && !opened.is_open())) {
        throw InvalidArgument(fmt::format("cannot read '{}'; name an existing file", file));
    }
    return text;
}

void write(const std::string& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    if (!out.flush()) {
        throw InvalidArgument(fmt::format("cannot write '{}'; check its permissions", file));
    }
}

std::string_view severity_of(const dsql::Finding& finding) {
    return finding.severity == dsql::Severity::error ? "error" : "hint";
}

std::string name_of(const std::string& file) {
    return file == standard_input ? "<stdin>" : file;
}

Json to_json(const std::string& file, const dsql::Finding& finding) {
    return {{"file", name_of(file)},
            {"line", finding.line},
            {"column", finding.column},
            {"rule", finding.rule},
            {"severity", severity_of(finding)},
            {"sqlstate", finding.sqlstate},
            {"reason", finding.reason},
            {"rewrite", finding.rewrite},
            {"fixable", !finding.fix.empty()}};
}

std::string to_text(const std::string& file, const dsql::Finding& finding) {
    std::string text = fmt::format("{}:{}:{}: {}: {}{}\n",
                                   name_of(file),
                                   finding.line,
                                   finding.column,
                                   finding.rule,
                                   finding.severity == dsql::Severity::hint ? "hint: " : "",
                                   finding.reason);
    if (!finding.rewrite.empty()) {
        text += fmt::format("    {}\n", finding.rewrite);
    }
    return text;
}

// The result for one file.
struct Report {
    std::vector<dsql::Finding> findings;
    std::size_t fixes = 0;
    std::string text;  // Standard input, mended.
};

Report lint(const std::string& file, bool fix) {
    const std::string text = read(file);
    if (!fix) {
        return {.findings = dsql::lint(text), .fixes = 0, .text = {}};
    }
    dsql::Fixed fixed = dsql::lint_fix(text);
    if (file != standard_input && fixed.fixes > 0) {
        write(file, fixed.text);
    }
    return {.findings = std::move(fixed.left),
            .fixes = fixed.fixes,
            .text = file == standard_input ? std::move(fixed.text) : std::string{}};
}

}  // namespace

int dsql_lint(const Context& context, const DsqlLintRequest& request) {
    Json findings = Json::array();
    std::string lines;
    std::string mended;
    std::size_t errors = 0;
    std::size_t fixes = 0;
    for (const std::string& file : request.files) {
        const Report report = lint(file, request.fix);
        fixes += report.fixes;
        mended += report.text;
        for (const dsql::Finding& finding : report.findings) {
            errors += finding.severity == dsql::Severity::error ? 1 : 0;
            findings.push_back(to_json(file, finding));
            lines += to_text(file, finding);
        }
    }
    if (context.json) {
        Json answer{{"findings", findings}, {"errors", errors}, {"fixes", fixes}};
        if (request.fix && std::ranges::count(request.files, standard_input) > 0) {
            answer["text"] = mended;
        }
        // JSON is UTF-8, a script may be anything.
        print(answer.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    } else if (mended.empty()) {
        print(lines);
    } else {  // The new text takes standard output.
        print(mended);
        fmt::print(stderr, "{}", lines);
    }
    return errors > 0 ? exit_refused : exit_done;
}

}  // namespace holdfast::app
