// Several processes, of which one at a time does the work.
//
//   leader 'sqlite:jobs.db?create=1' ann     stands for election until SIGTERM or Ctrl-C
//   leader 'sqlite:jobs.db?create=1' bob     takes over when ann resigns, dies or is cut off
//
// The leader writes with its fence, so that a leader of yesterday, which has not noticed yet, can
// do no harm today.
#include <chrono>
#include <csignal>
#include <exception>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

#include <pthread.h>
#include <unistd.h>

#include <holdfast/base/clock.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/lock/election.hpp>
#include <holdfast/lock/guard.hpp>
#include <holdfast/lock/locks.hpp>
#include <holdfast/sql/database.hpp>
#include <holdfast/sql/schema.hpp>

namespace lock = holdfast::lock;
namespace sql = holdfast::sql;
using namespace std::chrono_literals;

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

// One piece of work. The resource "jobs" remembers the newest fence: false if ours is older.
bool work(sql::Database& db, lock::Locks& locks, lock::Fence fence) {
    return db.transact("jobs.work", {}, [&](sql::Tx& tx) {
        return lock::accept_fence(tx, locks, "jobs", fence);
        // And what there is to write, in the same transaction.
    });
}

void lead(sql::Database& db, lock::Locks& locks, lock::Handle& term, const std::stop_token& over) {
    std::cout << "elected" << std::endl;
    bool told = false;
    while (!over.stop_requested() && work(db, locks, term.fence())) {
        if (!told) {
            std::cout << "working" << std::endl;
            told = true;
        }
        holdfast::system_clock().sleep_until(std::chrono::steady_clock::now() + 200ms, over);
    }
}

void run(const std::string& url, const std::string& name) {
    const sigset_t stop_signals = hold_stop_signals();
    sql::Database db{url};
    sql::schema_apply(db, lock::schema_part(), {});
    lock::Locks locks{db, {.owner = name}};
    lock::Election election(
        locks,
        "jobs/leader",
        {.ttl = 3s,  // So long the others wait before they take over from a dead one.
         .on_new_leader =
             [](const lock::Leader& leader) {
                 if (!leader.ours) {
                     std::cout << leader.owner << " leads" << std::endl;
                 }
             },
         .on_lost =
             [](lock::LostReason reason) {
                 std::cout << "lost: " << lock::to_string(reason) << std::endl;
             }});
    std::exception_ptr failure;
    std::jthread candidate([&](const std::stop_token& stop) {
        try {
            election.run([&](lock::Handle& term,
                             const std::stop_token& over) { lead(db, locks, term, over); },
                         stop);
        } catch (...) {
            failure = std::current_exception();  // What waiting cannot cure.
        }
        ::kill(::getpid(), SIGTERM);
    });
    int signal = 0;
    sigwait(&stop_signals, &signal);
    candidate.request_stop();
    candidate.join();
    if (failure) {
        std::rethrow_exception(failure);
    }
    std::cout << "resigned" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: leader URL NAME\n";
        return 2;
    }
    try {
        run(argv[1], argv[2]);
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "leader: " << error.what() << '\n';
        return 1;
    }
}
