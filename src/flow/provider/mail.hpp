// Mail for one instance, on its way into the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::flow {

// A message as a row.
struct Letter {
    explicit Letter(const Message& message, std::int64_t visible_at_ms = 0);

    std::int64_t execution;
    std::int64_t timer;  // The event of a timer, else 0.
    std::int64_t visible_at_us;
    bool cancels;  // Asks the instance to end.
    std::string body;
};

// When the first of them can be seen, as announce_mail wants it.
[[nodiscard]] std::int64_t earliest_us(const std::vector<Letter>& letters);

// Writes letters whose mailbox was announced; `announced` is the answer to that. An instance that
// has not started gets an early mailbox; what is sent to one that has ended is not kept.
Delivery deliver(sql::Tx& tx,
                 const std::string& instance,
                 const std::vector<Letter>& letters,
                 const sql::Rows& announced);
// A request to end reaches also who is not due yet, or suspended: nobody waits a day for it.
// Requires: it is in the mail.
void hurry(sql::Tx& tx, const std::string& instance);
// Announces and writes.
Delivery send_letters(sql::Tx& tx, const std::string& instance, const std::vector<Letter>& letters);

}  // namespace holdfast::flow
