// A run's row in visibility, and the rows of its attributes, inside a transaction of the caller.
#pragma once

#include <cstddef>
#include <string_view>

#include "visibility/search_attributes.hpp"

#include <holdfast/sql/tx.hpp>
#include <holdfast/store/visibility.hpp>

namespace holdfast::store {

// How a name begins, as far as an index keeps it: whole characters of that many bytes at most. Of
// two names one of which begins with the other, so do these.
inline constexpr std::size_t indexed_prefix_bytes = 128;
[[nodiscard]] std::string_view indexed_prefix(std::string_view name) noexcept;

// A record that was checked once, however often its transaction runs.
class VisibilityRow {
public:
    // Requires: `record` outlives this object. Throws invalid_argument or TransactionSizeLimit if
    // it cannot be stored.
    VisibilityRow(const sql::Dialect& dialect,
                  const VisibilityRecord& record,
                  std::int64_t version);

    // Whether `statement`, which may leave a row as it is, wrote the row. Waits for the answer.
    [[nodiscard]] bool write(sql::Tx& tx, const sql::Statement& statement) const;
    // In place of those that the run has. Does not wait.
    // Requires: this transaction has written the row, and so holds it until its commit.
    void write_attributes(sql::Tx& tx) const;
    // The row and its attributes, whatever the row held before. Does not wait.
    // Requires: a row that this transaction has locked keeps older writers away.
    void upsert(sql::Tx& tx) const;

private:
    const VisibilityRecord& record_;
    std::int64_t version_;
    CheckedAttributes attributes_;
    sql::Json stored_;
};

}  // namespace holdfast::store
