// Tables that exist only in the judge's mind.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "judge.hpp"

namespace holdfast::dsql {

class KnownTables : public Tables {
public:
    KnownTables() {
        facts_["accounts"] = {.key = {"id"},
                              .columns = {{"id", "bigint"},
                                          {"owner", "text"},
                                          {"cents", "bigint"},
                                          {"photo", "bytea"},
                                          {"doc", "jsonb"}}};
        facts_["nodes"] = {.key = {"tree", "node"},
                           .columns = {{"tree", "uuid"}, {"node", "bigint"}, {"data", "bytea"}}};
        facts_["notes"] = {.key = {}, .columns = {{"text", "text"}}};
    }

    [[nodiscard]] const TableFacts* find(const TableName& name) const override {
        const auto found = facts_.find(name.name);
        return found == facts_.end() ? nullptr : &found->second;
    }

private:
    std::map<std::string, TableFacts> facts_;
};

inline Judged judge_one(std::string_view sql, const Rules& rules = {}) {
    const KnownTables tables;
    auto judged = judge(sql, rules, &tables);
    return judged.size() == 1 ? std::move(judged[0]) : Judged{};
}

// Of the refusal; empty if there is none.
inline std::string state_of(std::string_view sql) {
    const Judged judged = judge_one(sql);
    return judged.refusal ? std::string(judged.refusal->code) : std::string{};
}

}  // namespace holdfast::dsql
