// What an attack on the server below a gateway could reach, and how to see whether it did.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gateway/test/gateway_fixture.hpp"
#include "gateway/upstream.hpp"
#include <fmt/core.h>

#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::dsql::tests {

// One try to become more than one is: statements in their order, in one session.
struct Attempt {
    std::string name;
    std::vector<std::string> statements;
    std::vector<std::string> arguments{};  // Of those that have parameters.
};

// A role without rights, a treasure that belongs to others, and what must not happen to it.
class Escape : public GatewayStory {
protected:
    static constexpr std::string_view secret = "canary-7f3a91";

    Escape() : mallory("mallory_" + cluster.id()), place("home_" + cluster.id()) {
        std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
        std::ofstream(readable()) << secret << '\n';
        const Client admin = client();
        expect_done(admin, fmt::format(R"(CREATE ROLE "{}" LOGIN)", mallory));
        expect_done(admin,
                    fmt::format(R"(AWS IAM GRANT "{}" TO '{}')", mallory, test::gateway_key().arn));
        expect_done(admin, "CREATE TABLE ledger (id int PRIMARY KEY, what text)");
        expect_done(admin, "INSERT INTO ledger VALUES (1, 'as it was')");
        victim = std::make_unique<Client>(cluster.params());
        outside = std::make_unique<Client>(cluster.outside("postgres"));
        expect_done(*outside, "CREATE SCHEMA vault");
        expect_done(*outside, "CREATE TABLE vault.canary (what text)");
        expect_done(*outside, fmt::format("INSERT INTO vault.canary VALUES ('{}')", secret));
        expect_done(*outside,
                    fmt::format(R"(CREATE SCHEMA "{}" AUTHORIZATION "{}")", place, mallory));
        expect_done(*outside, fmt::format(R"(GRANT ALL ON SCHEMA "{}" TO admin)", place));
        before = state();
    }

    ~Escape() override {
        victim.reset();
        outside->exec(fmt::format(R"(DROP SCHEMA "{}" CASCADE)", place));
        outside->exec(fmt::format(R"(DROP OWNED BY "{}")", mallory));
        outside->exec(fmt::format(R"(DROP ROLE "{}")", mallory));
    }

    static void expect_done(const Client& client, const std::string& sql) {
        const Said said = client.exec(sql);
        EXPECT_EQ(said.code, "") << sql << ": " << said.message;
    }

    [[nodiscard]] std::string readable() const { return (folder.path() / "read").string(); }
    [[nodiscard]] std::string writable() const { return (folder.path() / "written").string(); }

    // What the superuser below sees of roles, treasures, grants and the gateway's own things.
    [[nodiscard]] std::string state() const {
        const Said said = outside->exec(fmt::format(
            "SELECT concat_ws('|',"
            " (SELECT string_agg(rolname || ' ' || {0}, ',' ORDER BY rolname) FROM pg_roles r"
            "  WHERE rolname IN ('admin', '{1}')),"
            " (SELECT count(*) FROM pg_auth_members m WHERE m.member = '\"{1}\"'::regrole),"
            " (SELECT string_agg(what, ',') FROM vault.canary),"
            " (SELECT string_agg(what, ',') FROM public.ledger),"
            " (SELECT string_agg(arn || role, ',' ORDER BY role) FROM holdfast_gateway.iam_grants),"
            " (SELECT bool_and(indisvalid) FROM pg_index WHERE indrelid = 'ledger'::regclass),"
            " (SELECT count(*) FROM pg_db_role_setting WHERE setrole IN ('postgres'::regrole,"
            "  'holdfast_gateway'::regrole)),"
            " (SELECT count(*) FROM pg_largeobject_metadata),"
            " (SELECT count(*) FROM pg_stat_activity WHERE pid = {2}),"
            " (SELECT string_agg(nspname || nspowner::regrole, ',' ORDER BY nspname)"
            "  FROM pg_namespace WHERE nspname IN ('sys', 'holdfast_gateway', 'vault',"
            "  'holdfast_gateway_owner')))",
            powerful_role,
            mallory,
            PQbackendPID(victim->raw())));
        EXPECT_EQ(said.code, "") << said.message;
        return said.cell();
    }

    // An attempt's own words for what it wants.
    [[nodiscard]] std::string filled(std::string text, const std::string& user) const {
        const std::vector<std::pair<std::string, std::string>> words{
            {"{read}", readable()},
            {"{write}", writable()},
            {"{me}", '"' + user + '"'},
            {"{pid}", std::to_string(PQbackendPID(victim->raw()))},
            {"{db}", cluster.id()},
            {"{home}", '"' + place + '"'}};
        for (const auto& [hole, word] : words) {
            for (std::size_t at = text.find(hole); at != std::string::npos; at = text.find(hole)) {
                text.replace(at, hole.size(), word);
            }
        }
        return text;
    }

    // Runs it, and looks at what it has gained: nothing.
    void expect_no_gain(const Attempt& attempt, const std::string& user, bool extended) const {
        SCOPED_TRACE(attempt.name + " as " + user + (extended ? ", extended" : ", simple"));
        const Client session(cluster.params(user));
        ASSERT_TRUE(session.connected()) << session.response();
        std::string all;
        for (const std::string& text : attempt.statements) {
            const std::string sql = filled(text, user);
            const bool bound = sql.find("$1") != std::string::npos && !attempt.arguments.empty();
            const Said said = bound      ? session.exec(sql, attempt.arguments)
                              : extended ? session.exec(sql, {})
                                         : session.exec(sql);
            if (said.code.empty() && PQtransactionStatus(session.raw()) == PQTRANS_ACTIVE) {
                PQputCopyEnd(session.raw(), "no data");
                char* line = nullptr;
                while (PQgetCopyData(session.raw(), &line, 0) > 0) {
                    all += line;
                    PQfreemem(line);
                }
                while (PGresult* rest = PQgetResult(session.raw())) {
                    PQclear(rest);
                }
            }
            for (const auto& row : said.rows) {
                for (const std::string& cell : row) {
                    all += cell + '\n';
                }
            }
        }
        EXPECT_EQ(all.find(secret), std::string::npos) << "the secret was told";
        EXPECT_FALSE(std::filesystem::exists(writable())) << "a file was written";
        std::filesystem::remove(writable());
        session.exec("ROLLBACK");
        if (session.connected()) {
            expect_ordinary(session, user);
        }
        EXPECT_EQ(state(), before);
        EXPECT_EQ(victim->exec("SELECT 1").cell(), "1");
    }

    // By the session's own words: who it is, and that the treasure is not its own.
    void expect_ordinary(const Client& session, const std::string& user) const {
        const Said who = session.exec(
            "SELECT current_setting('is_superuser'), session_user,"
            " current_setting('standard_conforming_strings')");
        EXPECT_EQ(who.rows, (std::vector<std::vector<std::string>>{{"off", user, "on"}}))
            << who.message;
        EXPECT_EQ(session.exec("SELECT what FROM vault.canary").code, "42501");
        EXPECT_EQ(session.exec("SELECT arn FROM holdfast_gateway.iam_grants").code, "42501");
    }

    const std::string mallory;
    const std::string place;  // A schema of its own.
    test::TempDir folder;
    std::unique_ptr<Client> victim;   // A session of another role.
    std::unique_ptr<Client> outside;  // A superuser, past the gateway.
    std::string before;
};

}  // namespace holdfast::dsql::tests
