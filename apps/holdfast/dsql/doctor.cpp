#include "dsql/doctor.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "cli/times.hpp"
#include "database.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/dsql/endpoint.hpp>
#include <holdfast/dsql/fleet.hpp>
#include <holdfast/dsql/leases.hpp>
#include <holdfast/dsql/source.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/url.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds doctor_patience{10};
constexpr sql::Statement look{
    "doctor.look",
    "SELECT version() AS version, CAST(extract(epoch FROM now()) * 1000 AS bigint) AS now_ms"};

// What the service allows, as documented.
constexpr int cluster_connections = 10'000;
constexpr std::chrono::minutes connection_life{60};

struct Finding {
    std::string name;
    std::string state;   // ok, failed, not tried
    std::string detail;  // What was found, or what went wrong and the cure.
};

// Runs checks in order until one fails.
class Examination {
public:
    void check(const char* name, const std::function<std::string()>& look_at) {
        if (status_ != exit_done) {
            findings_.push_back({name, "not tried", ""});
            return;
        }
        try {
            findings_.push_back({name, "ok", look_at()});
        } catch (const std::exception& failure) {
            findings_.push_back({name, "failed", sentence_of(failure)});
            status_ = exit_code_of(failure);
        }
    }

    [[nodiscard]] const std::vector<Finding>& findings() const noexcept { return findings_; }
    [[nodiscard]] int status() const noexcept { return status_; }

private:
    std::vector<Finding> findings_;
    int status_ = exit_done;
};

// The steps on the way to one cluster; each leaves behind what the next one needs.
class Patient {
public:
    Patient(const Context& context, const sql::Url& url)
        : context_(context),
          url_(url),
          fleet_(dsql::fleet_config(context.config)),
          target_(dsql::parse_target(url, "holdfast", dsql::usual_region(fleet_.region))),
          chain_(std::make_shared<dsql::CredentialChain>(
              dsql::CredentialOptions{.profile = target_.profile,
                                      .region = target_.key.region,
                                      .logger = &context.logger})) {}

    std::string region() const {
        const bool named = dsql::region_of(target_.key.host).has_value();
        return fmt::format("{}, by the {}",
                           target_.key.region,
                           url_.options.contains("region") ? "URL"
                           : named                         ? "endpoint's name"
                                                           : "settings or the environment");
    }

    std::string certificates() const {
        const std::string& file = target_.params.at("sslrootcert");
        std::error_code fault;
        if (!std::filesystem::is_regular_file(file, fault)) {
            throw InvalidArgument(fmt::format(
                "there is no file {} with certificates; install ca-certificates or name another "
                "one with ?sslrootcert=",
                file));
        }
        return fmt::format("{}, sslmode {}", file, target_.params.at("sslmode"));
    }

    std::string credentials() {
        keys_ = chain_->get(Deadline::after(doctor_patience), context_.stop);
        return fmt::format(
            "{} from the {}{}",
            keys_.access_key_id,
            chain_->source(),
            keys_.expires
                ? ", until " + moment_text(std::chrono::floor<milliseconds>(*keys_.expires))
                : "");
    }

    std::string token() const {
        const dsql::Action action = dsql::action_of(target_.key.user);
        const std::string token = dsql::make_token({.host = target_.key.host,
                                                    .region = target_.key.region,
                                                    .action = action,
                                                    .life = fleet_.token_life},
                                                   keys_,
                                                   system_clock().wall_now());
        return fmt::format("{} for the user {}, {} bytes, valid for {}",
                           dsql::to_string(action),
                           target_.key.user,
                           token.size(),
                           elapsed(life_left(token)));
    }

    std::string login(const std::string& url) {
        const auto began = std::chrono::steady_clock::now();
        db_.emplace(url, database_options(context_));
        return fmt::format(
            "{}:{} took {}", target_.key.host, target_.params.at("port"), elapsed(since(began)));
    }

    std::string answer() {
        const auto began = std::chrono::steady_clock::now();
        const sql::Result result = db_->run("DoctorLook", {.stop = context_.stop}, look);
        const auto [version, now_ms] = result.rows[0].as<std::string, std::int64_t>();
        server_now_ = std::chrono::sys_time<milliseconds>{milliseconds{now_ms}};
        return fmt::format("{} in {}", version, elapsed(since(began)));
    }

