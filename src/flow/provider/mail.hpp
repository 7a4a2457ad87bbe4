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

// When the first of them becomes visible, as a parameter of announce_mail.
[[nodiscard]] std::int64_t earliest_us(const std::vector<Letter>& letters);

// Writes letters; `announced` is the answer to announce_mail. An instance that has not started gets
// an early mailbox; messages to one that has ended are not kept.
Delivery deliver(sql::Tx& tx,
                 const std::string& instance,
                 const std::vector<Letter>& letters,
                 const sql::Rows& announced);
// Makes an instance that is not due yet, or suspended, ready for a cancel request.
// Requires: the request is in the mail.
void hurry(sql::Tx& tx, const std::string& instance);
// Announces and writes.
Delivery send_letters(sql::Tx& tx, const std::string& instance, const std::vector<Letter>& letters);

}  // namespace holdfast::flow
