// Reads that lock.
#pragma once

#include <string_view>

#include <holdfast/sql/statement.hpp>

namespace holdfast::store {

// A SELECT that locks what it finds, for the writes that follow it in its transaction. As a
// transaction of its own it would protect nothing: run() of transaction.hpp does not take it.
class LockingRead : public sql::Statement {
public:
    consteval LockingRead(std::string_view name, std::string_view text)
        : sql::Statement(name, text) {}
};

}  // namespace holdfast::store
