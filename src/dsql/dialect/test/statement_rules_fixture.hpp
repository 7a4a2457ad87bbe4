// Tables that only the check knows.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "dialect/statement_rules.hpp"

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

inline CheckedStatement check_one(std::string_view sql, const Rules& rules = {}) {
    const KnownTables tables;
    auto checked = check_statements(sql, rules, &tables);
    return checked.size() == 1 ? std::move(checked[0]) : CheckedStatement{};
}

// Of the refusal; empty if there is none.
inline std::string state_of(std::string_view sql) {
    const CheckedStatement checked = check_one(sql);
    return checked.refusal ? std::string(checked.refusal->code) : std::string{};
}

}  // namespace holdfast::dsql
