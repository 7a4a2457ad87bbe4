// Two kinds of processes on one database: workers that do the work, and others that only ask for
// it.
//
//   worker serve sqlite:jobs.db             works until it gets SIGTERM or Ctrl-C; start several
//   worker submit sqlite:jobs.db job-7 5    asks for a job of 5 steps and waits for its end
//
// They share nothing but the database. A worker that dies leaves its jobs to the others, as soon as
// its leases have run out; one that is told to stop gives them back at once.
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <string_view>

#include <pthread.h>

#include <holdfast/base/error.hpp>
#include <holdfast/flow/flow.hpp>
#include <holdfast/flow/json.hpp>

namespace flow = holdfast::flow;
using namespace std::chrono_literals;

namespace {

struct Step {
    std::string job;
    int number = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Step, job, number)

int perform(Step step) {
    std::cout << step.job << ": step " << step.number << std::endl;
    return step.number * step.number;
}

}  // namespace

HOLDFAST_NAME(perform, "jobs.perform");

namespace {

flow::Workflow<int> job(flow::Context& ctx, int steps) {
    int sum = 0;
    for (int i = 1; i <= steps; ++i) {
        Step step{.job = ctx.instance(), .number = i};
        int result = co_await ctx.activity<&perform>(step).retry({.attempts = 3});
        sum += result;
    }
    co_return sum;
}

}  // namespace

HOLDFAST_NAME(job, "jobs.job");

namespace {

// Requires: called before there is any thread, so that all of them leave the signals to us.
sigset_t hold_stop_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    return signals;
}

int serve(const std::string& url) {
    const sigset_t stop = hold_stop_signals();
    flow::Registry registry;
    registry.activity<&perform>().workflow<&job>("1.0.0");
    flow::RuntimeOptions options;
    options.workflow_lease = 2s;  // So long the others wait before they take over from a dead one.
    options.activity_lease = 2s;
    flow::Runtime runtime{flow::open(url), registry, options};
    std::cout << "serving" << std::endl;
    int signal = 0;
    sigwait(&stop, &signal);
    const flow::DrainReport report = runtime.drain(10s);
    std::cout << (report.clean() ? "stopped, nothing was left half done\n"
                                 : "stopped; others will finish what was left\n");
    return 0;
}

int submit(const std::string& url, const std::string& id, int steps) {
    flow::Client client{flow::open(url)};
    const flow::StartOptions once{.duplicate = flow::DuplicatePolicy::use_existing};
    client.start_with<&job>(once, id, steps);
    const auto sum = client.result<&job>(id, 60s);
    if (!sum) {
        std::cerr << id << ": " << sum.failure().text() << '\n';
        return 1;
    }
    std::cout << id << ": " << *sum << '\n';
    return 0;
}

int run(int argc, char** argv) {
    const std::string_view verb = argc > 1 ? argv[1] : "";
    if (verb == "serve" && argc == 3) {
        return serve(argv[2]);
    }
    if (verb == "submit" && argc == 5) {
        return submit(argv[2], argv[3], std::stoi(argv[4]));
    }
    std::cerr << "usage: worker serve URL | worker submit URL ID STEPS\n";
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::cerr << "worker: " << error.what() << '\n';
        return 1;
    }
}
