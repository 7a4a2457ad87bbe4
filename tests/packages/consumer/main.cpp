// A user's program, as small as it can be: it sees only what was installed.
#include <cstdio>

#include <holdfast/base/error.hpp>
#include <holdfast/sql/database.hpp>

namespace sql = holdfast::sql;

constexpr sql::Statement answer{"consumer.answer", "SELECT CAST($1 AS BIGINT) + 1"};

int main(int argc, char** argv) {
    try {
        sql::Database db{argc > 1 ? argv[1] : "sqlite::memory:"};
        const auto result = db.run("Answer", {}, answer, std::int64_t{41});
        std::printf("%lld\n", static_cast<long long>(result.rows[0].get<std::int64_t>(0)));
    } catch (const holdfast::Error& error) {
        std::printf("%s\n", error.what());
    }
}
