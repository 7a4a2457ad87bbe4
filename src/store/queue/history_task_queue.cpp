#include <holdfast/store/history_task_queue.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "codec.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

// A message is the shard in four bytes, the highest first, and then the task. Its encoding is the
// task's, behind these words.
constexpr std::string_view encoding_mark = "HistoryTask/";
constexpr std::size_t shard_bytes = 4;

Blob encode(ShardId shard, const Blob& task) {
    const auto value = static_cast<std::uint32_t>(number(shard));
    if (task.data.empty()) {
        throw InvalidArgument("a history task without bytes; give the task that is to be kept");
    }
    Blob message{.data = {}, .encoding = std::string(encoding_mark) + task.encoding};
    message.data.reserve(shard_bytes + task.data.size());
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        message.data.push_back(static_cast<std::byte>((value >> shift) & 0xFFU));
    }
    message.data.insert(message.data.end(), task.data.begin(), task.data.end());
    return message;
}

QueuedHistoryTask decode_task(const Message& message, const QueueName& queue) {
    const auto damaged = [&](std::string_view why) {
        throw_damaged(fmt::format("message {} of queue \"{}\"", message.id, queue.name), why);
    };
    const Blob& blob = message.blob;
    if (!blob.encoding.starts_with(encoding_mark)) {
        damaged(fmt::format("its encoding is '{}'", blob.encoding));
    }
    if (blob.data.size() <= shard_bytes) {
        damaged("it is too short for a task");
    }
    std::uint32_t shard = 0;
    for (std::size_t i = 0; i < shard_bytes; ++i) {
        shard = (shard << 8U) | std::to_integer<std::uint32_t>(blob.data[i]);
    }
    if (shard == 0 || shard > std::numeric_limits<std::int32_t>::max()) {
        damaged(fmt::format("there is no shard {}", shard));
    }
    return {.id = message.id,
            .shard = ShardId{static_cast<std::int32_t>(shard)},
            .task = {.data = sql::Bytes(blob.data.begin() + shard_bytes, blob.data.end()),
                     .encoding = blob.encoding.substr(encoding_mark.size())}};
}

}  // namespace

QueueName stored_name(const HistoryTaskQueue& queue) {
    require_name("the source cluster's name", queue.source_cluster, name_bytes_max);
    require_name("the target cluster's name", queue.target_cluster, name_bytes_max);
    // With its length before it, a name may have any letters.
    QueueName name{.type = static_cast<std::int32_t>(queue.kind),
                   .name = fmt::format("{}/{}:{}/{}",
                                       static_cast<std::int32_t>(queue.category),
                                       queue.source_cluster.size(),
                                       queue.source_cluster,
                                       queue.target_cluster)};
    require_name("the queue between two clusters", name.name, name_bytes_max);
    return name;
}

void HistoryTaskQueues::create(const HistoryTaskQueue& queue, const Call& call) {
    queues_.create(stored_name(queue), call);
}

std::int64_t HistoryTaskQueues::enqueue(const HistoryTaskQueue& queue,
                                        ShardId shard,
                                        const Blob& task,
                                        const Call& call) {
    return queues_.enqueue(stored_name(queue), encode(shard, task), call);
}

std::vector<QueuedHistoryTask> HistoryTaskQueues::read(const HistoryTaskQueue& queue,
                                                       std::int64_t page_size,
                                                       std::optional<std::int64_t> after,
                                                       const Call& call) const {
    const QueueName name = stored_name(queue);
    std::vector<QueuedHistoryTask> page;
    for (const Message& message : queues_.read(name, page_size, after, call)) {
        page.push_back(decode_task(message, name));
    }
    return page;
}

std::int64_t HistoryTaskQueues::remove_up_to(const HistoryTaskQueue& queue,
                                             std::int64_t last,
                                             const Call& call) {
    return queues_.remove_up_to(stored_name(queue), last, call);
}

}  // namespace holdfast::store
