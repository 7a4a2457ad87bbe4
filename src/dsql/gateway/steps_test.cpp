// The steps of the extended protocol in orders that libpq never sends, and other drivers do.
#include <array>
#include <chrono>
#include <utility>

#include "gateway/test/gateway_fixture.hpp"
#include "gateway/wire/channel.hpp"
#include "gateway/wire/error_response.hpp"

#include <holdfast/dsql/wire.hpp>

namespace holdfast::dsql::tests {

namespace {

using namespace std::chrono_literals;

using Heard = std::vector<std::string>;

// A client that speaks byte by byte, once libpq has let it in.
class Wire {
public:
    explicit Wire(const Client& client) : channel_(PQsocket(client.raw())) {
        channel_.secure(static_cast<SSL*>(PQgetssl(client.raw())));
    }

    Wire& parse(std::string_view name, std::string_view sql) {
        return say('P', BodyWriter().text(name).text(sql).int16(0).body());
    }
    Wire& bind(std::string_view name, std::string_view portal = "") {
        return say('B', BodyWriter().text(portal).text(name).int16(0).int16(0).int16(0).body());
    }
    Wire& describe(char kind, std::string_view name) {
        return say('D', BodyWriter().bytes({&kind, 1}).text(name).body());
    }
    Wire& execute(std::int32_t rows = 0, std::string_view portal = "") {
        return say('E', BodyWriter().text(portal).int32(rows).body());
    }
    Wire& close(std::string_view name) {
        return say('C', BodyWriter().bytes("S").text(name).body());
    }
    Wire& query(std::string_view sql) { return say('Q', BodyWriter().text(sql).body()); }
    Wire& flush() { return say('H', {}); }
    Wire& sync() { return say('S', {}); }

    // Everything up to a message of that type; rows, tags, codes and states with their content.
    Heard hear(char last) {
        EXPECT_TRUE(channel_.write(std::exchange(bytes_, {})));
        Heard heard;
        while (true) {
            if (const auto message = stream_.next()) {
                heard.push_back(told(*message));
                if (message->type == last) {
                    return heard;
                }
                continue;
            }
            std::array<char, 4096> bytes{};
            const std::size_t size = channel_.readable(20s) ? channel_.read(bytes) : 0;
            if (size == 0) {
                heard.emplace_back("nothing");
                return heard;
            }
            stream_.append({bytes.data(), size});
        }
    }

private:
    Wire& say(char type, std::string_view body) {
        append_message(bytes_, type, body);
        return *this;
    }

    static std::string told(const Message& message) {
        BodyReader body(message.body);
        switch (message.type) {
            case 'C':
                return std::string(body.text());
            case 'D':
                (void)body.int16();
                return "row " + std::string(body.bytes(static_cast<std::size_t>(body.int32())));
            case 'E':
                return std::string(ServerError::read(message.body).code);
            case 'Z':
                return "Z" + std::string(message.body);
            default:
                return {message.type};
        }
    }

    Channel channel_;
    MessageStream stream_{Opening::typed};
    std::string bytes_;
};

class GatewaySteps : public GatewayStory {
protected:
    void SetUp() override {
        ASSERT_EQ(c.exec("CREATE TABLE t (id integer PRIMARY KEY, v integer)").code, "");
        ASSERT_EQ(c.exec("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)").code, "");
        ASSERT_EQ(other.exec("SELECT 1 FROM t").code, "40001");  // OC001: the table is new to it.
    }

