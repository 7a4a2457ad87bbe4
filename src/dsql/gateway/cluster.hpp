// What all connections to one cluster share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dialect/statement_rules.hpp"
#include "gateway/backend.hpp"
#include "gateway/fair_shared_mutex.hpp"
#include "gateway/upstream.hpp"

#include <holdfast/dsql/gateway.hpp>

namespace holdfast::dsql {

class Executor;

using Script = std::vector<CheckedStatement>;

// The version that the gateway reports.
inline constexpr std::string_view reported_version = "16.15";

// Whether CREATE INDEX may lack ASYNC, and what the PostgreSQL below calls that.
inline constexpr std::string_view sync_index_setting = "disable_sync_create_index";
inline constexpr std::string_view sync_index_setting_below = "dsql.disable_sync_create_index";

// Facts about a table that the gateway needs besides those of the statement check.
struct TableTraits {
    TableFacts facts;
    bool volatile_defaults = false;  // An insert would not give the same row twice.
    bool cascades = false;           // A change here may change rows elsewhere.
};

// A function of the client's own that writes, by itself or by calling another one.
struct WritingFunction {
    std::string name;
    std::string body;
    bool differs = false;  // It would not write the same rows twice.
};

// The rate at which connections may be opened, and how many there may be.
class Doorman {
public:
    Doorman(const GatewayLimits& limits, const Clock& clock);

    // The refusal of a new connection; empty admits it, until `leave`.
    [[nodiscard]] std::optional<ErrorResponse> enter();
    void leave();

private:
    const GatewayLimits& limits_;
    const Clock& clock_;
    std::mutex mutex_;
    int inside_ = 0;
    double tokens_;
    Steady refilled_;
};

// Safe to share between threads.
class Cluster {
public:
    // Prepares the database: schema sys, the rights of the role admin.
    Cluster(const GatewayOptions& options,
            const Upstream& upstream,
            const Clock& clock,
            std::string id,
            std::string database);

    [[nodiscard]] const GatewayOptions& options() const noexcept { return options_; }
    [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
    [[nodiscard]] const std::string& id() const noexcept { return id_; }
    [[nodiscard]] Doorman& doorman() noexcept { return doorman_; }
    // A new connection to the cluster's database that has logged in as this role.
    [[nodiscard]] std::unique_ptr<Backend> connect(std::string_view role);
    // Whether there is such a role that may log in, and is an ordinary one.
    [[nodiscard]] bool has_role(std::string_view role);
    // Whether a role may be used by this identity.
    [[nodiscard]] bool granted(std::string_view role, std::string_view arn);

    // Work that an ordinary role cannot do, done by the gateway's own role: the gateway makes
    // `text` from the meaning of a statement. It must not concern a powerful role. A rehearsal is
    // undone.
    enum class Mode : std::uint8_t { rehearse, perform };
    struct Work {
        std::string text;
        std::vector<std::string> roles;  // All that it names.
    };
    // The server's error, or ours; empty if it went well.
    [[nodiscard]] std::string administer(const Work& work, Mode mode);
    // How many bytes a value has once it is compressed, as the server below does it.
    [[nodiscard]] std::int64_t stored_size(std::string_view value);

    // Held around every statement that writes or locks, every replay, and every commit until its
    // flush. Under the exclusive lock all other executors with row locks are idle and can be moved
    // aside. Many may write at once as long as each of them can give way.
    [[nodiscard]] FairSharedMutex& write_mutex() noexcept { return write_mutex_; }

    // The cached check of a text. A bare name of a table is looked up in the schemas of `path`, an
    // array as PostgreSQL writes it, or in public if there is none; the result has it with its
    // schema.
    [[nodiscard]] std::shared_ptr<const Script> checked(std::string_view sql,
                                                        const Rules& rules,
                                                        const std::string& path);
    [[nodiscard]] TableName resolved(TableName name, const std::string& path);
    [[nodiscard]] std::optional<TableTraits> traits(const TableName& name);
    // Whether a statement may change more rows than it reports: by a cascade, or in a CTE.
    [[nodiscard]] bool ripples(const CheckedStatement& statement);
    // How many rows a writing statement changes at most, if that is known before it runs.
    [[nodiscard]] std::optional<std::int64_t> rows_at_most(const CheckedStatement& statement);

    // The catalogue's version, raised by every committed change of the schema.
    [[nodiscard]] std::uint64_t version();
    void schema_changed(const std::vector<TableName>& tables);
    // True if one of the tables has changed after that version.
    [[nodiscard]] bool changed_since(std::uint64_t version, const std::vector<TableName>& tables);

    void enter(int pid, const std::shared_ptr<Executor>& executor);
    void leave(int pid);
    [[nodiscard]] std::shared_ptr<Executor> find(int pid);
    // The backends that keep this one waiting.
    [[nodiscard]] std::vector<int> blockers_of(int pid);
    void cancel(int pid);
    // Ends every statement of every client, with its connection below.
    void cut_off();

    // Counts one more event at this point; the fault if a rule says so.
    [[nodiscard]] std::optional<GatewayFault> fault_at(FaultPoint point);
    [[nodiscard]] bool has_faults();
    void arm(const FaultRule& rule);
    void disarm();

    struct Counters {
        std::atomic<std::int64_t> opened = 0;
        std::atomic<std::int64_t> open = 0;
        std::atomic<std::int64_t> commits = 0;
        std::atomic<std::int64_t> conflicts = 0;
        std::atomic<std::int64_t> detached = 0;
        std::atomic<std::int64_t> replayed = 0;
        std::atomic<std::int64_t> exchanges = 0;
    } counters;

private:
    struct ArmedRule {
        FaultRule rule;
        int seen = 0;
    };

    [[nodiscard]] Table ask(const std::string& sql);
    [[nodiscard]] std::vector<WritingFunction> writing_functions();
    void look_into_functions(CheckedStatement& statement);
    void refuse_functions(CheckedStatement& statement);

    const GatewayOptions& options_;
    const Upstream& upstream_;
    const Clock& clock_;
    std::string id_;
    std::string database_;
    Doorman doorman_;
    FairSharedMutex write_mutex_;

    std::mutex control_mutex_;
    std::unique_ptr<Backend> control_;
    std::unordered_set<std::string> system_functions_;  // Names in pg_catalog.

    std::mutex catalogue_mutex_;
    std::uint64_t version_ = 1;
    std::map<std::string, std::uint64_t, std::less<>> changed_;
    std::map<std::string, TableTraits, std::less<>> traits_;
    std::optional<std::vector<WritingFunction>> writing_functions_;
    std::unordered_map<std::string, std::shared_ptr<const Script>> checked_;

    std::mutex executors_mutex_;
    std::unordered_map<int, std::weak_ptr<Executor>> executors_;

    std::mutex faults_mutex_;
    std::vector<ArmedRule> rules_;
};

}  // namespace holdfast::dsql
