// Third-party clients (libpq) in front of a gateway.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <holdfast/testing/dsql.hpp>

namespace holdfast::dsql::tests {

struct Said {
    std::string code;     // SQLSTATE; empty if it went well.
    std::string message;  // The error's, or empty.
    std::string detail;
    std::string hint;
    std::string tag;  // "UPDATE 1"
    std::vector<std::vector<std::string>> rows;

    // The tag, or what went wrong.
    [[nodiscard]] std::string outcome() const { return code.empty() ? tag : code + " " + message; }
    [[nodiscard]] std::string cell() const {
        return rows.empty() || rows.front().empty() ? "" : rows.front().front();
    }
};

// libpq, as any program would use it.
class Client {
public:
    explicit Client(const sql::ConnectParams& params) {
        std::vector<const char*> names;
        std::vector<const char*> values;
        for (const auto& [name, value] : params) {
            names.push_back(name.c_str());
            values.push_back(value.c_str());
        }
        names.push_back(nullptr);
        values.push_back(nullptr);
        connection_.reset(PQconnectdbParams(names.data(), values.data(), 0));
        PQsetNoticeProcessor(connection_.get(), [](void*, const char*) {}, nullptr);
    }

    // Straight to the PostgreSQL below.
    explicit Client(const std::string& conninfo) : connection_(PQconnectdb(conninfo.c_str())) {}

    [[nodiscard]] bool connected() const { return PQstatus(connection_.get()) == CONNECTION_OK; }
    [[nodiscard]] std::string response() const { return PQerrorMessage(connection_.get()); }
    [[nodiscard]] PGconn* raw() const { return connection_.get(); }
    [[nodiscard]] std::string parameter(const char* name) const {
        const char* value = PQparameterStatus(connection_.get(), name);
        return value == nullptr ? "" : value;
    }
    // I idle, T open, E failed.
    [[nodiscard]] char status() const {
        switch (PQtransactionStatus(connection_.get())) {
            case PQTRANS_IDLE:
                return 'I';
            case PQTRANS_INTRANS:
                return 'T';
            case PQTRANS_INERROR:
                return 'E';
            default:
                return '?';
        }
    }

    // As a Query.
    // NOLINTNEXTLINE(modernize-use-nodiscard): not every answer matters.
    Said exec(const std::string& sql) const { return said(PQexec(connection_.get(), sql.c_str())); }
    // With parameters, by the extended protocol.
    // NOLINTNEXTLINE(modernize-use-nodiscard): not every answer matters.
    Said exec(const std::string& sql, const std::vector<std::string>& args) const {
        std::vector<const char*> values;
        values.reserve(args.size());
        for (const std::string& arg : args) {
            values.push_back(arg.c_str());
        }
        return said(PQexecParams(connection_.get(),
                                 sql.c_str(),
                                 static_cast<int>(values.size()),
                                 nullptr,
                                 values.data(),
                                 nullptr,
                                 nullptr,
                                 0));
    }

    // All of them in one flush. Each one's tag, or its code, or "skipped".
    // NOLINTNEXTLINE(modernize-use-nodiscard): not every answer matters.
    std::vector<std::string> pipeline(const std::vector<const char*>& statements) const {
        PQenterPipelineMode(raw());
        for (const char* sql : statements) {
            PQsendQueryParams(raw(), sql, 0, nullptr, nullptr, nullptr, nullptr, 0);
        }
        PQpipelineSync(raw());
        return rest_of_pipeline();
    }

    // The same for what has been sent already, with its Sync.
    [[nodiscard]] std::vector<std::string> rest_of_pipeline() const {
        std::vector<std::string> outcomes;
        while (true) {
            PGresult* result = PQgetResult(raw());
            if (result == nullptr) {
                continue;
            }
            if (PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
                PQclear(result);
                break;
            }
            const bool aborted = PQresultStatus(result) == PGRES_PIPELINE_ABORTED;
            const Said said = Client::said(result);
            outcomes.push_back(aborted ? "skipped" : said.code.empty() ? said.tag : said.code);
        }
        PQexitPipelineMode(raw());
        return outcomes;
    }

    static Said said(PGresult* taken) {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(taken, &PQclear);
        const auto field = [&](int code) {
            const char* text = PQresultErrorField(result.get(), code);
            return std::string(text == nullptr ? "" : text);
        };
        Said said{.code = field(PG_DIAG_SQLSTATE),
                  .message = field(PG_DIAG_MESSAGE_PRIMARY),
                  .detail = field(PG_DIAG_MESSAGE_DETAIL),
                  .hint = field(PG_DIAG_MESSAGE_HINT),
                  .tag = result ? PQcmdStatus(result.get()) : "",
                  .rows = {}};
        const ExecStatusType status = PQresultStatus(result.get());
        if (said.code.empty() && (status == PGRES_FATAL_ERROR || result == nullptr)) {
            said.code = "broken";
            said.message = PQresultErrorMessage(result.get());
        }
        for (int row = 0; row < PQntuples(result.get()); ++row) {
            auto& cells = said.rows.emplace_back();
            for (int column = 0; column < PQnfields(result.get()); ++column) {
                cells.emplace_back(PQgetvalue(result.get(), row, column));
            }
        }
        return said;
    }

private:
    struct Finish {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    };
    std::unique_ptr<PGconn, Finish> connection_;
};

// Whether a statement that has this in its text runs below now.
inline bool is_running(const test::DsqlCluster& cluster, const std::string& part) {
    const Client outside(cluster.outside("postgres"));  // Others do not see everybody's queries.
    const Said said = outside.exec(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> "
        "pg_backend_pid() AND datname = current_database() AND strpos(query, $1) > 0",
        {part});
    return said.cell() != "0";
}

class GatewayStory : public testing::Test {
protected:
    [[nodiscard]] Client client(std::string_view user = "admin") const {
        Client made(cluster.params(user));
        EXPECT_TRUE(made.connected()) << made.response();
        return made;
    }

    test::DsqlCluster cluster;
};

}  // namespace holdfast::dsql::tests
