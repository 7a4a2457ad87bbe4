// Turns that commit together.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "provider/columns.hpp"
#include "provider/mail.hpp"

#include <holdfast/base/assert.hpp>
#include <holdfast/flow/provider.hpp>
#include <holdfast/sql/tx.hpp>

namespace holdfast::flow {

// Thrown out of the transaction, which then has written nothing: turn number `turn` cannot commit.
struct TurnRefused {
    std::size_t turn;
};

// What the commit made ready at once, and so which waiting workers to notify.
struct Woken {
    bool workflows = false;
    bool activities = false;
};

// Some turns of different instances, made ready outside of the transaction: encoding is the
// expensive part, and a database with one writer must not wait for it.
class TurnBatch {
public:
    // Requires: the turns outlive this object; no instance occurs twice.
    explicit TurnBatch(const std::vector<const TurnCommit*>& turns);

    // Writes all of them, or throws TurnRefused. May run more than once.
    Woken write(sql::Tx& tx) const;

private:
    struct Prepared {
        const TurnCommit* turn;
        HistoryText history;
        HistoryText next_history;
    };
    // All that happens to one instance. The rows of instances and mailboxes are changed in the
    // order of their ids, so that two batches never wait for each other in a circle.
    struct Place {
        std::optional<std::size_t> turn{};
        std::vector<std::pair<const OutgoingStart*, Uuid>> starts{};  // With the token it gets.
        std::vector<Letter> letters{};
        bool touches_mail = false;  // Removes mail, so the mailbox must be settled.
        bool ends = false;
        bool wakes = false;  // Other processes are notified of its mail.

        // Requires: it has a turn.
        [[nodiscard]] std::size_t own_turn() const {
            HOLDFAST_ASSERT(turn.has_value());
            return *turn;
        }
    };
    using Entry = std::pair<const std::string, Place>;
    struct Finished {
        std::size_t turn;
        const ActivityEnd* end;
    };
    struct Answers;

    void prepare(std::size_t index);
    void ask_place(sql::Tx& tx,
                   const std::string& instance,
                   const Place& place,
                   Answers& answers) const;
    void ask_creation(sql::Tx& tx, const Entry& entry, Answers& answers) const;
    [[nodiscard]] sql::FenceAnswer ask_turn(sql::Tx& tx, const Prepared& prepared) const;
    // The same for a turn that continues as `next`.
    [[nodiscard]] sql::FenceAnswer ask_continuing_turn(sql::Tx& tx,
                                                       const Prepared& prepared,
                                                       const NextExecution& next) const;
    // Which turn cannot commit, if one cannot.
    [[nodiscard]] static std::optional<std::size_t> find_refused(Answers& answers);
    void write_turn(sql::Tx& tx, const Prepared& prepared, bool has_mail) const;
    void write_state(sql::Tx& tx, const TurnCommit& turn) const;
    void write_mail(sql::Tx& tx, Answers& answers, Woken& woken) const;
    void answer_refused_starts(sql::Tx& tx, Answers& answers, Woken& woken) const;

    std::vector<Prepared> turns_;
    std::map<std::string, Place> places_;
    std::vector<Finished> finished_;
};

}  // namespace holdfast::flow
