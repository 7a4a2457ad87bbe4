#include <holdfast/store/history.hpp>

#include <algorithm>
#include <unordered_map>

#include "history/rows.hpp"
#include "history/statements.hpp"
#include "history/tree.hpp"
#include "transaction.hpp"
#include <fmt/core.h>

namespace holdfast::store {
namespace {

constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t trim_page = 1'000;

// A place among the nodes, in the order of the table: the newest of a node first.
struct Place {
    std::int64_t node;
    std::int64_t stored_txn;

    friend auto operator<=>(const Place&, const Place&) = default;
};

// In the database the sign is turned, so that the newest comes first.
std::int64_t stored(std::int64_t txn_id) {
    return -txn_id;
}

Node node_of(const sql::Row& row, bool with_events = true) {
    Node node{.id = row.get<std::int64_t>(0),
              .txn_id = -row.get<std::int64_t>(1),
              .previous_txn_id = row.get<std::int64_t>(2),
              .events = {}};
    if (with_events) {
        node.events = {.data = row.get<sql::Bytes>(3), .encoding = row.get<std::string>(4)};
    }
    return node;
}

Blob blob_of(const sql::Row& row, std::size_t column) {
    return {.data = row.get<sql::Bytes>(column), .encoding = row.get<std::string>(column + 1)};
}

void require_read(const ReadRequest& request) {
    (void)require_page_size(request.page_size);
    if (request.min_event < first_event || request.min_event >= request.max_event) {
        throw InvalidPersistenceRequest(fmt::format(
            "events from {} and before {} cannot be read; ask for a range that has some",
            request.min_event,
            request.max_event));
    }
}

// Both are counted on from, and the sign of a transaction is turned.
void require_place(std::int64_t node, std::int64_t txn_id) {
    if (node < first_event || node == no_event_after || txn_id < 1) {
        throw InvalidPersistenceRequest(
            fmt::format("there is no node {} of transaction {}: both count from 1", node, txn_id));
    }
}

[[noreturn]] void throw_no_history(const Branch& branch) {
    throw NotFound(fmt::format(
        "branch {} of tree {} has no such history", branch.id.text(), branch.tree.text()));
}

// A page that is not the first may be empty: there were as many before it as fit.
HistoryPage checked(HistoryPage page, const ReadRequest& request) {
    if (page.nodes.empty() && !page.next && !request.after) {
        throw_no_history(request.branch);
    }
    return page;
}

// Nodes of several ranges, in the order in which they are asked for, up to a page. A range of fewer
// events than there is room for cannot fill the page: the next one is asked for without waiting.
class PageOfNodes {
public:
    PageOfNodes(sql::Tx& tx, const ReadRequest& request) : tx_(tx), request_(request) {}

    [[nodiscard]] bool full() const { return std::ssize(nodes_) == request_.page_size; }
    // From a place on up to the bound, which are `events` events apart.
    void ask(const sql::Statement& statement,
             BranchId branch,
             Place from,
             std::int64_t bound,
             std::int64_t events) {
        asked_.push_back(tx_.ask(statement,
                                 number(request_.shard),
                                 request_.branch.tree.value,
                                 branch.value,
                                 from.node,
                                 from.stored_txn,
                                 bound,
                                 room()));
        expected_ += std::min(events, request_.page_size);
        if (expected_ >= room()) {
            collect();
        }
    }
    [[nodiscard]] std::vector<Node> take() {
        collect();
        return std::move(nodes_);
    }

private:
    [[nodiscard]] std::int64_t room() const { return request_.page_size - std::ssize(nodes_); }
    void collect() {
        for (sql::Answer& answer : asked_) {
            for (const sql::Row row : answer.rows()) {
                if (!full()) {
                    nodes_.push_back(node_of(row));
                }
            }
        }
        asked_.clear();
        expected_ = 0;
    }

