// The tree of verbs, and what was parsed into it.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "bench/bench.hpp"
#include "cli/cli.hpp"
#include "cli/command_tree.hpp"
#include "demo/demo.hpp"
#include "dsql/doctor.hpp"
#include "dsql/gateway.hpp"
#include "dsql/leases.hpp"
#include "dsql/lint.hpp"
#include "dsql/local.hpp"
#include "dsql/token.hpp"
#include "flow/flow.hpp"
#include "lock/lock.hpp"
#include "poolsim/poolsim.hpp"
#include "schema/schema.hpp"
#include <CLI/CLI.hpp>

namespace holdfast::app {

// For the footer of a verb's help.
inline constexpr const char* everywhere_help =
    "Global options: --db, --json, --config, --log-level, --log-format, --quiet; see holdfast "
    "--help.\n";

class CommandLine {
public:
    CommandLine();

    std::variant<Request, Answer> parse(int argc, const char* const* argv);

private:
    struct Flag {
        CLI::Option* option;
        std::string key;
    };

    void add_globals();
    void add_demo();
    void add_flow();
    void add_flow_looks(CLI::App& noun);
    void add_where(CLI::App& verb);
    void add_many(CLI::App& verb);
    void add_flow_talks(CLI::App& noun);
    void add_flow_house(CLI::App& noun);
    void add_lock();
    void add_lock_takes(CLI::App& noun);
    void add_lock_runs(CLI::App& noun);
    void add_lock_house(CLI::App& noun);
    void add_dsql();
    void add_dsql_leases(CLI::App& noun);
    void add_dsql_lint(CLI::App& noun);
    void add_dsql_doctor(CLI::App& noun);
    void add_dsql_token(CLI::App& noun);
    void add_dsql_gateway(CLI::App& noun);
    void add_dsql_local(CLI::App& noun);
    void add_dsql_behaviour(CLI::App& verb, DsqlBehaviour& to);
    void add_poolsim();
    void add_poolsim_run(CLI::App& noun);
    void add_poolsim_many(CLI::App& noun);
    void add_poolsim_seeds(CLI::App& verb);
    void add_poolsim_plot(CLI::App& verb);
    void add_schema();
    void add_bench();
    void add_config();
    void add_completion();
    void add_version();

    // A verb of flow; `id`: about one instance.
    CLI::App* add_flow_verb(CLI::App& noun,
                            const char* name,
                            const char* help,
                            int (*run)(const Context&, const FlowRequest&),
                            bool id = true);
    CLI::App* add_lock_verb(
        CLI::App& noun, const char* name, const char* help, LockVerb run, bool key = true);
    CLI::App* add_poolsim_verb(CLI::App& noun,
                               const char* name,
                               const char* help,
                               int (*run)(const Context&, const PoolsimRequest&));
    // How long to wait for a lock, and what to write beside it.
    void add_lock_wait(CLI::App& verb);
    void add_lock_tables(CLI::App& noun);
    // A noun or a verb. `command` runs if nothing more follows it.
    CLI::App* add(CLI::App& above, const char* name, const char* help, Command command = {});
    void add_setting(CLI::App& to,
                     const char* names,
                     const char* key,
                     const char* help,
                     Takes takes = Takes::text);
    void takes_choice(CLI::Option* option, std::vector<std::string> choices);

    // The command that the words name, as far as they were understood.
    [[nodiscard]] const CLI::App& deepest() const;
    [[noreturn]] void refuse(const CLI::ParseError& error) const;
    [[noreturn]] void refuse_word(const std::string& word) const;
    [[nodiscard]] OptionNode describe(const CLI::Option& option) const;
    [[nodiscard]] CommandNode describe(const CLI::App& command) const;

    CLI::App root_{"Durable execution and coordination on the SQL database you already have.",
                   "holdfast"};
    std::map<const CLI::App*, Command> commands_;
    std::map<const CLI::Option*, OptionNode> hints_;  // What completion cannot see from outside.
    std::vector<Flag> settings_;
    Request request_;
    DemoRequest demo_;
    DemoWorkerRequest demo_worker_;
    FlowRequest flow_;
    LockRequest lock_;
    DsqlLeasesRequest dsql_leases_;
    DsqlLintRequest dsql_lint_;
    DsqlTokenRequest dsql_token_;
    DsqlGatewayRequest dsql_gateway_;
    DsqlLocalRequest dsql_local_;
    PoolsimRequest poolsim_;
    SchemaRequest schema_;
    BenchRequest bench_;
    std::string shell_;
};

}  // namespace holdfast::app
