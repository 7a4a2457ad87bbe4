// Every transaction of the store, run once: each that runs is classified, and each that is
// classified runs.
#include <regex>

#include "tour_fixture.hpp"

#include <holdfast/base/metrics.hpp>

namespace holdfast::store::stories {
namespace {

TEST(StoreTour, EveryTransactionThatRunsIsClassifiedAndEveryClassifiedOneRuns) {
    MigratedDatabase place{test::Backend::sqlite};
    Metrics metrics;
    sql::DatabaseOptions options = place.options();
    options.metrics = &metrics;
    sql::Database db{place.url(), options};
    Tour(db).see_all();

    std::set<std::string> ran;
    const std::string text = metrics.expose();
    const std::regex label("holdfast_sql_tx_attempts_count\\{[^}]*operation=\"([^\"]+)\"");
    for (std::sregex_iterator found(text.begin(), text.end(), label), end; found != end; ++found) {
        ran.insert((*found)[1]);
    }
    std::set<std::string> classified;
    for (const Operation* operation : operations()) {
        classified.emplace(operation->name);
    }
    EXPECT_EQ(ran, classified);
}

}  // namespace
}  // namespace holdfast::store::stories
