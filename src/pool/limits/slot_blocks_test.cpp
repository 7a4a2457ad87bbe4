#include <holdfast/pool/slot_blocks.hpp>

#include <algorithm>
#include <memory>

#include "limits/test/fake_block_store.hpp"
#include <gtest/gtest.h>

#include <holdfast/testing/check.hpp>

namespace holdfast::pool {
namespace {

using namespace std::chrono_literals;

class SlotStory : public testing::Test {
protected:
    FakeBlockOwner owner(const std::string& name, std::uint64_t seed = 1) {
        return {name, config, store, seed};
    }

    std::vector<SlotId> acquire(FakeBlockOwner& who, int n) {
        std::vector<SlotId> slots;
        for (int i = 0; i < n; ++i) {
            const auto slot = who.blocks.acquire(now);
            if (!slot) {
                break;
            }
            slots.push_back(*slot);
            who.tell(now, SlotsTick{});
        }
        return slots;
    }

    Steady now{1h};
    SlotBlocksConfig config{.size = 100, .count = 100};
    FakeBlockStore store;
};

TEST_F(SlotStory, ASlotIsTakenAndReleasedInMemory) {
    HOLDFAST_CHECK("connections slot.acquire");
    HOLDFAST_CHECK("connections slot.release");
    HOLDFAST_CHECK("connections slot.none");
    auto ann = owner("ann");
    EXPECT_EQ(ann.blocks.acquire(now), std::nullopt) << "nothing is owned yet";
    ann.tell(now, WantSlots{50});
    EXPECT_EQ(ann.asked, 1);
    const auto slot = ann.blocks.acquire(now);
    ASSERT_TRUE(slot);
    EXPECT_EQ(ann.blocks.used(), 1);
    EXPECT_EQ(ann.blocks.capacity(now) - ann.blocks.used(), 99);
    ann.blocks.release(now, *slot);
    EXPECT_EQ(ann.blocks.used(), 0);
    EXPECT_EQ(ann.asked, 1);
}

using SlotDeathTest = SlotStory;

TEST_F(SlotDeathTest, ASlotIsReleasedExactlyOnce) {
    auto ann = owner("ann");
    ann.tell(now, WantSlots{1});
    const auto slot = ann.blocks.acquire(now);
    ASSERT_TRUE(slot);
    ann.blocks.release(now, *slot);
    EXPECT_DEATH(ann.blocks.release(now, *slot), "found != slots_.end");
}

TEST_F(SlotStory, BlocksAreFetchedAsTheyAreNeededAndTheLastSlotIsTheLast) {
    HOLDFAST_CHECK("connections slot.full");
    config = {.size = 25, .count = 4};
    auto ann = owner("ann");
    ann.tell(now, WantSlots{1000});
    EXPECT_EQ(ann.blocks.blocks_owned(now), 1) << "not more than is used";
    EXPECT_EQ(acquire(ann, 20).size(), 20U);
    EXPECT_EQ(ann.blocks.blocks_owned(now), 1);
    EXPECT_EQ(acquire(ann, 1).size(), 1U);
    EXPECT_EQ(ann.blocks.blocks_owned(now), 2) << "less than a fifth was free";
    EXPECT_EQ(acquire(ann, 1000).size(), 79U);
    EXPECT_EQ(ann.blocks.capacity(now), 100);
    EXPECT_EQ(ann.blocks.acquire(now), std::nullopt);
    EXPECT_GE(ann.count<SlotsShort>(), 1);
}

TEST_F(SlotStory, ConnectionsArePackedAndEmptyBlocksGoBack) {
    config = {.size = 10, .count = 10};
    auto ann = owner("ann");
    ann.tell(now, WantSlots{30});
    auto slots = acquire(ann, 20);
    ASSERT_EQ(slots.size(), 20U);
    EXPECT_EQ(ann.blocks.blocks_owned(now), 3);
    for (std::size_t i = 3; i < slots.size(); ++i) {
        ann.blocks.release(now, slots[i]);
    }
    ann.tell(now, WantSlots{3});
    ann.live_until(now, now + 11min);
    EXPECT_EQ(ann.blocks.blocks_owned(now), 1) << "the others have been empty for five minutes";
    EXPECT_EQ(ann.count<GiveBlockBack>(), 2);
    EXPECT_EQ(acquire(ann, 7).size(), 7U);
    EXPECT_EQ(ann.blocks.excess(now), 0);
}

TEST_F(SlotStory, OfTwoProcessesOneGetsTheBlock) {
    HOLDFAST_CHECK("connections +slot.race");
    config = {.size = 25, .count = 1};
    auto ann = owner("ann");
    auto bob = owner("bob", 2);
    ann.tell(now, WantSlots{10});
    bob.tell(now, WantSlots{10});
    EXPECT_EQ(ann.blocks.capacity(now), 25);
    EXPECT_EQ(bob.blocks.capacity(now), 0);
    EXPECT_EQ(bob.count<SlotsShort>(), 1);
    const int asked = bob.asked;
    bob.tell(now + 100ms, SlotsTick{});
    EXPECT_EQ(bob.asked, asked) << "who comes in vain waits before the next round";
    bob.tell(now + 1s, SlotsTick{});
    EXPECT_EQ(bob.asked, asked + 1);
}

TEST_F(SlotStory, ARefusedRenewalTakesTheCapacityAtOnce) {
    HOLDFAST_CHECK("connections +slot.lost");
    config = {.size = 10, .count = 2};
    auto ann = owner("ann");
    ann.tell(now, WantSlots{10});
    const auto slots = acquire(ann, 8);
    ASSERT_EQ(slots.size(), 8U);
    for (auto& [block, item] : store.items) {
        item.owner = "somebody else";
        item.until = now + 1h;
    }
    ann.live_until(now, now + 1min);
    EXPECT_EQ(ann.count<BlockLost>(), 1);
    EXPECT_EQ(ann.blocks.capacity(now), 10) << "the other block replaces it";
    EXPECT_EQ(ann.blocks.excess(now), 0);
    for (auto& [block, item] : store.items) {
        item.owner = "somebody else";
    }
    ann.live_until(now, now + 1min);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
    EXPECT_EQ(ann.blocks.excess(now), 8) << "all of them have to go";
    for (const SlotId slot : slots) {
        ann.blocks.release(now, slot);
    }
    EXPECT_EQ(ann.blocks.excess(now), 0);
}

TEST_F(SlotStory, APausedProcessStopsCountingBeforeAnybodyCanTakeItsBlock) {
    HOLDFAST_CHECK("connections +slot.pause");
    HOLDFAST_CHECK("connections +slot.crash");
    config = {.size = 10, .count = 1};
    auto ann = owner("ann");
    auto bob = owner("bob", 2);
    ann.tell(now, WantSlots{10});
    const Steady began = now;
    EXPECT_EQ(ann.blocks.capacity(began + 2min + 29s), 10);
    EXPECT_EQ(ann.blocks.capacity(began + 2min + 30s), 0) << "three minutes less a sixth";

    bob.tell(now, WantSlots{10});
    bob.live_until(now, began + 3min + 30s);
    EXPECT_EQ(bob.blocks.capacity(now), 0) << "clocks may differ by half a minute";
    bob.live_until(now, began + 3min + 30s + 500ms);
    EXPECT_EQ(bob.blocks.capacity(now), 10)
        << "a dead owner's block is asked for when its time and the allowance have passed";
    ann.tell(now, SlotsTick{});
    EXPECT_EQ(ann.count<BlockLost>(), 1);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
}

// The store answers a renewal when the block's time is over already.
TEST_F(SlotStory, ALateAnswerToARenewalIsNotTakenForAnother) {
    for (const bool renewed : {false, true}) {
        SCOPED_TRACE(renewed);
        SlotBlocks blocks({.size = 10, .count = 1}, FleetLimits{}, 1);
        SlotActions said;
        const auto tell = [&](const SlotEvent& event) {
            said.clear();
            blocks.step(now, event, said);
        };
        const auto takes = [&] {
            return std::count_if(said.begin(), said.end(), [](const SlotAction& action) {
                return std::holds_alternative<TakeBlock>(action);
            });
        };
        tell(WantSlots{10});
        ASSERT_EQ(takes(), 1);
        tell(BlockTaken{.block = 0, .epoch = 1});
        now += 1min;
        tell(SlotsTick{});
        ASSERT_TRUE(std::holds_alternative<RenewBlock>(said.at(0)));
        now += 1min + 30s;
        tell(SlotsTick{});
        ASSERT_TRUE(std::holds_alternative<BlockLost>(said.at(0)));
        EXPECT_EQ(takes(), 0) << "what becomes of it is still open";
        EXPECT_EQ(blocks.capacity(now), 0);
        if (renewed) {
            tell(BlockRenewed{0});
            EXPECT_EQ(blocks.capacity(now), 10) << "it is ours from the renewal on";
            EXPECT_EQ(blocks.capacity(now + 1min), 0) << "when that was sent";
            continue;
        }
        tell(BlockRefused{.block = 0});
        now += 1s;  // Without a block there is a pause before the next round.
        tell(SlotsTick{});
        ASSERT_EQ(takes(), 1);
        tell(BlockTaken{.block = 0, .epoch = 3});
        EXPECT_EQ(blocks.capacity(now), 10);
    }
}

// What was sent may be heard late: a block that was given back, and taken again since, stays ours.
TEST_F(SlotStory, AReturnHeardLateDoesNotUndoALaterTake) {
    config = {.size = 10, .count = 1};
    auto ann = owner("ann");
    ann.tell(now, WantSlots{10});
    ann.tell(now, WantSlots{0});
    ann.live_until(now, now + 6min);
    ASSERT_EQ(ann.count<GiveBlockBack>(), 1);
    ann.tell(now, WantSlots{10});
    ASSERT_EQ(ann.blocks.capacity(now), 10);
    for (const SlotAction& action : ann.said) {
        if (const auto* back = std::get_if<GiveBlockBack>(&action)) {
            store.give_back("ann", *back);  // Once more, from a router that slept.
        }
    }
    EXPECT_EQ(store.items[0].owner, "ann");
    ann.tell(now, StopSlots{});
    EXPECT_EQ(store.items[0].owner, "");
}

TEST_F(SlotStory, AtTheEndTheOwnerIsGone) {
    HOLDFAST_CHECK("connections +slot.shutdown");
    auto ann = owner("ann");
    ann.tell(now, WantSlots{150});
    const auto slots = acquire(ann, 90);
    for (const SlotId slot : slots) {
        ann.blocks.release(now, slot);
    }
    ann.tell(now, StopSlots{});
    EXPECT_EQ(store.items.size(), 2U);
    for (const auto& [block, item] : store.items) {
        EXPECT_EQ(item.owner, "");
    }
    EXPECT_EQ(ann.blocks.acquire(now), std::nullopt);
}

TEST_F(SlotStory, BlocksOfAnotherSizeAreRefusedAndReported) {
    HOLDFAST_CHECK("connections +slot.mismatch");
    config = {.size = 25, .count = 2};
    store.items[0] = {.owner = "", .until = {}, .slots = 100, .epoch = 1};
    store.items[1] = {.owner = "", .until = {}, .slots = 100, .epoch = 1};
    auto ann = owner("ann");
    ann.tell(now, WantSlots{10});
    EXPECT_EQ(ann.count<BlockMismatch>(), 2);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
}

// The answer to a take is lost, so the block is ours in the store and not here.
TEST_F(SlotStory, ABlockWhoseAnswerWasLostIsAskedForAgain) {
    HOLDFAST_CHECK("connections +slot.same_owner");
    config = {.size = 25, .count = 100};
    auto ann = owner("ann");
    SlotActions out;
    ann.blocks.step(now, WantSlots{10}, out);
    const int block = std::get<TakeBlock>(out.at(0)).block;
    ASSERT_TRUE(std::holds_alternative<BlockTaken>(store.take(now, "ann", block, config)));
    ann.tell(now, BlockUnanswered{block});
    EXPECT_EQ(ann.blocks.capacity(now), 0);
    ann.live_until(now, now + 5s);
    EXPECT_EQ(ann.blocks.capacity(now), 25);
    EXPECT_EQ(store.items.size(), 1U) << "not two blocks for one";
    EXPECT_EQ(store.items.begin()->second.epoch, 2);
}

// The process ends before it could ask again.
TEST_F(SlotStory, ABlockThatMayBeOursIsGivenBackAtTheEnd) {
    HOLDFAST_CHECK("connections +slot.shutdown");
    auto ann = owner("ann");
    SlotActions out;
    ann.blocks.step(now, WantSlots{10}, out);
    const int block = std::get<TakeBlock>(out.at(0)).block;
    ASSERT_TRUE(std::holds_alternative<BlockTaken>(store.take(now, "ann", block, config)));
    out.clear();
    ann.blocks.step(now, BlockUnanswered{block}, out);
    ann.tell(now, StopSlots{});
    EXPECT_EQ(store.items.at(block).owner, "");
}

// The others have their blocks meanwhile: a local cap on top would be too many.
TEST_F(SlotStory, AStoreThatIsAskedTooMuchIsNoReasonForTheLocalCap) {
    config = {.size = 25, .count = 4, .local_cap = 10};
    auto ann = owner("ann");
    SlotActions out;
    ann.blocks.step(now, WantSlots{30}, out);
    for (const SlotAction& take : SlotActions(out)) {
        ann.blocks.step(
            now, BlockUnanswered{.block = std::get<TakeBlock>(take).block, .throttled = true}, out);
    }
    EXPECT_FALSE(ann.blocks.degraded());
    EXPECT_EQ(ann.blocks.acquire(now), std::nullopt);
    ann.live_until(now, now + 5s);
    EXPECT_EQ(ann.blocks.capacity(now), 25) << "it was asked again";
}

TEST_F(SlotStory, WithoutTheStoreTheLocalCapIsInForceAndSaysSo) {
    config = {.size = 25, .count = 4, .local_cap = 10};
    auto ann = owner("ann");
    ann.away = true;
    ann.tell(now, WantSlots{30});
    EXPECT_TRUE(ann.blocks.degraded());
    EXPECT_EQ(acquire(ann, 100).size(), 10U) << "never without limit";
    const int asked = ann.asked;
    ann.live_until(now, now + 50s);
    EXPECT_GE(ann.asked, asked + 10);
    EXPECT_LE(ann.asked, asked + 21);

    ann.away = false;
    ann.live_until(now, now + 5s);
    EXPECT_FALSE(ann.blocks.degraded());
    EXPECT_EQ(ann.blocks.capacity(now), 25);
    EXPECT_EQ(ann.blocks.used(), 10) << "those that were there have a home now";
    EXPECT_EQ(ann.blocks.excess(now), 0);
}

TEST_F(SlotStory, WhatIsOwnedLastsThroughAnOutageUntilItIsNotSafeAnyMore) {
    config = {.size = 25, .count = 4, .local_cap = 0};  // The policy `block`.
    auto ann = owner("ann");
    ann.tell(now, WantSlots{25});
    ASSERT_EQ(acquire(ann, 19).size(), 19U);
    const Steady began = now;
    ann.away = true;
    ann.live_until(now, began + 2min);
    EXPECT_EQ(ann.blocks.capacity(now), 25);
    ann.live_until(now, began + 2min + 31s);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
    EXPECT_EQ(ann.blocks.excess(now), 19);
    EXPECT_FALSE(ann.blocks.degraded());
    ann.away = false;
    ann.live_until(now, now + 6s);
    EXPECT_EQ(ann.blocks.excess(now), 0) << "our own block is ours again";
}

TEST_F(SlotStory, ASettingThatCannotWorkIsRefused) {
    HOLDFAST_CHECK("connections slot.defaults");
    const SlotBlocksConfig usual;
    EXPECT_EQ(usual.size, 25);
    EXPECT_EQ(usual.count, 400);
    EXPECT_EQ(usual.ttl, 3min);
    EXPECT_EQ(usual.renew_every, 1min);
    check(usual);
    for (const auto& broken : {SlotBlocksConfig{.size = 0},
                               SlotBlocksConfig{.size = 1001},
                               SlotBlocksConfig{.count = 0},
                               SlotBlocksConfig{.count = 10'001},
                               SlotBlocksConfig{.ttl = 179s},
                               SlotBlocksConfig{.renew_every = 0s},
                               SlotBlocksConfig{.local_cap = -1}}) {
        EXPECT_EQ(test::code_of([&] { check(broken); }), Code::invalid_argument);
    }
}

// Four processes for one day: outages, pauses, crashes. Whatever happens, they never count more
// slots than there are.
TEST_F(SlotStory, NoHistoryMakesTwoOwnersOfOneBlock) {
    config = {.size = 5, .count = 6};
    Random random(20261116);
    std::vector<std::unique_ptr<FakeBlockOwner>> fleet;
    std::vector<std::vector<SlotId>> slots(4);
    int births = 0;
    const auto begin = [&](std::size_t i) {
        slots[i].clear();
        fleet[i] = std::make_unique<FakeBlockOwner>(
            "process " + std::to_string(++births), config, store, random.next());
    };
    fleet.resize(4);
    for (std::size_t i = 0; i < 4; ++i) {
        begin(i);
    }
    const Steady end = now + 24h;
    int lost = 0;
    while (now < end) {
        now += std::chrono::milliseconds{random.below(20'000)};
        const std::size_t i = random.below(4);
        FakeBlockOwner& who = *fleet[i];
        const auto chance = random.below(1000);
        if (chance < 2) {
            lost += who.count<BlockLost>();
            begin(i);  // A crash: its slots end with it.
            continue;
        }
        if (chance < 10) {
            now += std::chrono::seconds{random.below(300)};  // All of them are paused,
        }
        who.away = chance < 100 ? !who.away : who.away;
        who.tell(now, WantSlots{static_cast<int>(random.below(20))});
        if (random.below(2) == 0 && who.blocks.excess(now) == 0) {
            for (const SlotId slot : acquire(who, 3)) {
                slots[i].push_back(slot);
            }
        }
        while (!slots[i].empty() && (who.blocks.excess(now) > 0 || random.below(3) == 0)) {
            who.blocks.release(now, slots[i].back());
            slots[i].pop_back();
        }
        int owned = 0;
        for (const auto& other : fleet) {
            owned += other->blocks.blocks_owned(now);
        }
        ASSERT_LE(owned, config.count) << "after " << (now - Steady{1h}) / 1s << " s";
    }
    EXPECT_GT(lost, 0) << "the story was too quiet";
}

// 44 processes that all want more would otherwise ask the store so often that those who renew what
// they own are not heard.
class FullTable : public SlotStory {
protected:
    FullTable() : ann("ann", SlotBlocksConfig{.size = 25, .count = 400}, store) {
        config = {.size = 25, .count = 400};
        for (int block = 0; block < config.count; ++block) {
            store.items[block] = {.owner = "others", .until = now + config.ttl, .slots = 25};
        }
        ann.tell(now, WantSlots{100});
        EXPECT_EQ(ann.asked, config.count) << "once, every block is asked for";
        ann.asked = 0;
    }

    // The others renew what is theirs, each minute.
    void live(FakeBlockOwner& who, std::chrono::minutes time) {
        for (const Steady end = now + time; now < end;) {
            for (auto& [block, item] : store.items) {
                if (item.owner == "others") {
                    item.until = now + config.ttl;
                }
            }
            who.live_until(now, now + 1min);
        }
    }

    FakeBlockOwner ann;
};

TEST_F(FullTable, IsAskedSeldomByThoseWhoWantMore) {
    live(ann, 60min);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
    EXPECT_LE(ann.asked, 10 * 3600) << "of 44 such processes, no 500 calls a second";
    EXPECT_GE(ann.asked, 3600);
}

TEST_F(FullTable, ShowsWhatWasGivenBack) {
    live(ann, 10min);
    store.items[123].owner.clear();
    live(ann, 2min);
    EXPECT_EQ(ann.blocks.capacity(now), 25);
}

TEST_F(FullTable, ShowsWhatADeadProcessOwnedAtTheMomentItCanBeHad) {
    HOLDFAST_CHECK("connections +slot.crash");
    live(ann, 10min);
    store.items[123].owner = "dead";
    const Steady free_from = store.items[123].until + 30s;
    live(ann, 2min);
    ASSERT_LT(now, free_from);
    EXPECT_EQ(ann.blocks.capacity(now), 0);
    ann.live_until(now, free_from + 1s);
    EXPECT_EQ(ann.blocks.capacity(now), 25);
}

// While the store was unreachable the blocks ran out here, but not there: no process could take
// them.
TEST_F(FullTable, GivesBackToItsOwnerWhatAnOutageTookAway) {
    config.local_cap = 10;
    FakeBlockOwner bob("bob", config, store);
    for (const int block : {10, 211}) {
        store.items[block].owner.clear();
    }
    bob.tell(now, WantSlots{100});
    ASSERT_EQ(acquire(bob, 100).size(), 50U);
    live(bob, 10min);
    EXPECT_EQ(bob.blocks.capacity(now), 50);
    bob.away = true;
    live(bob, 3min);
    ASSERT_EQ(bob.blocks.blocks_owned(now), 0);
    EXPECT_TRUE(bob.blocks.degraded());
    bob.away = false;
    bob.live_until(now, now + 6s);
    EXPECT_EQ(bob.blocks.capacity(now), 50);
    EXPECT_FALSE(bob.blocks.degraded());
    EXPECT_EQ(bob.blocks.excess(now), 0);
}

}  // namespace
}  // namespace holdfast::pool
