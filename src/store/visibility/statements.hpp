// The rows of visibility. Searches are built, see visibility_query.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <holdfast/sql/statement.hpp>

namespace holdfast::store::statements {

using sql::Statement;

// ---- Rows -------------------------------------------------------------------------------------

#define HOLDFAST_INSERT_VISIBILITY                                                           \
    "INSERT INTO executions_visibility (namespace_id, run_id, version, start_time, "         \
    "execution_time, close_time, sort_time, workflow_id, workflow_digest, workflow_prefix, " \
    "workflow_type_name, workflow_type_digest, workflow_type_prefix, status, "               \
    "history_length, history_size_bytes, execution_duration_us, state_transition_count, "    \
    "memo, memo_encoding, task_queue, search_attributes, parent_workflow_id, "               \
    "parent_run_id, root_workflow_id, root_run_id) "                                         \
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, "   \
    "$18, $19, $20, $21, $22, $23, $24, $25, $26)"
#define HOLDFAST_REPLACE_VISIBILITY                                                    \
    "ON CONFLICT (namespace_id, run_id) DO UPDATE SET "                                \
    "version = excluded.version, start_time = excluded.start_time, "                   \
    "execution_time = excluded.execution_time, close_time = excluded.close_time, "     \
    "sort_time = excluded.sort_time, workflow_id = excluded.workflow_id, "             \
    "workflow_digest = excluded.workflow_digest, "                                     \
    "workflow_prefix = excluded.workflow_prefix, "                                     \
    "workflow_type_name = excluded.workflow_type_name, "                               \
    "workflow_type_digest = excluded.workflow_type_digest, "                           \
    "workflow_type_prefix = excluded.workflow_type_prefix, status = excluded.status, " \
    "history_length = excluded.history_length, "                                       \
    "history_size_bytes = excluded.history_size_bytes, "                               \
    "execution_duration_us = excluded.execution_duration_us, "                         \
    "state_transition_count = excluded.state_transition_count, memo = excluded.memo, " \
    "memo_encoding = excluded.memo_encoding, task_queue = excluded.task_queue, "       \
    "search_attributes = excluded.search_attributes, "                                 \
    "parent_workflow_id = excluded.parent_workflow_id, "                               \
    "parent_run_id = excluded.parent_run_id, "                                         \
    "root_workflow_id = excluded.root_workflow_id, root_run_id = excluded.root_run_id"
inline constexpr Statement insert_visibility{"store.insert_visibility",
                                             HOLDFAST_INSERT_VISIBILITY
                                             " ON CONFLICT (namespace_id, run_id) DO NOTHING"};
inline constexpr Statement replace_visibility{
    "store.replace_visibility",
    HOLDFAST_INSERT_VISIBILITY " " HOLDFAST_REPLACE_VISIBILITY
                               " WHERE executions_visibility.version < excluded.version"};
// Whatever the row holds. Requires: the run's own row is locked.
inline constexpr Statement upsert_visibility{
    "store.upsert_visibility", HOLDFAST_INSERT_VISIBILITY " " HOLDFAST_REPLACE_VISIBILITY};

#undef HOLDFAST_INSERT_VISIBILITY
#undef HOLDFAST_REPLACE_VISIBILITY

inline constexpr Statement delete_visibility{
    "store.delete_visibility",
    "DELETE FROM executions_visibility WHERE namespace_id = $1 AND run_id = $2"};

// Attributes of one run: $1 to $4 are its own, each row adds a name and a value.
inline constexpr std::size_t attribute_rows_max = 128;

template <std::size_t Rows>
class AttributeRows {
public:
    consteval AttributeRows() {
        add("INSERT INTO visibility_attributes "
            "(namespace_id, sort_time, start_time, run_id, name, value) VALUES ");
        for (std::size_t row = 0; row < Rows; ++row) {
            add(row == 0 ? "($1, $2, $3, $4, $" : ", ($1, $2, $3, $4, $");
            add_number(5 + 2 * row);
            add(", $");
            add_number(6 + 2 * row);
            add(")");
        }
    }
    [[nodiscard]] consteval std::string_view text() const { return {text_.data(), size_}; }

private:
    consteval void add(std::string_view part) {
        for (const char c : part) {
            text_.at(size_++) = c;
        }
    }
    consteval void add_number(std::size_t number) {
        if (number >= 10) {
            add_number(number / 10);
        }
        text_.at(size_++) = static_cast<char>('0' + number % 10);
    }

    std::array<char, 128 + Rows * 32> text_{};
    std::size_t size_ = 0;
};
template <std::size_t Rows>
inline constexpr AttributeRows<Rows> attribute_rows{};

inline constexpr Statement insert_attributes_1{"store.insert_attributes_1",
                                               attribute_rows<1>.text()};
inline constexpr Statement insert_attributes_2{"store.insert_attributes_2",
                                               attribute_rows<2>.text()};
inline constexpr Statement insert_attributes_4{"store.insert_attributes_4",
                                               attribute_rows<4>.text()};
inline constexpr Statement insert_attributes_8{"store.insert_attributes_8",
                                               attribute_rows<8>.text()};
inline constexpr Statement insert_attributes_16{"store.insert_attributes_16",
                                                attribute_rows<16>.text()};
inline constexpr Statement insert_attributes_32{"store.insert_attributes_32",
                                                attribute_rows<32>.text()};
inline constexpr Statement insert_attributes_64{"store.insert_attributes_64",
                                                attribute_rows<64>.text()};
inline constexpr Statement insert_attributes_128{"store.insert_attributes_128",
                                                 attribute_rows<128>.text()};
// By the power of two that is the number of rows.
inline constexpr std::array<const Statement*, 8> insert_attributes{&insert_attributes_1,
                                                                   &insert_attributes_2,
                                                                   &insert_attributes_4,
                                                                   &insert_attributes_8,
                                                                   &insert_attributes_16,
                                                                   &insert_attributes_32,
                                                                   &insert_attributes_64,
                                                                   &insert_attributes_128};
inline constexpr Statement delete_attributes{
    "store.delete_attributes",
    "DELETE FROM visibility_attributes WHERE namespace_id = $1 AND run_id = $2"};

// ---- Reads ------------------------------------------------------------------------------------

#define HOLDFAST_VISIBLE_COLUMNS                                                              \
    "v.namespace_id, v.run_id, v.version, v.start_time, v.execution_time, v.close_time, "     \
    "v.workflow_id, v.workflow_type_name, v.status, v.history_length, v.history_size_bytes, " \
    "v.execution_duration_us, v.state_transition_count, v.memo, v.memo_encoding, "            \
    "v.task_queue, v.search_attributes, v.parent_workflow_id, v.parent_run_id, "              \
    "v.root_workflow_id, v.root_run_id"
inline constexpr std::string_view visible_columns = HOLDFAST_VISIBLE_COLUMNS;
inline constexpr Statement find_visibility{
    "store.find_visibility",
    "SELECT " HOLDFAST_VISIBLE_COLUMNS
    " FROM executions_visibility v WHERE v.namespace_id = $1 AND v.run_id = $2"};

#undef HOLDFAST_VISIBLE_COLUMNS

}  // namespace holdfast::store::statements