    std::string clock() const {
        const auto ours = std::chrono::floor<milliseconds>(system_clock().wall_now());
        const auto apart = std::chrono::abs(ours - server_now_);
        if (apart > dsql::clock_skew_max) {
            throw Error(Code::condition_failed,
                        Outcome::not_applied,
                        fmt::format("the clocks of this machine and of the server differ by {}, "
                                    "and 5 minutes are allowed; correct this machine's clock",
                                    elapsed(apart)));
        }
        return fmt::format("{} from the server's", elapsed(apart));
    }

    std::string limits() const {
        const auto pool = url_.options.find("pool");
        return fmt::format(
            "a pool of {} out of {} connections per cluster; each is retired before {} min; a "
            "transaction has 3000 rows, 10 MiB and 300 s",
            pool == url_.options.end() ? std::to_string(sql::DatabaseOptions{}.connections)
                                       : pool->second,
            cluster_connections,
            connection_life.count());
    }

    // Whether the tables with the shared limits can be reached.
    std::string fleet() const {
        dsql::LeaseAdmin tables({.region = target_.key.region,
                                 .dynamodb_endpoint = fleet_.dynamodb_endpoint,
                                 .credentials = chain_});
        const auto there = [&](const std::string& table) {
            tables.expect(table, Deadline::after(doctor_patience), context_.stop);
            return table;
        };
        const std::string rate =
            fleet_.rate_table.empty()
                ? fmt::format(
                      "{} new connections a second, {} at once, alone", fleet_.rate, fleet_.burst)
                : fmt::format("{} new connections a second, shared in the table {}",
                              fleet_.permits.per_second,
                              there(fleet_.rate_table));
        return rate + (fleet_.lease_table.empty()
                           ? ""
                           : fmt::format("; {} in all, shared in the table {}",
                                         fleet_.leases.limit,
                                         there(fleet_.lease_table)));
    }

private:
    static milliseconds since(Steady began) {
        return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
    }

    static milliseconds life_left(const std::string& token) {
        const auto life = dsql::life_of_token(token);
        return life ? std::chrono::duration_cast<milliseconds>(life->expiry - life->birth)
                    : milliseconds{0};
    }

    const Context& context_;
    const sql::Url& url_;
    const dsql::FleetConfig fleet_;
    const dsql::Target target_;
    const std::shared_ptr<dsql::CredentialChain> chain_;
    dsql::Credentials keys_;
    std::optional<sql::Database> db_;
    std::chrono::sys_time<milliseconds> server_now_;
};

}  // namespace

int dsql_doctor(const Context& context) {
    const std::string& text = required_database_url(context);
    const sql::Url url = sql::parse_url(text);
    if (url.scheme != dsql::url_scheme) {
        throw InvalidArgument("the doctor is for Aurora DSQL; pass --db dsql://ENDPOINT");
    }
    Patient patient(context, url);
    Examination examination;
    examination.check("region", [&] { return patient.region(); });
    examination.check("certificates", [&] { return patient.certificates(); });
    examination.check("credentials", [&] { return patient.credentials(); });
    examination.check("token", [&] { return patient.token(); });
    examination.check("login", [&] { return patient.login(text); });
    examination.check("answer", [&] { return patient.answer(); });
    examination.check("clock", [&] { return patient.clock(); });
    examination.check("limits", [&] { return patient.limits(); });
    examination.check("fleet", [&] { return patient.fleet(); });

    Json json{{"db", without_password(text)},
              {"ok", examination.status() == exit_done},
              {"checks", Json::array()}};
    Table table{{{"check"}, {"state"}, {"detail"}}};
    for (const Finding& finding : examination.findings()) {
        table.add({finding.name, finding.state, finding.detail});
        json["checks"].push_back(
            {{"check", finding.name}, {"state", finding.state}, {"detail", finding.detail}});
    }
    print(context.json ? json.dump() + "\n" : table.text());
    return examination.status();
}

}  // namespace holdfast::app
