// Attempts to become more than one's role, put together at random.
#include <chrono>
#include <cstdlib>

#include "gateway/test/escape_fixture.hpp"

#include <holdfast/base/clock.hpp>
#include <holdfast/base/random.hpp>

namespace holdfast::dsql::tests {

namespace {

using namespace std::chrono_literals;

// What can be done to hide a call, and what a call could do.
struct Disguise {
    Random random;
    std::string database;

    [[nodiscard]] std::string pick(const std::vector<std::string>& from) {
        return from[random.below(from.size())];
    }
    [[nodiscard]] std::string named(const std::string& name) {
        switch (random.below(7)) {
            case 0:
                return '"' + name + '"';
            case 1:
                return "pg_catalog." + name;
            case 2:
                return R"("pg_catalog".")" + name + '"';
            case 3:
                return '"' + database + "\".pg_catalog." + name;
            case 4:
                return fmt::format(R"(U&"\{:04x}{}")", static_cast<int>(name[0]), name.substr(1));
            case 5:
                return name + "/* ' */";
            default:
                return name;
        }
    }
    [[nodiscard]] std::string constant(const std::string& text) {
        switch (random.below(6)) {
            case 0:
                return "'" + text + "'::text";
            case 1:
                return "$x$" + text + "$x$";
            case 2:
                return "'" + text.substr(0, 2) + "' || '" + text.substr(2) + "'";
            case 3:
                return "(SELECT '" + text + "')";
            case 4:
                return "lower('" + text + "')";
            default:
                return "'" + text + "'";
        }
    }
    [[nodiscard]] std::string call() {
        const std::string inner = pick({"SELECT * FROM vault.canary",
                                        "SELECT set_config($y$role$y$, $y$postgres$y$, false)",
                                        "SELECT pg_read_file($y${read}$y$)"});
        switch (random.below(9)) {
            case 0:
                return named("set_config") + "(" + constant("session_authorization") + ", " +
                       constant("postgres") + ", false)";
            case 1:
                return named("set_config") + "(" + constant("role") + ", " + constant("postgres") +
                       ", false)";
            case 2:
                return named("query_to_xml") + "(" + constant(inner) + ", true, true, '')";
            case 3:
                return named("pg_read_file") + "(" + constant("{read}") + ")";
            case 4:
                return named("lo_export") + "(0, " + constant("{write}") + ")";
            case 5:
                return named("lo_import") + "(" + constant("{read}") + ")";
            case 6:
                return named("pg_terminate_backend") + "({pid})";
            case 7:
                return named("table_to_xml") + "('vault.canary', true, true, '')";
            default:
                return "holdfast_gateway_owner.invalidate((" + constant("public.ledger_pkey") +
                       ")::regclass)";
        }
    }
    [[nodiscard]] Attempt attempt(std::uint64_t number) {
        static const std::vector<std::vector<std::string>> frames{
            {"SELECT {x}"},
            {"BEGIN", "SELECT {x}", "COMMIT"},
            {"SELECT (SELECT {x})"},
            {"SELECT * FROM (SELECT {x}) q"},
            {"WITH c AS (SELECT {x}) SELECT * FROM c"},
            {"SELECT CASE WHEN true THEN ({x})::text END"},
            {"VALUES (({x})::text)"},
            {"SELECT 1 WHERE ({x})::text <> ''"},
            {"SELECT 1 ORDER BY ({x})::text"},
            {"SELECT count(*) FILTER (WHERE ({x})::text <> '')"},
            {"SELECT sum(1) OVER (PARTITION BY ({x})::text)"},
            {"SELECT 1 GROUP BY 1 HAVING ({x})::text <> ''"},
            {"SELECT 1 LIMIT length(({x})::text)"},
            {"SELECT ARRAY[({x})::text]"},
            {"SELECT coalesce(({x})::text, '')"},
            {"EXPLAIN ANALYZE SELECT {x}"},
            {"COPY (SELECT {x}) TO STDOUT"},
            {"CREATE VIEW {home}.v{n} AS SELECT {x} AS a", "SELECT * FROM {home}.v{n}"},
            {"CREATE FUNCTION {home}.f{n}() RETURNS text LANGUAGE sql AS $f$ SELECT ({x})::text "
             "$f$",
             "SELECT {home}.f{n}()"},
            {"CREATE FUNCTION {home}.f{n}() RETURNS text LANGUAGE sql BEGIN ATOMIC"
             " SELECT ({x})::text; END",
             "SELECT {home}.f{n}()"},
            {"CREATE FUNCTION {home}.f{n}() RETURNS text LANGUAGE sql RETURN ({x})::text",
             "SELECT {home}.f{n}()"},
            {"CREATE FUNCTION {home}.f{n}(a text DEFAULT ({x})::text) RETURNS text LANGUAGE sql"
             " AS 'SELECT $1'",
             "SELECT {home}.f{n}()"},
            {"CREATE TABLE {home}.t{n} (a text DEFAULT ({x})::text)",
             "INSERT INTO {home}.t{n} DEFAULT VALUES RETURNING a"},
            {"CREATE TABLE {home}.t{n} (a text CHECK (({x})::text <> ''))",
             "INSERT INTO {home}.t{n} VALUES ('a')"},
            {"CREATE TABLE {home}.t{n} (a text)",
             "INSERT INTO {home}.t{n} SELECT {x} RETURNING a",
             "UPDATE {home}.t{n} SET a = ({x})::text RETURNING a",
             "DELETE FROM {home}.t{n} WHERE ({x})::text <> '' RETURNING a"},
            {"CREATE DOMAIN {home}.d{n} AS text CHECK (({x})::text <> VALUE)",
             "SELECT 'a'::{home}.d{n}"},
        };
        Attempt made{.name = fmt::format("composition {}", number), .statements = {}};
        const std::string expression = call();
        for (std::string text : frames[random.below(frames.size())]) {
            for (const auto& [hole, word] : {std::pair<std::string, std::string>{"{x}", expression},
                                             {"{n}", std::to_string(number)}}) {
                for (auto at = text.find(hole); at != std::string::npos; at = text.find(hole)) {
                    text.replace(at, hole.size(), word);
                }
            }
            made.name += "\n  " + text;
            made.statements.push_back(std::move(text));
        }
        return made;
    }
};

// In `./run soak` it goes on for a minute.
TEST_F(Escape, NoComposedAttemptLeadsAnywhere) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const char* given = std::getenv("HOLDFAST_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : secure_seed();
    SCOPED_TRACE(fmt::format("HOLDFAST_SEED={}", seed));
    Disguise disguise{.random = Random(seed), .database = cluster.id()};
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const bool soak = std::getenv("HOLDFAST_SOAK") != nullptr;
    const auto deadline = Deadline::after(60s);
    constexpr std::uint64_t in_every_run = 120;
    for (std::uint64_t n = 0; soak ? !deadline.passed() : n < in_every_run; ++n) {
        expect_no_gain(disguise.attempt(n), n % 2 == 0 ? mallory : "admin", n % 3 == 0);
        if (HasFailure()) {
            break;
        }
    }
}

}  // namespace

}  // namespace holdfast::dsql::tests
