#include "id_digest.hpp"
#include "transaction.hpp"

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
    require_name("the task queue's name", key.name, id_bytes_max);
    if (key.subqueue < 0) {
        throw InvalidArgument("subqueues count from 0");
    }
    StoredQueueKey stored{.range_hash = 0, .digest = {}, .id = id_of(key)};
    const IdDigest digest = digest_of(stored.id);
    stored.digest = digest.key;
    stored.range_hash = digest.spread;
    return stored;
}

}  // namespace holdfast::store
