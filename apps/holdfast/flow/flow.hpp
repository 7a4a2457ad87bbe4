// holdfast flow ...: looking at workflows and steering them, on any database.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "command.hpp"

namespace holdfast::app {

// What the command line gave; each verb reads what is its own.
struct FlowRequest {
    std::string id;
    std::uint64_t execution = 0;  // 0: the current one.

    std::string workflow;
    std::string version;
    std::string input = "[]";
    std::string delay = "0";
    std::string cron;
    std::string on_duplicate = "reject";

    std::string status;
    std::string prefix;
    std::string younger_than;
    std::vector<std::string> attributes;  // NAME=JSON
    std::string where;                    // Many instances, by a filter.
    bool yes = false;                     // No question before that.
    bool dry_run = false;
    int limit = 50;
    std::string page;
    bool all = false;

    std::string name;  // Of a channel, a query or an update.
    std::string data;  // Of a message; empty: null.
    bool positional = false;
    bool early = false;
    std::string timeout = "10s";

    std::string reason = "by the operator";
    std::string grace = "0";

    std::uint64_t to = 0;  // An event; 0: none named.
    bool to_start = false;
    bool before_failure = false;

    std::string file;
    bool force = false;
    std::string older_than;
    int keep = 1;
};

// Looking.
int flow_list(const Context& context, const FlowRequest& request);
int flow_show(const Context& context, const FlowRequest& request);
int flow_history(const Context& context, const FlowRequest& request);
int flow_tail(const Context& context, const FlowRequest& request);
int flow_stats(const Context& context, const FlowRequest& request);

// Steering.
int flow_start(const Context& context, const FlowRequest& request);
int flow_signal(const Context& context, const FlowRequest& request);
int flow_query(const Context& context, const FlowRequest& request);
int flow_update(const Context& context, const FlowRequest& request);
int flow_cancel(const Context& context, const FlowRequest& request);
int flow_terminate(const Context& context, const FlowRequest& request);
int flow_fail(const Context& context, const FlowRequest& request);
int flow_suspend(const Context& context, const FlowRequest& request);
int flow_resume(const Context& context, const FlowRequest& request);
int flow_reset(const Context& context, const FlowRequest& request);

// Keeping house.
int flow_export(const Context& context, const FlowRequest& request);
int flow_import(const Context& context, const FlowRequest& request);
int flow_delete(const Context& context, const FlowRequest& request);
int flow_prune(const Context& context, const FlowRequest& request);
// Refuses: only a program that holds the workflow's code can do it.
int flow_replay(const Context& context, const FlowRequest& request);

}  // namespace holdfast::app
