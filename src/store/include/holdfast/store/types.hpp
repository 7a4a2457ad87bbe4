// Types that all parts of the store share.
//
// The store keeps the durable state of a workflow service in one database. Beyond keys and fencing
// tokens it knows nothing of what it keeps: everything else is a blob, bytes and the name of their
// encoding, stored as they come.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/sql/value.hpp>

namespace holdfast::store {

// A shard owns the state of the workflows that are hashed to it; from 1. One process owns a shard
// at a time.
enum class ShardId : std::int32_t {};
// Grows with every change of a shard's owner.
enum class RangeId : std::int64_t {};

// The proof that a writer owns the shard it writes for. Every write under a lease whose range is no
// longer the shard's throws ShardOwnershipLost and applies nothing.
struct ShardLease {
    ShardId shard{};
    RangeId range{};

    friend bool operator==(const ShardLease&, const ShardLease&) = default;
};

// Ids of 16 bytes. Each kind is a type of its own, so that they cannot be mixed up.
template <class Kind>
struct Id {
    Uuid value{};

    [[nodiscard]] static Id random() { return {Uuid::v4()}; }
    [[nodiscard]] std::string text() const { return value.text(); }

    friend auto operator<=>(const Id&, const Id&) = default;
};

using NamespaceId = Id<struct NamespaceKind>;
using RunId = Id<struct RunKind>;
using TreeId = Id<struct TreeKind>;
using BranchId = Id<struct BranchKind>;

struct Blob {
    sql::Bytes data{};
    std::string encoding{};

    friend bool operator==(const Blob&, const Blob&) = default;
};

// When a call gives up.
struct Call {
    Deadline deadline = Deadline::after(std::chrono::seconds{30});
    std::stop_token stop{};
};

// What users call things, in bytes of UTF-8: workflows, their types, namespaces, timers, requests,
// task queues. Where such an id is part of a key, a digest of it stands there.
inline constexpr std::size_t id_bytes_max = 1'000;
// Names that are part of a key themselves. Together with the ids beside them they stay below what
// every database takes as a key.
inline constexpr std::size_t name_bytes_max = 255;
inline constexpr std::size_t chasm_path_bytes_max = 512;

}  // namespace holdfast::store
