// Every transaction of the store, run once: each that runs is classified, and each that is
// classified runs.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "test/operations_walk_fixture.hpp"

#include <holdfast/base/metrics.hpp>

namespace holdfast::store::tests {
namespace {

using Names = std::set<std::string>;

Names classified() {
    Names names;
    for (const Operation* operation : operations()) {
        names.emplace(operation->name);
    }
    return names;
}

TEST(StoreOperations, EveryTransactionThatRunsIsClassifiedAndEveryClassifiedOneRuns) {
    const MigratedDatabase place{test::Backend::sqlite};
    Metrics metrics;
    sql::DatabaseOptions options = place.options();
    options.metrics = &metrics;
    sql::Database db{place.url(), options};
    OperationsWalk(db).see_all();

    Names ran;
    const std::string text = metrics.expose();
    const std::regex label("holdfast_sql_tx_attempts_count\\{[^}]*operation=\"([^\"]+)\"");
    for (std::sregex_iterator found(text.begin(), text.end(), label), end; found != end; ++found) {
        ran.insert((*found)[1]);
    }
    EXPECT_EQ(ran, classified());
}

// The source text shows what the walk does not reach: a new transaction must be in operations.hpp,
// or this test fails.

std::string text_of(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}
bool is_product(const std::filesystem::path& file) {
    const std::string name = file.filename();
    return (name.ends_with(".cpp") || name.ends_with(".hpp")) && !name.ends_with("_test.cpp") &&
           !name.ends_with("_fixture.hpp") && !name.ends_with("_fuzz.cpp");
}
// Transactions begun directly on a Database.
Names unclassified_transactions(const std::string& text) {
    static const std::regex begun(R"((db_?|database\(\))\s*(\.|->)\s*(transact|run)\s*\()");
    static const std::regex made(R"re(\bOperation\s*\w*\s*\{\s*")re");
    Names found;
    for (const std::regex* pattern : {&begun, &made}) {
        for (std::sregex_iterator at(text.begin(), text.end(), *pattern), end; at != end; ++at) {
            found.insert(at->str());
        }
    }
    return found;
}

TEST(StoreOperations, NobodyBeginsATransactionThatIsNotClassified) {
    const std::filesystem::path sources{HOLDFAST_STORE_SOURCES};
    int seen = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(sources)) {
        const std::string name = file.path().filename();
        if (is_product(file.path()) && name != "transaction.hpp" && name != "operations.hpp") {
            EXPECT_THAT(unclassified_transactions(text_of(file.path())), IsEmpty()) << name;
            ++seen;
        }
    }
    EXPECT_GT(seen, 30) << "or nothing was read";

    Names written;
    const std::string text = text_of(sources / "operations.hpp");
    const std::regex constant(R"re(\bOperation \w+\{\s*"(\w+)")re");
    for (std::sregex_iterator at(text.begin(), text.end(), constant), end; at != end; ++at) {
        written.insert((*at)[1]);
    }
    EXPECT_EQ(written, classified());
}

// The test above must be able to fail.
TEST(StoreOperations, ATransactionPastTheDoorWouldBeFound) {
    for (const std::string text : {"db_.transact(\"New\", {}, body)",
                                   "shards_.database()\n    .run(name, options, statement)",
                                   "transact(db_, Operation{\"New\", read_only, \"\"}, call, body)",
                                   "constexpr Operation mine{\"New\", read_only, \"one row\"};"}) {
        EXPECT_THAT(unclassified_transactions(text), SizeIs(1)) << text;
    }
    EXPECT_THAT(unclassified_transactions("transact(db_, operation::get_run, call, body)"),
                IsEmpty());
}

}  // namespace
}  // namespace holdfast::store::tests