    sql::Tx& tx_;
    const ReadRequest& request_;
    std::vector<sql::Answer> asked_;
    std::int64_t expected_ = 0;
    std::vector<Node> nodes_;
};

// Nodes as they lie, the stale ones among them, from after `place` on.
std::vector<Node> nodes_after(sql::Tx& tx, const ReadRequest& request, Place place) {
    PageOfNodes page(tx, request);
    for (const BranchRange& range : ranges_of(request.branch)) {
        const Place from = std::max(place, Place{range.begin, before_all});
        const std::int64_t end = std::min(range.end, request.max_event);
        if (from.node < end && !page.full()) {
            page.ask(statements::range_nodes, range.branch, from, end, end - from.node);
        }
    }
    return page.take();
}

// The same towards the beginning, from before `place`.
std::vector<Node> nodes_before(sql::Tx& tx, const ReadRequest& request, Place place) {
    PageOfNodes page(tx, request);
    std::vector<BranchRange> ranges = ranges_of(request.branch);
    std::ranges::reverse(ranges);
    for (const BranchRange& range : ranges) {
        const Place to = std::min(place, Place{range.end, before_all});
        const std::int64_t begin = std::max(range.begin, request.min_event);
        if (to.node >= begin && !page.full()) {
            page.ask(statements::range_nodes_back, range.branch, to, begin, to.node - begin);
        }
    }
    return page.take();
}

// A reader that begins in the middle must not take a stale node for the next one: transactions
// grow along a branch, so whatever is older than what lies before is stale.
std::optional<sql::Answer> ask_newest_before(sql::Tx& tx, const ReadRequest& request) {
    for (const BranchRange& range : ranges_of(request.branch)) {
        if (range.begin < request.min_event && request.min_event <= range.end) {
            return tx.ask(statements::newest_before,
                          number(request.shard),
                          request.branch.tree.value,
                          range.branch.value,
                          range.begin,
                          request.min_event);
        }
    }
    return std::nullopt;
}

// All nodes of a branch up to the last, without their events, and where they lie.
struct Placed {
    BranchId branch;
    Node node;
};
std::vector<Placed> metadata_of(sql::Tx& tx,
                                ShardId shard,
                                const Branch& branch,
                                std::int64_t last_node) {
    std::vector<Placed> nodes;
    for (const BranchRange& range : ranges_of(branch)) {
        const std::int64_t end = std::min(range.end, last_node + 1);
        Place from{range.begin, before_all};
        for (bool more = range.begin < end; more;) {
            const sql::Rows rows = tx.query(statements::range_node_metadata,
                                            number(shard),
                                            branch.tree.value,
                                            range.branch.value,
                                            from.node,
                                            from.stored_txn,
                                            end,
                                            trim_page);
            for (const sql::Row row : rows) {
                nodes.push_back({.branch = range.branch, .node = node_of(row, false)});
            }
            more = std::ssize(nodes) > 0 && static_cast<std::int64_t>(rows.size()) == trim_page;
            if (more) {
                from = {nodes.back().node.id, stored(nodes.back().node.txn_id)};
            }
        }
    }
    return nodes;
}

// What does not lead to the last node that counts.
std::vector<Placed> stale_nodes(std::vector<Placed> nodes,
                                std::int64_t last_node,
                                std::int64_t last_txn) {
    std::unordered_map<std::int64_t, Placed> by_txn;
    for (Placed& placed : nodes) {
        by_txn.emplace(placed.node.txn_id, std::move(placed));
    }
    auto valid = by_txn.find(last_txn);
    if (valid == by_txn.end() || valid->second.node.id != last_node) {
        throw NotFound(fmt::format(
            "there is no node {} of transaction {}; nothing was trimmed", last_node, last_txn));
    }
    for (std::int64_t previous = 0;; valid = by_txn.find(previous)) {
        if (valid == by_txn.end()) {
            throw DamagedData(fmt::format(
                "the history misses its transaction {}; nothing was trimmed", previous));
        }
        previous = valid->second.node.previous_txn_id;
        by_txn.erase(valid);
        if (previous == 0) {
            break;
        }
    }
    std::vector<Placed> stale;
    stale.reserve(by_txn.size());
    for (auto& [txn, placed] : by_txn) {
        stale.push_back(std::move(placed));
    }
    return stale;
}

void put_branch(sql::Tx& tx, const BranchRecord& record) {
    const Blob blob = encode_branch(record);
    require_blob(tx.dialect(), blob);
    tx.exec(statements::insert_tree,
            number(record.shard),
            record.branch.tree.value,
            record.branch.id.value,
            blob.data,
            blob.encoding);
}

std::vector<BranchRecord> branches_of(const sql::Rows& rows, ShardId shard, TreeId tree) {
    std::vector<BranchRecord> records;
    for (const sql::Row row : rows) {
        records.push_back(decode_branch(shard, tree, BranchId{row.get<Uuid>(0)}, blob_of(row, 1)));
    }
    return records;
}

void insert_node(sql::Tx& tx, const AppendRequest& request) {
    tx.exec(statements::insert_node,
            number(request.shard),
            request.branch.tree.value,
            request.branch.id.value,
            request.node.id,
            stored(request.node.txn_id),
            request.node.previous_txn_id,
            request.node.events.data,
            request.node.events.encoding);
}

}  // namespace

void require_append(const sql::Dialect& dialect, const AppendRequest& request) {
    const Node& node = request.node;
    if (node.id < request.branch.begin() || node.id == no_event_after || node.txn_id < 1) {
        throw InvalidPersistenceRequest(
            fmt::format("node {} of transaction {} cannot be appended: the branch begins with node "
                        "{}, and transactions count from 1",
                        node.id,
                        node.txn_id,
                        request.branch.begin()));
    }
    if (node.events.data.size() > History::append_bytes_max) {
        throw TransactionSizeLimit(
            fmt::format("events of {} bytes are more than the {} of one "
                        "append; split them",
                        node.events.data.size(),
                        History::append_bytes_max));
    }
    require_blob(dialect, node.events);
}

sql::Timestamp birth_of_branches(sql::Tx& tx, std::span<const AppendRequest> nodes) {
    const bool born = std::ranges::any_of(nodes, &AppendRequest::is_new_branch);
    return born ? tx.now() : sql::Timestamp{};
}

void append_nodes(sql::Tx& tx, std::span<const AppendRequest> nodes, sql::Timestamp now) {
    for (const AppendRequest& request : nodes) {
        if (request.is_new_branch) {
            put_branch(tx,
                       {.shard = request.shard,
                        .branch = request.branch,
                        .forked_at = now,
                        .info = request.info});
        }
        insert_node(tx, request);
    }
}

Branch History::new_branch(TreeId tree) {
    return {.tree = tree, .id = BranchId::random(), .ancestors = {}};
}

void History::append(const AppendRequest& request, const Call& call) {
    require_append(db_.dialect(), request);
    try {
        transact(db_, operation::append_nodes, call, [&](sql::Tx& tx) {
            const std::span<const AppendRequest> node(&request, 1);
            append_nodes(tx, node, birth_of_branches(tx, node));
        });
    } catch (const Error& error) {
        if (error.code() != Code::deadline && error.code() != Code::cancelled) {
            throw;
        }
        AppendHistoryTimeout late(
            fmt::format("the append of node {} was cut off; it may be "
                        "repeated as it is",
                        request.node.id));
        late.set_cause(std::current_exception());
        throw late;
    }
}

HistoryPage History::read(const ReadRequest& request, const Call& call) const {
    require_read(request);
    return transact(db_, operation::read_branch, call, [&](sql::Tx& tx) {
        HistoryCursor at = request.after.value_or(
            HistoryCursor{.node = request.min_event, .txn = 0, .valid_node = 0, .valid_txn = 0});
        std::optional<sql::Answer> newest;
        if (!request.after) {
            newest = ask_newest_before(tx, request);
        }
        const std::vector<Node> found =
            nodes_after(tx, request, {at.node, request.after ? stored(at.txn) : before_all});
        if (newest) {
            at.valid_txn = -newest->rows()[0].get<std::optional<std::int64_t>>(0).value_or(0);
        }
        HistoryPage page;
        for (const Node& node : found) {
            if (node.txn_id > at.valid_txn && node.id > at.valid_node) {
                at.valid_node = node.id;
                at.valid_txn = node.txn_id;
                page.nodes.push_back(node);
            }
        }
        if (std::ssize(found) == request.page_size) {
            at.node = found.back().id;
            at.txn = found.back().txn_id;
            page.next = at;
        }
        return checked(std::move(page), request);
    });
}

HistoryPage History::read_back(const ReadRequest& request,
                               std::int64_t last_txn,
                               const Call& call) const {
    require_read(request);
    return transact(db_, operation::read_branch, call, [&](sql::Tx& tx) {
        HistoryCursor at = request.after.value_or(HistoryCursor{
            .node = request.max_event, .txn = 0, .valid_node = 0, .valid_txn = last_txn});
        const std::vector<Node> found =
            nodes_before(tx, request, {at.node, request.after ? stored(at.txn) : before_all});
        HistoryPage page;
        for (const Node& node : found) {
            if (node.txn_id == at.valid_txn) {
                at.valid_node = node.id;
                at.valid_txn = node.previous_txn_id;
                page.nodes.push_back(node);
            }
        }
        if (std::ssize(found) == request.page_size) {
            at.node = found.back().id;
            at.txn = found.back().txn_id;
            page.next = at;
        }
        return checked(std::move(page), request);
    });
}

Branch History::fork(ShardId shard,
                     const Branch& parent,
                     std::int64_t node,
                     const std::string& info,
                     const Call& call) {
    if (node <= first_event) {
        throw InvalidPersistenceRequest(
            fmt::format("a fork before node {} has nothing in common with its parent", node));
    }
    const Branch fork{.tree = parent.tree,
                      .id = BranchId::random(),
                      .ancestors = ancestors_of_fork(parent, node)};
    transact(db_, operation::fork_branch, call, [&](sql::Tx& tx) {
        sql::Answer locked =
            tx.ask(statements::lock_branch, number(shard), parent.tree.value, parent.id.value);
        const sql::Timestamp now = tx.now();
        const sql::Rows rows = locked.rows();
        const auto row = rows.single();
        if (!row || decode_branch(shard, parent.tree, parent.id, blob_of(*row, 0)).deleting) {
            throw_no_history(parent);
        }
        put_branch(tx, {.shard = shard, .branch = fork, .forked_at = now, .info = info});
    });
    return fork;
}

std::int64_t History::trim(ShardId shard,
                           const Branch& branch,
                           std::int64_t last_node,
                           std::int64_t last_txn,
                           const Call& call) {
    require_place(last_node, last_txn);
    const std::vector<Placed> nodes = transact(db_, operation::read_branch, call, [&](sql::Tx& tx) {
        return metadata_of(tx, shard, branch, last_node);
    });
    const std::vector<Placed> stale = stale_nodes(nodes, last_node, last_txn);
    for (const Placed& placed : stale) {
        (void)run(db_,
                  operation::delete_nodes,
                  call,
                  statements::delete_node,
                  number(shard),
                  branch.tree.value,
                  placed.branch.value,
                  placed.node.id,
                  stored(placed.node.txn_id));
    }
    return std::ssize(stale);
}

void History::delete_node(
    ShardId shard, const Branch& branch, std::int64_t node, std::int64_t txn_id, const Call& call) {
    require_place(node, txn_id);
    if (node < branch.begin()) {
        throw InvalidPersistenceRequest(fmt::format(
            "node {} belongs to an ancestor; the branch begins with {}", node, branch.begin()));
    }
    (void)run(db_,
              operation::delete_nodes,
              call,
              statements::delete_node,
              number(shard),
              branch.tree.value,
              branch.id.value,
              node,
              stored(txn_id));
}

void History::remove(ShardId shard, const Branch& branch, const Call& call) {
    const bool found = transact(db_, operation::mark_branch, call, [&](sql::Tx& tx) {
        const sql::Rows rows =
            tx.query(statements::lock_branch, number(shard), branch.tree.value, branch.id.value);
        const auto row = rows.single();
        if (row) {
            BranchRecord itself = decode_branch(shard, branch.tree, branch.id, blob_of(*row, 0));
            itself.deleting = true;
            put_branch(tx, itself);
        }
        return row.has_value();
    });
    if (!found) {
        return;  // Gone already.
    }
    // The other branches are read only now: of two deletions at the same moment, the later one sees
    // the mark of the other, and deletes what both had in common.
    const std::vector<BranchRange> ranges =
        ranges_to_delete(branch, branches(shard, branch.tree, call));
    for (const BranchRange& range : ranges) {
        in_chunks([&] {
            return run(db_,
                       operation::delete_branch,
                       call,
                       statements::delete_nodes,
                       number(shard),
                       branch.tree.value,
                       range.branch.value,
                       range.begin,
                       chunk_rows)
                .changed;
        });
    }
    (void)run(db_,
              operation::delete_branch,
              call,
              statements::delete_tree,
              number(shard),
              branch.tree.value,
              branch.id.value);
}

std::vector<BranchRecord> History::branches(ShardId shard, TreeId tree, const Call& call) const {
    const sql::Result found =
        run(db_, operation::get_tree, call, statements::select_tree, number(shard), tree.value);
    return branches_of(found.rows, shard, tree);
}

std::vector<BranchRecord> History::scan(std::int64_t page_size,
                                        const std::optional<BranchRecord>& after,
                                        const Call& call) const {
    const BranchRecord none;
    const BranchRecord& last = after ? *after : none;
    const sql::Result found = run(db_,
                                  operation::scan_trees,
                                  call,
                                  statements::page_of_trees,
                                  static_cast<std::int32_t>(last.shard),
                                  last.branch.tree.value,
                                  last.branch.id.value,
                                  require_page_size(page_size));
    std::vector<BranchRecord> records;
    for (const sql::Row row : found.rows) {
        records.push_back(decode_branch(ShardId{row.get<std::int32_t>(0)},
                                        TreeId{row.get<Uuid>(1)},
                                        BranchId{row.get<Uuid>(2)},
                                        blob_of(row, 3)));
    }
    return records;
}

}  // namespace holdfast::store
