// Several processes that take their turns when the test says so, to see which one does what.
#pragma once

#include <list>
#include <string>
#include <utility>

#include "behaviour/test/behaviour_fixture.hpp"

namespace holdfast::flow::tests {

// A process that takes its turn when the test says so.
struct Node {
    Node(std::string what, Store& store, const RuntimeOptions& options)
        : name(std::move(what)), runtime(store, behaviour_registry(), options) {}
    std::string name;
    Runtime runtime;
};

class PlacementBehaviour : public Behaviour {
protected:
    PlacementBehaviour() {
        runtime.reset();
        activity("where", [this](ActivityContext& ctx, const std::string&) {
            return on + "/" + ctx.tag().value_or("-") + "/" + ctx.session().value_or("-");
        });
    }
    Node& node(const std::string& name, const RuntimeOptions& options) {
        return nodes.emplace_back(name, store, options);
    }
    static RuntimeOptions serving(TagFilter tags) {
        RuntimeOptions options = manual_options();
        options.tags = std::move(tags);
        return options;
    }
    static RuntimeOptions worker(const std::string& id, int sessions_max = 10) {
        RuntimeOptions options = manual_options();
        options.worker_id = id;
        options.sessions_max = sessions_max;
        return options;
    }
    int works(Node& which) {
        on = which.name;
        return which.runtime.run_until_idle();
    }
    // Each in its turn, until all are idle.
    void everybody_works() {
        for (bool worked = true; worked;) {
            worked = false;
            for (Node& each : nodes) {
                worked = works(each) > 0 || worked;
            }
        }
    }
    std::string on;  // Whose turn it is.
    std::list<Node> nodes;
};

}  // namespace holdfast::flow::tests
