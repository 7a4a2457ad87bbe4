#include <csignal>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "database.hpp"
#include "demo.hpp"
#include "demo_ledger.hpp"
#include "exit_code.hpp"
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/uuid.hpp>

namespace holdfast::app {
namespace {

// One transfer: what leaves one account arrives at another, or neither happens.
void write_transfer(sql::Database& db,
                    const sql::TxOptions& options,
                    const Uuid& run,
                    const DemoWriterRequest& request,
                    std::int64_t writer,
                    std::int64_t transfer) {
    const std::int64_t amount = 1 + transfer % 100;
    db.transact("demo.transfer", options, [&](sql::Tx& tx) {
        for (const std::int64_t change : {-amount, amount}) {
            tx.exec(ledger::insert_entry,
                    Uuid::v4(),
                    run,
                    request.kill_number,
                    writer,
                    transfer,
                    change);
        }
    });
}

// One write, so that lines of different threads never mix. False if nobody reads any more.
bool acknowledge(std::int64_t writer, std::int64_t transfer, std::int64_t commits) {
    const std::string line = fmt::format("{} {} {}\n", writer, transfer, commits);
    return ::write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

int demo_writer(const Context& context, const DemoWriterRequest& request) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // Nobody is left to kill us if our parent is gone.
    const auto run = Uuid::parse(request.run);
    if (!run) {
        throw InvalidArgument("the run is not a UUID");
    }
    sql::DatabaseOptions options = database_options(context);
    options.connections = request.writers;
    sql::Database db{required_database_url(context), std::move(options)};

    std::mutex mutex;
    std::exception_ptr failure;
    const auto write = [&](std::int64_t writer) {
        try {
            for (std::int64_t transfer = 1; !context.stop.stop_requested(); ++transfer) {
                write_transfer(db, {.stop = context.stop}, *run, request, writer, transfer);
                if (!acknowledge(writer, transfer, db.driver_stats().commits)) {
                    return;
                }
            }
        } catch (...) {
            const std::lock_guard lock(mutex);
            failure = std::current_exception();
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int writer = 1; writer <= request.writers; ++writer) {
            threads.emplace_back(write, writer);
        }
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
    return exit_done;
}

}  // namespace holdfast::app