    const Client c = client();
    const Client other = client();
    Wire wire{c};
};

// As cursors of drivers read: a portion, a flush, the next portion, and a Sync at the end.
TEST_F(GatewaySteps, APortalOutlivesAFlush) {
    wire.parse("", "SELECT id FROM t ORDER BY id").bind("").describe('P', "").flush();
    EXPECT_EQ(wire.hear('T'), (Heard{"1", "2", "T"}));
    EXPECT_EQ(wire.execute(2).flush().hear('s'), (Heard{"row 1", "row 2", "s"}));
    EXPECT_EQ(wire.execute(2).flush().hear('C'), (Heard{"row 3", "SELECT 1"}));
    EXPECT_EQ(wire.sync().hear('Z'), (Heard{"ZI"}));

    wire.parse("", "UPDATE t SET v = 0 WHERE id = 1").bind("").flush();
    EXPECT_EQ(wire.hear('2'), (Heard{"1", "2"}));
    EXPECT_EQ(wire.execute().sync().hear('Z'), (Heard{"UPDATE 1", "ZI"}));
    EXPECT_EQ(other.exec("SELECT v FROM t WHERE id = 1").cell(), "0");
}

// What comes first is done and answered first, whichever way it comes.
TEST_F(GatewaySteps, AQueryComesAfterTheStepsBeforeIt) {
    wire.parse("", "INSERT INTO t VALUES (4, 40)").bind("").execute();
    EXPECT_EQ(wire.query("SELECT count(*) FROM t").hear('Z'),
              (Heard{"1", "2", "INSERT 0 1", "T", "row 4", "SELECT 1", "ZI"}));
    // They are one transaction.
    wire.parse("", "INSERT INTO t VALUES (5, 50)").bind("").execute();
    EXPECT_EQ(wire.query("SELECT 1 / 0").hear('Z'), (Heard{"1", "2", "INSERT 0 1", "22012", "ZI"}));
    EXPECT_EQ(other.exec("SELECT count(*) FROM t").cell(), "4");
    // After an error nothing is heard before the Sync.
    wire.parse("", "SELECT nothing FROM t").query("SELECT 1").sync();
    EXPECT_EQ(wire.hear('Z'), (Heard{"42703", "ZI"}));
}

TEST_F(GatewaySteps, WhatTheGatewayAnswersItselfCanBeDescribedLater) {
    EXPECT_EQ(wire.parse("b", "BEGIN").sync().hear('Z'), (Heard{"1", "ZI"}));
    EXPECT_EQ(wire.describe('S', "b").sync().hear('Z'), (Heard{"t", "n", "ZI"}));
    EXPECT_EQ(wire.parse("i", "CREATE INDEX ASYNC i ON t (v)").sync().hear('Z'),
              (Heard{"1", "ZI"}));
    EXPECT_EQ(wire.describe('S', "i").sync().hear('Z'), (Heard{"t", "T", "ZI"}));
}

// Drivers close what they no longer need with whatever they send next.
TEST_F(GatewaySteps, AFailedTransactionLetsStatementsBeClosed) {
    ASSERT_EQ(wire.parse("s", "SELECT 1").sync().hear('Z'), (Heard{"1", "ZI"}));
    ASSERT_EQ(wire.query("BEGIN").hear('Z'), (Heard{"BEGIN", "ZT"}));
    ASSERT_EQ(wire.query("SELECT 1 / 0").hear('Z'), (Heard{"22012", "ZE"}));
    EXPECT_EQ(wire.close("s").sync().hear('Z'), (Heard{"3", "ZE"}));
    EXPECT_EQ(wire.close("x").bind("s").execute().sync().hear('Z'), (Heard{"3", "25P02", "ZE"}));
    wire.close("x").parse("", "ROLLBACK").bind("").execute().sync();
    EXPECT_EQ(wire.hear('Z'), (Heard{"3", "1", "2", "ROLLBACK", "ZI"}));
    EXPECT_EQ(wire.parse("s", "SELECT 2").bind("s").execute().sync().hear('Z'),
              (Heard{"1", "2", "row 2", "SELECT 1", "ZI"}));
}

// A refusal of the gateway's own comes before the server below has seen what the statement came
// with.
TEST_F(GatewaySteps, WhatWasClosedBesideARefusedStatementIsClosed) {
    ASSERT_EQ(wire.parse("s", "SELECT 1").parse("u", "UPDATE t SET v = 0").sync().hear('Z'),
              (Heard{"1", "1", "ZI"}));
    ASSERT_EQ(other.exec("ALTER TABLE t ADD COLUMN x integer").code, "");
    EXPECT_EQ(wire.close("s").bind("u").execute().sync().hear('Z'), (Heard{"3", "40001", "ZI"}));
    EXPECT_EQ(wire.parse("s", "SELECT 2").sync().hear('Z'), (Heard{"1", "ZI"}));
}

// Else what is run would not be what is checked.
TEST_F(GatewaySteps, ANameThatIsTakenKeepsItsStatement) {
    ASSERT_EQ(wire.parse("s", "UPDATE t SET v = v + 1 WHERE id = 1").sync().hear('Z'),
              (Heard{"1", "ZI"}));
    EXPECT_EQ(wire.parse("s", "SELECT 1").sync().hear('Z'), (Heard{"42P05", "ZI"}));
    ASSERT_EQ(wire.query("BEGIN").hear('Z'), (Heard{"BEGIN", "ZT"}));
    EXPECT_EQ(wire.bind("s").execute().sync().hear('Z'), (Heard{"2", "UPDATE 1", "ZT"}));
    ASSERT_EQ(other.exec("UPDATE t SET v = 0 WHERE id = 1").tag, "UPDATE 1");
    EXPECT_EQ(wire.query("COMMIT").hear('Z'), (Heard{"40001", "ZI"}));
}

TEST_F(GatewaySteps, WhatIsClosedCannotBeBound) {
    wire.parse("s", "SELECT 1").close("s").bind("s").execute().sync();
    EXPECT_EQ(wire.hear('Z'), (Heard{"1", "3", "26000", "ZI"}));
    ASSERT_EQ(wire.parse("s", "SELECT 1").sync().hear('Z'), (Heard{"1", "ZI"}));
    EXPECT_EQ(wire.close("s").bind("s").execute().sync().hear('Z'), (Heard{"3", "26000", "ZI"}));
}

}  // namespace

}  // namespace holdfast::dsql::tests
