// What the store makes of a database.
#pragma once

#include <memory>

#include <holdfast/bench/suite.hpp>

namespace holdfast::bench {

// pg.create|update|add_task|get_tasks.cN: N clients, each with a shard and a queue of its own,
// against pgbench's one-row UPDATE by as many clients on the same server. sqlite.….wN: on a file,
// against a plain loop on the bare C API with one commit each. dsql.….cN: through the gateway,
// against the same work of the store on the PostgreSQL below it. ….one_shard.…: all clients write
// for one shard.
[[nodiscard]] std::unique_ptr<Suite> make_store_suite(const WaitTicket& place);

}  // namespace holdfast::bench
