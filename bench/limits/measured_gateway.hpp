// A gateway of DSQL in front of the server that a suite measures.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <holdfast/bench/suite.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/dsql/gateway.hpp>
#include <holdfast/sql/source.hpp>

namespace holdfast::bench {

class MeasuredGateway {
public:
    // `upstream` is a PostgreSQL, with the database that is to be the cluster; its user must be a
    // superuser. Certificates lie in the place's directory.
    MeasuredGateway(const WaitTicket& place, const std::string& upstream);
    ~MeasuredGateway();
    MeasuredGateway(const MeasuredGateway&) = delete;
    MeasuredGateway& operator=(const MeasuredGateway&) = delete;

    // As `admin`, for those who speak PostgreSQL's protocol; the password is a token.
    [[nodiscard]] std::string postgres_url() const;
    [[nodiscard]] std::string token() const;

    // The same for sql::Database, which is given the source for it.
    [[nodiscard]] std::string dsql_url() const;
    [[nodiscard]] sql::SourceFactory source() const;

private:
    dsql::Credentials keys_;
    std::filesystem::path root_;
    std::unique_ptr<dsql::Gateway> gateway_;
};

}  // namespace holdfast::bench
