// The words of `holdfast dsql`.
#include "command_line.hpp"

namespace holdfast::app {

void CommandLine::add_dsql() {
    CLI::App* noun = add(root_, "dsql", "Amazon Aurora DSQL: what it takes, without a cluster.");
    noun->require_subcommand(1);
    add_dsql_lint(*noun);
}

void CommandLine::add_dsql_lint(CLI::App& noun) {
    CLI::App* verb =
        add(noun,
            "lint",
            "Say what the service would refuse in these scripts, and what to write instead.",
            [this](const Context& context) { return dsql_lint(context, dsql_lint_); });
    hints_[verb->add_option("files", dsql_lint_.files, "SQL scripts; - is standard input.")
               ->required()]
        .takes = Takes::file;
    verb->add_flag("--fix", dsql_lint_.fix, "Rewrite what can be rewritten safely.");
}

}  // namespace holdfast::app
