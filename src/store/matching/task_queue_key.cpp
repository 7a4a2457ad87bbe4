#include <algorithm>
#include <array>

#include "transaction.hpp"
#include <openssl/evp.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/store/task_queue.hpp>

namespace holdfast::store {
namespace {

constexpr unsigned char subqueue_mark = 0x80;

sql::Bytes id_of(const TaskQueueKey& key) {
    sql::Bytes id(key.ns.value.bytes.begin(), key.ns.value.bytes.end());
    const auto name = std::as_bytes(std::span(key.name));
    id.insert(id.end(), name.begin(), name.end());
    const auto type = static_cast<unsigned char>(key.type);
    if (key.subqueue == 0) {
        id.push_back(std::byte{type});
        return id;
    }
    id.push_back(std::byte{static_cast<unsigned char>(type | subqueue_mark)});
    for (auto rest = static_cast<std::uint32_t>(key.subqueue); rest > 0; rest >>= 7U) {
        const std::uint32_t more = rest > 0x7F ? 0x80 : 0;
        id.push_back(std::byte{static_cast<unsigned char>((rest & 0x7FU) | more)});
    }
    return id;
}

}  // namespace

StoredQueueKey stored_key(const TaskQueueKey& key) {
    require_name("the task queue's name", key.name, name_bytes_max);
    if (key.subqueue < 0) {
        throw InvalidArgument("subqueues count from 0");
    }
    StoredQueueKey stored{.range_hash = 0, .digest = {}, .id = id_of(key)};
    std::array<std::byte, 32> digest{};
    const int done = EVP_Digest(stored.id.data(),
                                stored.id.size(),
                                reinterpret_cast<unsigned char*>(digest.data()),
                                nullptr,
                                EVP_sha256(),
                                nullptr);
    HOLDFAST_ASSERT(done == 1);
    std::copy_n(digest.begin(), stored.digest.bytes.size(), stored.digest.bytes.begin());
    stored.digest.bytes[6] = (stored.digest.bytes[6] & std::byte{0x0F}) | std::byte{0x40};
    stored.digest.bytes[8] = (stored.digest.bytes[8] & std::byte{0x3F}) | std::byte{0x80};
    for (std::size_t i = 16; i < 20; ++i) {  // From the other half of the digest.
        stored.range_hash = (stored.range_hash << 8U) | std::to_integer<std::int64_t>(digest[i]);
    }
    return stored;
}

}  // namespace holdfast::store
