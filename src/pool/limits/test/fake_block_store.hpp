// The shared store of blocks as a table in memory, and a process that owns some of them.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <holdfast/pool/slot_blocks.hpp>

namespace holdfast::pool {

// Time is one number for all: the processes' clocks are right here.
class FakeBlockStore {
public:
    struct Item {
        std::string owner;
        Steady until{};
        int slots = 0;
        int epoch = 0;
    };

    SlotEvent take(Steady now,
                   const std::string& owner,
                   int block,
                   const SlotBlocksConfig& config) {
        const auto found = items.find(block);
        if (found != items.end()) {
            const Item& item = found->second;
            const bool open = item.owner.empty() || item.owner == owner ||
                              item.until < now - std::chrono::seconds{30};
            if (item.slots != config.size || !open) {
                return BlockRefused{.block = block,
                                    .slots = item.slots,
                                    .free_in = item.until + std::chrono::seconds{30} - now +
                                               std::chrono::nanoseconds{1}};
            }
        }
        items[block] = {.owner = owner,
                        .until = now + config.ttl,
                        .slots = config.size,
                        .epoch = items[block].epoch + 1};
        return BlockTaken{.block = block, .epoch = items[block].epoch};
    }

    SlotEvent renew(Steady now,
                    const std::string& owner,
                    int block,
                    const SlotBlocksConfig& config) {
        if (items[block].owner != owner) {
            return BlockRefused{.block = block, .slots = items[block].slots};
        }
        items[block].until = now + config.ttl;
        return BlockRenewed{block};
    }

    void give_back(const std::string& owner, const GiveBlockBack& back) {
        Item& item = items[back.block];
        if (item.owner == owner && back.epoch.value_or(item.epoch) == item.epoch) {
            item.owner.clear();
        }
    }

    std::map<int, Item> items;
};

class FakeBlockOwner {
public:
    FakeBlockOwner(std::string name,
                   const SlotBlocksConfig& config,
                   FakeBlockStore& store,
                   std::uint64_t seed = 1)
        : blocks(config, FleetLimits{}, seed),
          name_(std::move(name)),
          config_(config),
          store_(store) {}

    // Carries out what the machine says, until it says no more.
    void tell(Steady now, const SlotEvent& event) {
        std::deque<SlotEvent> events{event};
        while (!events.empty()) {
            SlotActions out;
            blocks.step(now, events.front(), out);
            events.pop_front();
            for (const SlotAction& action : out) {
                said.push_back(action);
                if (const auto* take = std::get_if<TakeBlock>(&action)) {
                    ++asked;
                    events.push_back(away ? BlockUnanswered{take->block}
                                          : store_.take(now, name_, take->block, config_));
                } else if (const auto* renew = std::get_if<RenewBlock>(&action)) {
                    ++asked;
                    events.push_back(away ? BlockUnanswered{renew->block}
                                          : store_.renew(now, name_, renew->block, config_));
                } else if (const auto* back = std::get_if<GiveBlockBack>(&action)) {
                    if (!away) {
                        store_.give_back(name_, *back);
                    }
                }
            }
        }
    }

    template <class Kind>
    [[nodiscard]] int count() const {
        int found = 0;
        for (const SlotAction& action : said) {
            found += std::holds_alternative<Kind>(action) ? 1 : 0;
        }
        return found;
    }

    // Lets time pass, with every tick the machine wants.
    void live_until(Steady& now, Steady until) {
        while (blocks.next_wake() <= until) {
            now = std::max(now, blocks.next_wake());
            tell(now, SlotsTick{});
        }
        now = until;
        tell(now, SlotsTick{});
    }

    SlotBlocks blocks;
    SlotActions said;
    bool away = false;  // Nothing it sends is answered, or arrives.
    int asked = 0;

private:
    const std::string name_;
    const SlotBlocksConfig config_;
    FakeBlockStore& store_;
};

}  // namespace holdfast::pool
