#include <holdfast/flow_testing/explore.hpp>

#include <exception>
#include <random>
#include <string>

#include <fmt/core.h>

namespace holdfast::flow::test {
namespace {

// A walk from the root of the tree of choices to a leaf.
class Walk {
public:
    explicit Walk(std::vector<int> prefix) : path_(std::move(prefix)) {}
    explicit Walk(std::uint64_t seed) : random_(seed) {}

    int choose(int count) {
        if (at_ == path_.size()) {
            path_.push_back(random_ ? std::uniform_int_distribution<int>(0, count - 1)(*random_)
                                    : 0);
        }
        widths_.resize(at_ + 1);
        widths_[at_] = count;
        return path_[at_++];
    }
    // The walk after this one, by its prefix. False: this was the last.
    bool next(std::vector<int>& prefix) const {
        prefix.assign(path_.begin(), path_.begin() + static_cast<std::ptrdiff_t>(at_));
        while (!prefix.empty()) {
            if (prefix.back() + 1 < widths_[prefix.size() - 1]) {
                ++prefix.back();
                return true;
            }
            prefix.pop_back();
        }
        return false;
    }

private:
    std::vector<int> path_;
    std::vector<int> widths_;
    std::size_t at_ = 0;
    std::optional<std::mt19937_64> random_;
};

void take(Walk& walk, const Scenario& scenario, bool late_activities) {
    World world({.choose = [&walk](int count) { return walk.choose(count); },
                 .late_activities = late_activities});
    try {
        scenario(world);
    } catch (const std::exception& error) {
        throw Unexpected(
            fmt::format("{} (run_order with {{{}}} shows it again)", error.what(), world.order()));
    }
}

}  // namespace

Explored explore(const Scenario& scenario, const ExploreOptions& options) {
    Explored explored;
    std::vector<int> prefix;
    while (explored.orders < (options.orders_max + 1) / 2) {
        Walk walk(prefix);
        take(walk, scenario, options.late_activities);
        ++explored.orders;
        if (!walk.next(prefix)) {
            explored.all = true;
            return explored;
        }
    }
    std::mt19937_64 seeds(options.seed);
    for (; explored.orders < options.orders_max; ++explored.orders) {
        Walk walk(seeds());
        take(walk, scenario, options.late_activities);
    }
    return explored;
}

void run_order(const Scenario& scenario, std::vector<int> order, const ExploreOptions& options) {
    Walk walk(std::move(order));
    take(walk, scenario, options.late_activities);
}

}  // namespace holdfast::flow::test
