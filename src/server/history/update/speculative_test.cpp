// Workflow tasks that carry updates, and the messages that answer them.
#include <cstdlib>
#include <map>

#include "history/test/run_fixture.hpp"
#include "history/update/test/update_fixture.hpp"
#include "history/update/update.hpp"

#include <holdfast/base/random.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::history::tests {

namespace {

constexpr const char* idle =
    "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted, 4 WorkflowTaskCompleted";

class SpeculativeTest : public RunFixture {
protected:
    bool ask(const std::string& id) {
        return transition([&](Transition& t) { return ask_update(t, update_named(id)); });
    }

    // What the engine does after a commit.
    void offer_updates() {
        if (update_wants_task(run())) {
            transition([](Transition& t) -> std::optional<Refusal> {
                schedule_speculative_task(t);
                return std::nullopt;
            });
        }
    }

    bool answer(std::vector<UpdateMessage> messages, std::vector<Command> commands = {}) {
        temporal::api::workflowservice::v1::RespondWorkflowTaskCompletedRequest request;
        request.set_identity("worker");
        request.mutable_capabilities()->set_discard_speculative_workflow_task_with_events(
            may_drop_events);
        for (UpdateMessage& message : messages) {
            *request.add_messages() = std::move(message);
        }
        for (Command& command : commands) {
            *request.add_commands() = std::move(command);
        }
        news = {};
        const bool done = transition([&](Transition& t) {
            return complete_workflow_task(t, started_task(), request, {.news = &news});
        });
        ended = last.ended_updates;
        if (done) {
            offer_updates();
        }
        return done;
    }

    [[nodiscard]] TaskRef started_task() const {
        const state::WorkflowTask& task = run().workflow_task();
        return {.scheduled_event_id = task.scheduled_event_id(),
                .started_event_id = task.started_event_id(),
                .attempt = task.attempt(),
                .started_time = time_of(task.started_time())};
    }

    void become_idle() {
        start();
        poll();
        ASSERT_TRUE(complete());
        ASSERT_EQ(history(), idle);
    }

    // An idle run whose worker has the update "u" with a speculative task.
    void send_update() {
        become_idle();
        ASSERT_TRUE(ask("u"));
        ASSERT_TRUE(poll());
    }

    [[nodiscard]] std::string since_idle() const {
        const std::string all = history();
        const std::size_t begin = std::string(idle).size();
        return all.size() > begin ? all.substr(begin + 2) : "";
    }

    // Ids of the updates that the started workflow task carries.
    [[nodiscard]] std::string sent() const {
        std::string ids;
        for (const state::PendingUpdate* update : sent_updates(run())) {
            ids += update->request().meta().update_id();
        }
        return ids;
    }

    [[nodiscard]] std::string failure_of(std::size_t index) const {
        const auto* failure = std::get_if<Failure>(&ended.at(index).how);
        return failure != nullptr ? failure->message() : "no failure";
    }

