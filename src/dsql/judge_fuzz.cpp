// Any text is judged, and what is made from it is SQL again; lint points into it and comes to an
// end with its fixes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "judge.hpp"
#include "judge_fixture.hpp"

#include <holdfast/dsql/lint.hpp>

namespace {

using namespace holdfast::dsql;

void require(bool belief) {
    if (!belief) {
        std::abort();
    }
}

void look_at(std::string_view sql, const Judged& judged) {
    constexpr std::size_t names_max = 1'000;  // Of subqueries, which are given to them.
    require(judged.offset <= sql.size());
    require(judged.offset + judged.text.size() <= sql.size() + names_max);
    require(!judged.refusal || judged.refusal->offset <= sql.size());
    const KnownTables tables;
    const Rules any{.any_for_update = true};
    if (!judged.twin.empty()) {
        const auto twin = judge(judged.twin, any, &tables);
        require(twin.size() == 1 && twin[0].kind == Kind::read);
    }
    for (const RowLock& lock : judged.row_locks) {
        if (!lock.touch.empty()) {
            const auto touch = judge(lock.touch, any, &tables);
            require(touch.size() == 1 && touch[0].kind == Kind::write);
            require(touch[0].target == lock.table);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view sql{reinterpret_cast<const char*>(data), size};
    const KnownTables tables;
    // The strict rules are lint's; these let more through to what is made of it.
    for (const Judged& judged :
         judge(sql, {.any_for_update = true, .sync_create_index = true}, &tables)) {
        look_at(sql, judged);
    }
    for (const Finding& finding : lint_fix(sql).left) {
        require(finding.line >= 1 && finding.column >= 1 && !finding.rule.empty());
    }
    return 0;
}
