#include <holdfast/testing/fault_proxy.hpp>

#include <memory>
#include <string>
#include <thread>

#include "outside.hpp"
#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <poll.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::test {

namespace {

using namespace std::chrono_literals;

// A bare libpq client behind the proxy, with a table of its own.
class FaultProxyStory : public testing::Test {
protected:
    FaultProxyStory() {
        run_on_postgres(server.conninfo(),
                        "DROP TABLE IF EXISTS " + table + "; CREATE TABLE " + table + " (n int)");
    }
    ~FaultProxyStory() override {
        client.reset();
        run_on_postgres(server.conninfo(), "DROP TABLE " + table);
    }

    ExecStatusType run(const std::string& text) const {
        const std::unique_ptr<PGresult, decltype(&PQclear)> result(
            PQexec(client.get(), text.c_str()), &PQclear);
        return PQresultStatus(result.get());
    }
    [[nodiscard]] bool connected() const { return PQstatus(client.get()) == CONNECTION_OK; }
    [[nodiscard]] std::string rows() const {
        return *run_on_postgres(server.conninfo(), "SELECT count(*) FROM " + table).at(0).at(0);
    }

    const PostgresAddress& server = shared_postgres();
    FaultProxy proxy{server};
    std::string table = "proxy_" + std::to_string(::getpid());
    std::string insert = "INSERT INTO " + table + " VALUES (1)";
    std::unique_ptr<PGconn, decltype(&PQfinish)> client{
        PQconnectdb(proxy.address().conninfo().c_str()), &PQfinish};
};

TEST_F(FaultProxyStory, CarriesEverythingAndCounts) {
    ASSERT_TRUE(connected()) << PQerrorMessage(client.get());
    const auto trips = proxy.round_trips();
    // Several megabytes in one answer and in one question, so that nothing fits into one buffer.
    EXPECT_EQ(run("SELECT repeat('x', 3000000)"), PGRES_TUPLES_OK);
    EXPECT_EQ(run("SELECT length('" + std::string(3'000'000, 'y') + "')"), PGRES_TUPLES_OK);
    EXPECT_EQ(proxy.round_trips(), trips + 2);
    EXPECT_EQ(proxy.messages(Side::client, 'Q'), 2);
    EXPECT_EQ(proxy.messages(Side::server, 'Z'), 3) << "one of them ended the connection's start";
    EXPECT_EQ(proxy.connections(), 1);
}

TEST_F(FaultProxyStory, ACutMessageDoesNotArriveButEarlierOnesDo) {
    proxy.arm({.from = Side::client, .type = 'Q', .nth = 2}, Fault::cut);
    EXPECT_EQ(run(insert), PGRES_COMMAND_OK);
    EXPECT_EQ(run(insert), PGRES_FATAL_ERROR);
    EXPECT_FALSE(connected());
    EXPECT_EQ(rows(), "1");
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(0s)));
}

TEST_F(FaultProxyStory, ALostAnswerLeavesTheWorkDone) {
    proxy.arm({.from = Side::client, .type = 'Q', .containing = "INSERT"}, Fault::lose_answer);
    EXPECT_EQ(run(insert), PGRES_FATAL_ERROR);
    EXPECT_FALSE(connected());
    EXPECT_EQ(rows(), "1");

    PQreset(client.get());
    EXPECT_EQ(run(insert), PGRES_COMMAND_OK) << "a fault strikes once";
}

TEST_F(FaultProxyStory, AnAnswerThatIsCutOffLeavesTheWorkDone) {
    proxy.arm({.from = Side::server, .type = 'C', .containing = "COMMIT"}, Fault::cut);
    EXPECT_EQ(run("BEGIN"), PGRES_COMMAND_OK);
    EXPECT_EQ(run(insert), PGRES_COMMAND_OK);
    EXPECT_EQ(run("COMMIT"), PGRES_FATAL_ERROR);
    EXPECT_EQ(rows(), "1");
}

TEST_F(FaultProxyStory, AStalledConnectionGoesOnWhenReleased) {
    proxy.arm({.from = Side::server, .type = 'C'}, Fault::stall);
    std::thread worker([&] { EXPECT_EQ(run(insert), PGRES_COMMAND_OK); });
    EXPECT_TRUE(proxy.wait_struck(Deadline::after(20s)));
    proxy.release();
    worker.join();
    EXPECT_TRUE(connected());
    EXPECT_EQ(rows(), "1");
}

TEST_F(FaultProxyStory, ADroppedMessageIsTheOnlyOneMissing) {
    proxy.arm({.from = Side::client, .type = 'Q'}, Fault::drop);
    ASSERT_EQ(PQsendQuery(client.get(), insert.c_str()), 1);
    ASSERT_TRUE(proxy.wait_struck(Deadline::after(20s)));
    EXPECT_EQ(rows(), "0");
    EXPECT_TRUE(connected());
}

TEST_F(FaultProxyStory, CutAllEndsEveryConnectionAndRefuseKeepsNewOnesOut) {
    EXPECT_EQ(run("SELECT 1"), PGRES_TUPLES_OK);
    proxy.refuse(true);
    proxy.cut_all();
    EXPECT_EQ(run("SELECT 1"), PGRES_FATAL_ERROR);
    PQreset(client.get());
    EXPECT_FALSE(connected());

    proxy.refuse(false);
    PQreset(client.get());
    EXPECT_EQ(run("SELECT 1"), PGRES_TUPLES_OK);
    EXPECT_EQ(proxy.connections(), 3);
}

TEST_F(FaultProxyStory, ACancelRequestReachesTheServer) {
    ASSERT_EQ(PQsendQuery(client.get(), "SELECT pg_sleep(60)"), 1);
    const std::unique_ptr<PGcancel, decltype(&PQfreeCancel)> cancel(PQgetCancel(client.get()),
                                                                    &PQfreeCancel);
    // A request that overtakes its query cancels nothing, so it is repeated until an answer comes.
    const Deadline deadline = Deadline::after(20s);
    pollfd answer{.fd = PQsocket(client.get()), .events = POLLIN, .revents = 0};
    do {
        std::array<char, 256> why{};
        ASSERT_EQ(PQcancel(cancel.get(), why.data(), why.size()), 1) << why.data();
    } while (::poll(&answer, 1, 50) == 0 && !deadline.passed());
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(client.get()), &PQclear);
    EXPECT_STREQ(PQresultErrorField(result.get(), PG_DIAG_SQLSTATE), "57014");
}

}  // namespace

}  // namespace holdfast::test
