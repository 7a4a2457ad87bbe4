// A process that is killed in the middle of its work, and the count of what it left behind.
//
//   test::Victim victim([&](test::Witness& witness) { ... insert(7); witness.acknowledged(7); ...
//   }); auto acknowledged = victim.kill_after(100, Deadline::after(30s));
//   EXPECT_EQ(test::check_statements(acknowledged, ids_in_the_database), test::Verdict{});
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <vector>

#include <holdfast/base/clock.hpp>

namespace holdfast::test {

// Reports what was acknowledged to the victim. Safe to share between threads.
class Witness {
public:
    explicit Witness(int fd) noexcept : fd_(fd) {}

    // After the commit of `id` was acknowledged, and before anything else.
    void acknowledged(std::int64_t id) noexcept;

private:
    int fd_;
};

// Runs `work` in a forked process, which ends when `work` returns, when it is killed, or when the
// test does. An exception ends it with a message and exit status 1.
// Requires: the calling process has one thread, and no handle of a database that `work` touches.
class Victim {
public:
    explicit Victim(const std::function<void(Witness&)>& work);
    ~Victim();
    Victim(const Victim&) = delete;
    Victim& operator=(const Victim&) = delete;

    // Waits until `count` ids were acknowledged, and kills the process at that moment, with
    // whatever it is doing. Returns all that were acknowledged while it lived, perhaps more than
    // `count`. Throws if the process ended by itself, or the deadline passed, before that.
    [[nodiscard]] std::vector<std::int64_t> kill_after(std::size_t count, Deadline deadline);

    // Waits until `count` ids were acknowledged, and lets it live. Throws as kill_after.
    void wait_for(std::size_t count, Deadline deadline);
    // How many were acknowledged so far.
    [[nodiscard]] std::size_t acknowledged();
    // What was acknowledged at the end of the last wait.
    [[nodiscard]] const std::vector<std::int64_t>& reports() const noexcept {
        return acknowledged_;
    }

    // Stops it in the middle of its work, as a host does with a guest, without its notice. Thawed,
    // it goes on.
    void freeze();
    void thaw();

    // Waits until the process has ended by itself, in success; else throws.
    [[nodiscard]] std::vector<std::int64_t> join(Deadline deadline);

private:
    // False when the process has closed its end.
    bool listen(Deadline deadline);
    int reap();

    int pid_ = -1;
    int reports_ = -1;
    std::vector<std::int64_t> acknowledged_;
};

// What a crash did. Both are empty if all is well.
struct Verdict {
    std::vector<std::int64_t> lost{};     // Acknowledged, and not there.
    std::vector<std::int64_t> doubled{};  // There more than once.

    friend bool operator==(const Verdict&, const Verdict&) = default;
};

std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

// Work that was not acknowledged may be there or not; nothing may be there twice. `found` is one id
// for each effect, from a table that would accept an effect twice.
[[nodiscard]] Verdict check_statements(std::span<const std::int64_t> acknowledged,
                                       std::span<const std::int64_t> found);

}  // namespace holdfast::test
