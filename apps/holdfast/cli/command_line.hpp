// All verbs of `holdfast`, and what was parsed into them.
#pragma once

#include <string>
#include <variant>

#include "bench/bench.hpp"
#include "cli/cli.hpp"
#include "cli/command_parser.hpp"
#include "demo/command_line.hpp"
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
#include "server/server.hpp"

namespace holdfast::app {

class CommandLine : public CommandParser {
public:
    CommandLine();

    std::variant<Request, Answer> parse(int argc, const char* const* argv);

private:
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

    DemoRequests demo_;
    FlowRequest flow_;
    LockRequest lock_;
    DsqlLeasesRequest dsql_leases_;
    DsqlLintRequest dsql_lint_;
    DsqlTokenRequest dsql_token_;
    DsqlGatewayRequest dsql_gateway_;
    DsqlLocalRequest dsql_local_;
    PoolsimRequest poolsim_;
    SchemaRequest schema_;
    ServerRequest server_;
    BenchRequest bench_;
    std::string shell_;
};

}  // namespace holdfast::app