    bool may_drop_events = false;
    CompletionNews news;
    std::vector<UpdateEnd> ended;  // By the last answer.
};

TEST_F(SpeculativeTest, AnUpdateOfAnIdleRunCostsNothingUntilItIsAccepted) {
    HOLDFAST_CHECK("server H251");
    become_idle();
    const std::int64_t transitions = run().state_transition_count();
    ASSERT_TRUE(ask("u"));
    EXPECT_FALSE(last.changed);
    EXPECT_EQ(made(), std::vector{Task::Kind::workflow_task});
    ASSERT_TRUE(poll());
    EXPECT_FALSE(last.changed);
    EXPECT_EQ(sent(), "u");
    EXPECT_EQ(history(), idle);
    EXPECT_EQ(run().state_transition_count(), transitions);
    ASSERT_TRUE(answer({acceptance("u"), response("u")}));
    EXPECT_EQ(since_idle(),
              "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, 7 WorkflowTaskCompleted, "
              "8 UpdateAccepted, 9 UpdateCompleted");
    EXPECT_EQ(event(9).workflow_execution_update_completed_event_attributes().accepted_event_id(),
              8);
    EXPECT_EQ(event(6).workflow_task_started_event_attributes().identity(), "worker");
    EXPECT_EQ(run().updates().at("u").completed_batch_event_id(), 7);
    EXPECT_TRUE(run().pending_updates().empty());
}

TEST_F(SpeculativeTest, TheFirstWorkflowTaskCarriesAnUpdate) {
    HOLDFAST_CHECK("server H252");
    HOLDFAST_CHECK("server H253");
    start();
    ASSERT_TRUE(ask("u"));
    EXPECT_TRUE(made().empty()) << "one is scheduled already";
    poll();
    EXPECT_EQ(sent(), "u");
    ASSERT_TRUE(answer({acceptance("u"), response("u")}));
    EXPECT_EQ(since_idle(), "5 UpdateAccepted, 6 UpdateCompleted");
}

TEST_F(SpeculativeTest, ARejectedUpdateLeavesNothing) {
    HOLDFAST_CHECK("server H254");
    send_update();
    ASSERT_TRUE(answer({rejection("u")}));
    EXPECT_FALSE(last.changed);
    EXPECT_EQ(news.reset_history_event_id, 3);
    EXPECT_EQ(failure_of(0), "negative");
    EXPECT_EQ(history(), idle);
    EXPECT_FALSE(run().has_workflow_task());
    ASSERT_TRUE(signal("later"));
    EXPECT_EQ(since_idle(), "5 Signaled, 6 WorkflowTaskScheduled");
}

TEST_F(SpeculativeTest, ARejectionIsStoredIfTheWorkerSawEventsAndCannotGoBack) {
    HOLDFAST_CHECK("server H255");
    for (const bool can_go_back : {false, true}) {
        may_drop_events = can_go_back;
        start_again();
        poll();
        complete({marker_command("m")});
        ask("u");
        poll();
        ASSERT_TRUE(answer({rejection("u")}));
        EXPECT_EQ(news.reset_history_event_id, can_go_back ? 3 : 0);
        EXPECT_EQ(since_idle(),
                  can_go_back ? "5 MarkerRecorded"
                              : "5 MarkerRecorded, 6 WorkflowTaskScheduled, 7 WorkflowTaskStarted, "
                                "8 WorkflowTaskCompleted");
    }
}

TEST_F(SpeculativeTest, AnUpdateDuringAWorkflowTaskGoesWithTheNext) {
    HOLDFAST_CHECK("server H256");
    start();
    poll();
    ASSERT_TRUE(ask("u"));
    EXPECT_EQ(sent(), "");
    ASSERT_TRUE(answer({}));
    EXPECT_TRUE(ended.empty()) << "it was not sent";
    EXPECT_TRUE(run().workflow_task().speculative());
    poll();
    EXPECT_EQ(sent(), "u");
    EXPECT_EQ(history(), idle);
}

TEST_F(SpeculativeTest, AWorkerThatFailsGetsTheUpdateAgain) {
    HOLDFAST_CHECK("server H260");
    send_update();
    ASSERT_TRUE(fail_task());
    EXPECT_EQ(since_idle(), "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, 7 WorkflowTaskFailed");
    EXPECT_EQ(run().workflow_task().attempt(), 2);
    poll();
    EXPECT_EQ(sent(), "u");
    ASSERT_TRUE(answer({acceptance("u")}));
    EXPECT_TRUE(history().ends_with("10 WorkflowTaskCompleted, 11 UpdateAccepted"));
}

TEST_F(SpeculativeTest, AWorkerThatDiesLeavesTheUpdateToTheNext) {
    HOLDFAST_CHECK("server H261");
    send_update();
    advance(10s);
    EXPECT_EQ(since_idle(),
              "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, 7 WorkflowTaskTimedOut");
    EXPECT_EQ(run().workflow_task().attempt(), 2);
    poll();
    EXPECT_EQ(sent(), "u");
}

// Its place on the queue is in memory only: a task that may be lost is made a stored one.
TEST_F(SpeculativeTest, ATaskThatIsNotPolledBecomesANormalOne) {
    HOLDFAST_CHECK("server H262");
    sticky_queue = "worker-1";
    become_idle();
    ASSERT_TRUE(ask("u"));
    EXPECT_EQ(run().workflow_task().task_queue().name(), "worker-1");
    advance(5s);
    EXPECT_EQ(since_idle(),
              "5 WorkflowTaskScheduled, 6 WorkflowTaskTimedOut, 7 WorkflowTaskScheduled");
    EXPECT_EQ(event(6).workflow_task_timed_out_event_attributes().timeout_type(),
              TIMEOUT_TYPE_SCHEDULE_TO_START);
    EXPECT_EQ(event(7).workflow_task_scheduled_event_attributes().attempt(), 1);
    EXPECT_EQ(event(7).workflow_task_scheduled_event_attributes().task_queue().name(), "queue");
    EXPECT_EQ(made(), std::vector{Task::Kind::workflow_task});
}

TEST_F(SpeculativeTest, AnEventDuringAStartedTaskStoresIt) {
    HOLDFAST_CHECK("server H263");
    send_update();
    ASSERT_TRUE(signal("paid"));
    EXPECT_EQ(since_idle(), "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted");
    EXPECT_EQ(event(6).workflow_task_started_event_attributes().identity(), "");
    ASSERT_TRUE(answer({rejection("u")}));
    EXPECT_TRUE(history().ends_with("7 WorkflowTaskCompleted, 8 Signaled, 9 WorkflowTaskScheduled"))
        << history();
}

TEST_F(SpeculativeTest, AnEventBeforeItStartsStoresItFirst) {
    HOLDFAST_CHECK("server H264");
    become_idle();
    ask("u");
    ASSERT_TRUE(signal("paid"));
    EXPECT_EQ(made(), std::vector{Task::Kind::workflow_task});
    poll();
    EXPECT_EQ(since_idle(), "5 WorkflowTaskScheduled, 6 Signaled, 7 WorkflowTaskStarted");
    EXPECT_EQ(sent(), "u");
}

TEST_F(SpeculativeTest, ATerminationEndsIt) {
    HOLDFAST_CHECK("server H265");
    send_update();
    ASSERT_TRUE(terminate());
    EXPECT_EQ(since_idle(),
              "5 WorkflowTaskScheduled, 6 WorkflowTaskStarted, 7 WorkflowTaskFailed, 8 Terminated");
    EXPECT_EQ(aborted_by_close(run()).message, "workflow update was aborted by closing workflow");
    EXPECT_EQ(update_stage(run(), "u"), UpdateStage::unknown);
}

TEST_F(SpeculativeTest, ATerminationBeforeItStartsLeavesNothingOfIt) {
    HOLDFAST_CHECK("server H266");
    become_idle();
    ask("u");
    ASSERT_TRUE(terminate());
    EXPECT_EQ(since_idle(), "5 Terminated");
}

TEST_F(SpeculativeTest, AHeartbeatStoresItAndKeepsItsUpdates) {
    HOLDFAST_CHECK("server H270");
    send_update();
    ASSERT_TRUE(complete({}, true));
    EXPECT_TRUE(history().ends_with("7 WorkflowTaskCompleted, 8 WorkflowTaskScheduled"));
    poll();
    EXPECT_EQ(sent(), "u");
    ASSERT_TRUE(answer({acceptance("u"), response("u")}));
}

TEST_F(SpeculativeTest, AnAnswerToAnEarlierTaskIsNotTaken) {
    HOLDFAST_CHECK("server H275");
    send_update();
    const TaskRef first = started_task();
    answer({rejection("u")});
    advance(1s);
    ask("v");
    poll();
    EXPECT_FALSE(transition([&](Transition& t) { return complete_workflow_task(t, first, {}); }));
    EXPECT_EQ(refusal->message, "Workflow task not found.");
    EXPECT_EQ(sent(), "v");
}

TEST_F(SpeculativeTest, AnUpdateThatTheWorkerPassesOverIsRejected) {
    HOLDFAST_CHECK("server H276");
    send_update();
    ASSERT_TRUE(answer({}));
    EXPECT_TRUE(failure_of(0).find("wasn't processed by worker") != std::string::npos);
    EXPECT_EQ(history(), idle);
}

TEST_F(SpeculativeTest, AnUnknownUpdateIsTakenWithItsRequestOnly) {
    HOLDFAST_CHECK("server H277");
    start();
    poll();
    EXPECT_FALSE(answer({acceptance("lost")}));
    EXPECT_TRUE(refusal->message.find("wasn't found") != std::string::npos) << refusal->message;
    EXPECT_EQ(event(4).workflow_task_failed_event_attributes().cause(),
              WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE);
    poll();
    ASSERT_TRUE(answer({acceptance("lost", true)}));
    EXPECT_EQ(update_stage(run(), "lost"), UpdateStage::accepted);
}

TEST_F(SpeculativeTest, MessagesThatBreakTheProtocolFailTheTaskAndItsUpdates) {
    HOLDFAST_CHECK("server H278");
    const auto refused = [&](std::vector<UpdateMessage> messages, std::vector<Command> commands) {
        start_again();
        ask("u");
        poll();
        ask("v");
        EXPECT_FALSE(answer(std::move(messages), std::move(commands)));
        EXPECT_EQ(ended.size(), 2);
        EXPECT_EQ(std::get<Refusal>(ended.at(0).how).kind, Refused::not_ready) << "it was sent";
        EXPECT_EQ(std::get<Refusal>(ended.at(1).how).kind, Refused::unavailable);
        EXPECT_TRUE(history().ends_with("4 WorkflowTaskFailed")) << history();
        return refusal->message;
    };
    EXPECT_TRUE(refused({}, {message_command("u/accept")}).find("referenced absent message ID") !=
                std::string::npos);
    const auto wrong = std::string("invalid state transition attempted");
    EXPECT_TRUE(refused({response("u")}, {}).find(wrong) != std::string::npos);
    EXPECT_TRUE(refused({acceptance("u"), acceptance("u")}, {}).find(wrong) != std::string::npos);
    EXPECT_TRUE(refused({acceptance("u"), response("u")},
                        {message_command("u/complete"), message_command("u/accept")})
                    .find(wrong) != std::string::npos);
    EXPECT_TRUE(refused({acceptance("u"), rejection("u")}, {}).find(wrong) != std::string::npos);
    UpdateMessage nameless = acceptance("u");
    nameless.clear_protocol_instance_id();
    refused({nameless}, {});
}

TEST_F(SpeculativeTest, CommandsSayWhereMessagesBelong) {
    HOLDFAST_CHECK("server H279");
    send_update();
    ASSERT_TRUE(answer({response("u"), acceptance("u")},
                       {message_command("u/accept"), marker_command("m")}));
    EXPECT_TRUE(history().ends_with("8 UpdateAccepted, 9 MarkerRecorded, 10 UpdateCompleted"))
        << "the rest follows after the commands: " << history();
}

TEST_F(SpeculativeTest, UpdatesGoInTheOrderOfTheirAdmission) {
    HOLDFAST_CHECK("server H280");
    become_idle();
    for (const char* id : {"m", "z", "a"}) {
        ask(id);
    }
    poll();
    EXPECT_EQ(sent(), "mza");
}

TEST_F(SpeculativeTest, SeveralUpdatesGoOnOverSeveralTasks) {
    HOLDFAST_CHECK("server H258");
    HOLDFAST_CHECK("server H259");
    become_idle();
    ask("a");
    poll();
    answer({acceptance("a")});
    ask("b");
    poll();
    answer({acceptance("b")});
    ask("c");
    poll();
    answer({rejection("c"), response("b")});
    signal("go");
    poll();
    answer({response("a")});
    EXPECT_TRUE(history().ends_with(
        "8 UpdateAccepted, 9 WorkflowTaskScheduled, 10 WorkflowTaskStarted, "
        "11 WorkflowTaskCompleted, 12 UpdateAccepted, 13 WorkflowTaskScheduled, "
        "14 WorkflowTaskStarted, 15 WorkflowTaskCompleted, 16 UpdateCompleted, 17 Signaled, "
        "18 WorkflowTaskScheduled, 19 WorkflowTaskStarted, 20 WorkflowTaskCompleted, "
        "21 UpdateCompleted"))
        << history();
}

TEST_F(SpeculativeTest, UpdatesOfARunAreLimited) {
    HOLDFAST_CHECK("server H282");
    limits.updates_in_flight_max = 2;
    limits.updates_max = 3;
    become_idle();
    ask("a");
    ask("b");
    EXPECT_TRUE(ask("a")) << "it is known";
    EXPECT_FALSE(ask("c"));
    EXPECT_EQ(refusal->kind, Refused::concurrent_limit);
    poll();
    answer({acceptance("a"), rejection("b")});
    EXPECT_TRUE(ask("c")) << "a rejected one does not count";
    poll();
    answer({response("a"), acceptance("c"), response("c")});
    ask("d");
    poll();
    answer({acceptance("d"), response("d")});
    EXPECT_FALSE(ask("e"));
    EXPECT_EQ(refusal->kind, Refused::failed_precondition);
    limits.updates_max = 9;
    limits.updates_in_flight_bytes_max = 1;
    EXPECT_FALSE(ask("e"));
    EXPECT_EQ(refusal->kind, Refused::concurrent_limit);
}

TEST_F(SpeculativeTest, AnUpdateOfARunThatFailsAgainAndAgainIsRefused) {
    start();
    for (int attempt = 1; attempt < 3; ++attempt) {
        poll();
        fail_task();
    }
    EXPECT_FALSE(ask("u"));
    EXPECT_EQ(refusal->kind, Refused::not_ready);
}

// The worker has not seen the signal: it did nothing wrong, and neither did the client.
TEST_F(SpeculativeTest, ACloseThatComesTooEarlyKeepsUpdates) {
    start();
    ask("u");
    poll();
    signal("paid");
    EXPECT_FALSE(answer({}, {complete_command()}));
    EXPECT_TRUE(ended.empty());
    EXPECT_TRUE(run().pending_updates().contains("u"));
    poll();
    EXPECT_FALSE(ask("v")) << "it is about to close";
    EXPECT_EQ(refusal->kind, Refused::busy);
}

TEST_F(SpeculativeTest, AWaitingUpdateDoesNotBlockTheEndOfItsRun) {
    HOLDFAST_CHECK("server H288");
    send_update();
    ASSERT_TRUE(ask("v"));
    ASSERT_TRUE(answer({acceptance("u")}, {complete_command()}));
    EXPECT_TRUE(history().ends_with("7 WorkflowTaskCompleted, 8 Completed"))
        << "what comes after the close is not carried out: " << history();
    EXPECT_TRUE(run().pending_updates().empty());
}

TEST_F(SpeculativeTest, TheNextRunOfAChainKnowsNothingOfUpdates) {
    send_update();
    ASSERT_TRUE(answer({}, {continue_as_new_command()}));
    EXPECT_EQ(aborted_by_close(run()).kind, Refused::busy) << "a repeat reaches the next run";
}

// A start delay is for the workflow; a client that asks now is answered now.
TEST_F(SpeculativeTest, AnUpdateDoesNotWaitForAStartDelay) {
    Started delayed;
    *delayed.mutable_first_workflow_task_backoff() = to_duration(60s);
    start(delayed);
    ASSERT_TRUE(ask("u"));
    ASSERT_TRUE(poll());
    ASSERT_TRUE(answer({rejection("u")}));
    EXPECT_EQ(history(), "1 Started");
    advance(60s);
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled");
}

TEST_F(SpeculativeTest, TheEndOfAStartDelayStoresATaskThatIsUnderWay) {
    Started delayed;
    *delayed.mutable_first_workflow_task_backoff() = to_duration(60s);
    start(delayed);
    advance(55s);
    ASSERT_TRUE(ask("u"));
    ASSERT_TRUE(poll());
    advance(5s);
    EXPECT_EQ(history(), "1 Started, 2 WorkflowTaskScheduled, 3 WorkflowTaskStarted");
}

// A reset has admitted it: it is stored, and its event is what the worker reads.
TEST_F(SpeculativeTest, AnUpdateOfAResetIsSentWithItsEvent) {
    become_idle();
    transition([](Transition& t) -> std::optional<Refusal> {
        admit_update(t, update_named("u"));
        t.wake();
        return std::nullopt;
    });
    EXPECT_EQ(since_idle(), "5 UpdateAdmitted, 6 WorkflowTaskScheduled");
    poll();
    ASSERT_EQ(sent(), "u");
    EXPECT_EQ(sent_updates(run()).front()->admitted_event_id(), 5);
    ASSERT_TRUE(answer({acceptance("u"), response("u")}));
    EXPECT_FALSE(
        event(9).workflow_execution_update_accepted_event_attributes().has_accepted_request());
}

// Any order of what clients, workers and time do: each update ends once, and never twice.
TEST_F(SpeculativeTest, EveryUpdateEndsOnceWhateverHappens) {
    const char* const given = std::getenv("HOLDFAST_SEED");  // NOLINT(concurrency-mt-unsafe)
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 20;
    SCOPED_TRACE("HOLDFAST_SEED=" + std::to_string(seed));
    Random random(seed);
    become_idle();
    int asked = 0;
    std::map<std::string, int> ends;
    const auto count = [&](const std::vector<UpdateEnd>& list) {
        for (const UpdateEnd& end : list) {
            ++ends[end.update_id];
        }
    };
    for (int step = 0; step < 400; ++step) {
        const bool started = run().workflow_task().started_event_id() != 0;
        switch (random.below(6)) {
            case 0:
            case 1:
                asked += ask(std::to_string(asked)) ? 1 : 0;
                break;
            case 2:
                signal("s");
                break;
            case 3:
                advance(random.below(4) * 2s);
                break;
            default:
                if (!started) {
                    poll(run().workflow_task().task_queue().name());
                    break;
                }
                std::vector<UpdateMessage> messages;
                for (const state::PendingUpdate* update : sent_updates(run())) {
                    const std::string& id = update->request().meta().update_id();
                    const auto choice = random.below(4);
                    if (choice == 0) {
                        messages.push_back(rejection(id));
                    } else if (choice < 3) {
                        messages.push_back(acceptance(id));
                    }
                }
                for (const auto& [id, update] : run().updates()) {
                    if (update.completed_event_id() == 0 && random.below(2) == 0) {
                        messages.push_back(response(id));
                    }
                }
                EXPECT_TRUE(answer(std::move(messages))) << refusal->message;
                count(ended);
        }
    }
    EXPECT_GT(asked, 50);
    for (int i = 0; i < asked; ++i) {
        const std::string id = std::to_string(i);
        const int known = (update_stage(run(), id) != UpdateStage::unknown ? 1 : 0) + ends[id];
        EXPECT_EQ(known, 1) << "update " << id;
    }
}

}  // namespace

}  // namespace holdfast::server::history::tests
