#include <holdfast/store/history.hpp>

#include <algorithm>
#include <unordered_map>

#include "execution/lease.hpp"
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

void insert_node(sql::Tx& tx, ShardId shard, const AppendRequest& request) {
    tx.exec(statements::insert_node,
            number(shard),
            request.branch.tree.value,
            request.branch.id.value,
            request.node.id,
            stored(request.node.txn_id),
            request.node.previous_txn_id,
            request.node.events.data,
            request.node.events.encoding);
}

sql::Answer ask_branch(sql::Tx& tx, ShardId shard, TreeId tree, BranchId branch) {
    return tx.ask(statements::lock_branch, number(shard), tree.value, branch.value);
}

// Empty: it is not known.
std::optional<BranchRecord> read_branch(const sql::Rows& rows,
                                        ShardId shard,
                                        TreeId tree,
                                        BranchId branch) {
    const auto row = rows.single();
    return row ? std::optional(decode_branch(shard, tree, branch, blob_of(*row, 0))) : std::nullopt;
}

// A parent that is on its way out has been counted among those that need nothing.
void require_parent(const sql::Rows& rows, ShardId shard, TreeId tree, BranchId parent) {
    const auto found = read_branch(rows, shard, tree, parent);
    if (!found || found->deleting) {
        throw_no_history({.tree = tree, .id = parent, .ancestors = {}});
    }
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
    if (request.forked_from && (!request.is_new_branch || request.branch.ancestors.empty())) {
        throw InvalidPersistenceRequest(
            fmt::format("branch {} has no parent to be forked from: it is not new, or it has no "
                        "ancestors",
                        request.branch.id.text()));
    }
    require_blob(dialect, node.events);
}

Appends::Appends(sql::Tx& tx, ShardId shard, std::span<const AppendRequest> nodes)
    : shard_(shard), nodes_(nodes) {
    for (const AppendRequest& request : nodes) {
        if (request.forked_from) {
            parents_.push_back(
                {.tree = request.branch.tree,
                 .id = *request.forked_from,
                 .locked = ask_branch(tx, shard, request.branch.tree, *request.forked_from)});
        }
    }
    if (std::ranges::any_of(nodes, &AppendRequest::is_new_branch)) {
        now_ = tx.now();
    }
}

void Appends::require_parents() {
    for (Parent& parent : parents_) {
        require_parent(parent.locked.rows(), shard_, parent.tree, parent.id);
    }
}

void Appends::write(sql::Tx& tx) const {
    for (const AppendRequest& request : nodes_) {
        if (request.is_new_branch) {
            put_branch(tx,
                       {.shard = shard_,
                        .branch = request.branch,
                        .forked_at = now_,
                        .info = request.info});
        }
        insert_node(tx, shard_, request);
    }
}

Branch History::new_branch(TreeId tree) {
    return {.tree = tree, .id = BranchId::random(), .ancestors = {}};
}

Branch History::fork_of(const Branch& parent, std::int64_t node) {
    if (node <= first_event) {
        throw InvalidPersistenceRequest(
            fmt::format("a fork before node {} has nothing in common with its parent", node));
    }
    return {.tree = parent.tree,
            .id = BranchId::random(),
            .ancestors = ancestors_of_fork(parent, node)};
}

