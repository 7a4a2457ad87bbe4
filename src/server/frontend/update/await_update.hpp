// A call that waits for an update: until the update has come far enough or has ended, or the time
// is over. It holds no thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/turns.hpp"
#include "frontend/parked_reply.hpp"
#include "frontend/parts.hpp"
#include "frontend/refusals.hpp"

namespace holdfast::server::frontend {

template <class Response>
struct AwaitedUpdate {
    Parts parts;
    engine::WorkflowKey workflow;
    std::string run_id;
    std::string update_id;
    history::UpdateStage stage{};
    Steady until{};
    // Called once, with what is known: not more than before, if the time is over. Must not block.
    std::function<void(engine::UpdateNews, rpc::Reply<Response>)> answer;
};

// In a turn, once the update is known to its run.
template <class Response>
void await_update(AwaitedUpdate<Response> awaited,
                  engine::Turn& turn,
                  rpc::Reply<Response>& reply) {
    using Parked = ParkedReply<Response>;
    using Reply = rpc::Reply<Response>;
    engine::UpdateNews now = turn.update(awaited.run_id, awaited.update_id);
    if (now.outcome || now.refusal || now.stage >= awaited.stage) {
        awaited.answer(std::move(now), std::move(reply));
        return;
    }
    Alarms& alarms = awaited.parts->alarms;
    const auto heard = std::make_shared<engine::UpdateNews>();  // Before the reply is woken.
    const auto parked = std::make_shared<Parked>(alarms, [awaited, heard](Woken why, Reply kept) {
        if (why == Woken::news) {
            awaited.answer(std::move(*heard), std::move(kept));
        } else if (why == Woken::expired) {
            awaited.parts->turns.answer(
                awaited.workflow, std::move(kept), [awaited](engine::Turn& later, Reply& over) {
                    awaited.answer(later.update(awaited.run_id, awaited.update_id),
                                   std::move(over));
                });
        }
    });
    // The alarm owns it: it rings, or the reply is gone before.
    parked->set_alarm(alarms.set(awaited.until, [parked] { parked->wake(Woken::expired); }));
    reply.on_end([weak = std::weak_ptr(parked)](rpc::Ending ending) {
        if (const auto there = weak.lock()) {
            there->wake(ending == rpc::Ending::stopping ? Woken::expired : Woken::left);
        }
    });
    parked->keep(turn.await_update(awaited.run_id,
                                   awaited.update_id,
                                   awaited.stage,
                                   [weak = std::weak_ptr(parked), heard](engine::UpdateNews news) {
                                       if (const auto there = weak.lock()) {
                                           *heard = std::move(news);
                                           there->wake(Woken::news);
                                       }
                                   }));
    parked->put(std::move(reply));
}

}  // namespace holdfast::server::frontend