void History::append(const ShardLease& lease, const AppendRequest& request, const Call& call) {
    require_append(shards_.database().dialect(), request);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        Appends node(tx, lease.shard, {&request, 1});
        if (request.forked_from) {
            proof.require();
            node.require_parents();
        }
        node.write(tx);
    };
    try {
        transact_under(shards_, lease, operation::append_nodes, call, body);
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
    return transact(shards_.database(), operation::read_branch, call, [&](sql::Tx& tx) {
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
    return transact(shards_.database(), operation::read_branch, call, [&](sql::Tx& tx) {
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

Branch History::fork(const ShardLease& lease,
                     const Branch& parent,
                     std::int64_t node,
                     const std::string& info,
                     const Call& call) {
    const Branch fork = fork_of(parent, node);
    const auto body = [&](sql::Tx& tx, LeaseProof& proof) {
        sql::Answer locked = ask_branch(tx, lease.shard, parent.tree, parent.id);
        const sql::Timestamp now = tx.now();
        proof.require();
        require_parent(locked.rows(), lease.shard, parent.tree, parent.id);
        put_branch(tx, {.shard = lease.shard, .branch = fork, .forked_at = now, .info = info});
    };
    transact_under(shards_, lease, operation::fork_branch, call, body);
    return fork;
}

std::int64_t History::trim(const ShardLease& lease,
                           const Branch& branch,
                           std::int64_t last_node,
                           std::int64_t last_txn,
                           const Call& call) {
    require_place(last_node, last_txn);
    const auto read = [&](sql::Tx& tx) { return metadata_of(tx, lease.shard, branch, last_node); };
    const std::vector<Placed> stale = stale_nodes(
        transact(shards_.database(), operation::read_branch, call, read), last_node, last_txn);
    std::span<const Placed> left(stale);
    do {  // Also if nothing is stale: a lost lease is told.
        const auto chunk = left.first(std::min(left.size(), std::size_t{chunk_rows}));
        left = left.subspan(chunk.size());
        const auto body = [&](sql::Tx& tx, LeaseProof&) {
            for (const Placed& placed : chunk) {
                tx.exec(statements::delete_node,
                        number(lease.shard),
                        branch.tree.value,
                        placed.branch.value,
                        placed.node.id,
                        stored(placed.node.txn_id));
            }
        };
        transact_under(shards_, lease, operation::delete_nodes, call, body);
    } while (!left.empty());
    return std::ssize(stale);
}

void History::delete_node(const ShardLease& lease,
                          const Branch& branch,
                          std::int64_t node,
                          std::int64_t txn_id,
                          const Call& call) {
    require_place(node, txn_id);
    if (node < branch.begin()) {
        throw InvalidPersistenceRequest(fmt::format(
            "node {} belongs to an ancestor; the branch begins with {}", node, branch.begin()));
    }
    const auto body = [&](sql::Tx& tx, LeaseProof&) {
        tx.exec(statements::delete_node,
                number(lease.shard),
                branch.tree.value,
                branch.id.value,
                node,
                stored(txn_id));
    };
    transact_under(shards_, lease, operation::delete_nodes, call, body);
}

void History::remove(const ShardLease& lease, const Branch& branch, const Call& call) {
    const auto mark = [&](sql::Tx& tx, LeaseProof& proof) {
        sql::Answer locked = ask_branch(tx, lease.shard, branch.tree, branch.id);
        proof.require();
        auto itself = read_branch(locked.rows(), lease.shard, branch.tree, branch.id);
        if (itself) {
            itself->deleting = true;
            put_branch(tx, *itself);
        }
        return itself.has_value();
    };
    if (!transact_under(shards_, lease, operation::mark_branch, call, mark)) {
        return;  // Gone already.
    }
    // The other branches are read only now: of two deletions at the same moment, the later one sees
    // the mark of the other, and deletes what both had in common.
    const std::vector<BranchRange> ranges =
        ranges_to_delete(branch, branches(lease.shard, branch.tree, call));
    for (const BranchRange& range : ranges) {
        const auto chunk = [&](sql::Tx& tx, LeaseProof&) {
            return tx.count(statements::delete_nodes,
                            number(lease.shard),
                            branch.tree.value,
                            range.branch.value,
                            range.begin,
                            chunk_rows);
        };
        in_chunks(
            [&] { return transact_under(shards_, lease, operation::delete_branch, call, chunk); });
    }
    const auto last = [&](sql::Tx& tx, LeaseProof&) {
        tx.exec(statements::delete_tree, number(lease.shard), branch.tree.value, branch.id.value);
    };
    transact_under(shards_, lease, operation::delete_branch, call, last);
}

std::vector<BranchRecord> History::branches(ShardId shard, TreeId tree, const Call& call) const {
    const sql::Result found = run(shards_.database(),
                                  operation::get_tree,
                                  call,
                                  statements::select_tree,
                                  number(shard),
                                  tree.value);
    return branches_of(found.rows, shard, tree);
}

std::vector<BranchRecord> History::scan(std::int64_t page_size,
                                        const std::optional<BranchRecord>& after,
                                        const Call& call) const {
    const BranchRecord none;
    const BranchRecord& last = after ? *after : none;
    const sql::Result found = run(shards_.database(),
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
