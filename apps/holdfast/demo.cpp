#include "demo.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "database.hpp"
#include "demo_ledger.hpp"
#include "exit_code.hpp"
#include "metrics.hpp"
#include "parts.hpp"
#include "temp_folder.hpp"
#include "terminal.hpp"
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <holdfast/base/error.hpp>
#include <holdfast/base/random.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/base/uuid.hpp>
#include <holdfast/bench/child.hpp>
#include <holdfast/bench/report.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::app {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;

constexpr std::int64_t entries_per_transfer = 2;
constexpr milliseconds work_least{200};  // From the first acknowledgement to the kill.
constexpr milliseconds work_spread{500};
constexpr std::chrono::seconds patience{30};  // For the writers to begin, and for their end.

using Transfer = std::pair<std::int64_t, std::int64_t>;  // The writer and its number.

// What one process said before it was killed.
struct Said {
    std::set<Transfer> acknowledged;
    std::int64_t physical_commits = 0;
    milliseconds worked{};
};

// What one kill did.
struct Verdict {
    Said said;
    std::int64_t found = 0;      // Transfers in the database.
    std::int64_t in_flight = 0;  // There, but the writer died before it could say so.
    std::int64_t lost = 0;
    std::int64_t doubled = 0;
    std::int64_t halved = 0;

    [[nodiscard]] bool clean() const { return lost == 0 && doubled == 0 && halved == 0; }
};

// Reads acknowledgements out of the child's output, which arrives in pieces.
class Listener {
public:
    explicit Listener(Said& said) : said_(said) {}

    void take(const std::string& piece) {
        text_ += piece;
        std::size_t begin = 0;
        for (std::size_t end = text_.find('\n'); end != std::string::npos;
             end = text_.find('\n', begin)) {
            take_line(text_.c_str() + begin);
            begin = end + 1;
        }
        text_.erase(0, begin);
    }

private:
    void take_line(const char* line) {
        char* rest = nullptr;
        const std::int64_t writer = std::strtoll(line, &rest, 10);
        const std::int64_t transfer = std::strtoll(rest, &rest, 10);
        const std::int64_t commits = std::strtoll(rest, nullptr, 10);
        said_.acknowledged.emplace(writer, transfer);
        said_.physical_commits = std::max(said_.physical_commits, commits);
    }

    Said& said_;
    std::string text_;
};

std::string number(auto value) {
    return bench::grouped(static_cast<double>(value));
}

class Story {
public:
    Story(const Context& context, const DemoRequest& request, std::string url)
        : context_(context), request_(request), url_(std::move(url)) {}

    // Starts the writers, kills them at a random moment and returns what they had acknowledged.
    Said kill_one(int kill_number, Progress& progress) {
        std::vector<std::string> arguments{"/proc/self/exe",
                                           "demo-writer",
                                           fmt::format("--run={}", run_.text()),
                                           fmt::format("--kill-number={}", kill_number),
                                           fmt::format("--writers={}", request_.writers)};
        if (!context_.config_file.empty()) {
            arguments.push_back("--config=" + context_.config_file);
        }
        // Not on the command line, where everybody could read the password.
        bench::Child child{{.arguments = std::move(arguments),
                            .environment = {"HOLDFAST_DB=" + url_, "HOLDFAST_METRICS_ADDRESS="}}};
        Said said = hear_and_kill(child, [&](std::size_t acknowledged) {
            progress.show(fmt::format("kill {} of {}: {} transfers acknowledged",
                                      kill_number,
                                      request_.kills,
                                      number(acknowledged)));
        });
        (void)child.wait();
        return said;
    }

    // Opens the database again, as after any crash, and compares.
    Verdict judge(int kill_number, Said said) {
        sql::Database db{url_, database_options(context_)};
        const sql::Rows rows =
            db.transact("demo.read", {.stop = context_.stop, .read_only = true}, [&](sql::Tx& tx) {
                return tx.query(ledger::read_transfers, run_, kill_number);
            });
        Verdict verdict{.said = std::move(said)};
        std::set<Transfer> found;
        for (const sql::Row& row : rows) {
            const auto [writer, transfer, entries, balance] =
                row.as<std::int64_t, std::int64_t, std::int64_t, std::int64_t>();
            found.emplace(writer, transfer);
            verdict.in_flight += verdict.said.acknowledged.contains({writer, transfer}) ? 0 : 1;
            verdict.doubled += entries > entries_per_transfer ? 1 : 0;
            verdict.halved += entries < entries_per_transfer || balance != 0 ? 1 : 0;
        }
        for (const Transfer& transfer : verdict.said.acknowledged) {
            verdict.lost += found.contains(transfer) ? 0 : 1;
        }
        verdict.found = static_cast<std::int64_t>(found.size());
        return verdict;
    }

    void clean_up() {
        sql::Database db{url_, database_options(context_)};
        (void)db.run("demo.clean", {}, ledger::delete_run, run_);
    }

private:
    Said hear_and_kill(bench::Child& child, const std::function<void(std::size_t)>& watch) const {
        // Whatever we wait for, an interrupt ends it: a dead child has nothing more to say.
        const std::stop_callback interrupt{context_.stop, [&child] { child.kill(); }};
        Said said;
        Listener listener{said};
        const auto hear = [&child, &listener](Deadline deadline) {
            auto piece = child.read(deadline);
            listener.take(piece.value_or(""));
            return piece;
        };
        if (hear(Deadline::after(patience)).value_or("").empty()) {
            throw_ended();
        }
        const auto began = std::chrono::steady_clock::now();
        const auto spread = static_cast<std::uint64_t>(work_spread.count());
        const Deadline end =
            Deadline::at(began + work_least + milliseconds{thread_random().below(spread)});
        while (const auto piece = hear(end)) {
            if (piece->empty()) {
                throw_ended();
            }
            watch(said.acknowledged.size());
        }
        child.kill();
        said.worked =
            std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
        // What was said before the kill may still be on its way.
        while (!hear(Deadline::after(patience)).value_or("").empty()) {
        }
        return said;
    }

    [[noreturn]] void throw_ended() const {
        if (context_.stop.stop_requested()) {
            throw Error(Code::cancelled, Outcome::not_applied, "the demo was interrupted");
        }
        throw Error(Code::internal,
                    Outcome::not_applied,
                    "the writers ended by themselves; their own message is above");
    }

    const Context& context_;
    const DemoRequest& request_;
    std::string url_;
    Uuid run_ = Uuid::v4();
};

double per_commit(const Said& said) {
    const auto acknowledged = static_cast<double>(said.acknowledged.size());
    return said.physical_commits > 0 ? acknowledged / static_cast<double>(said.physical_commits)
                                     : 0;
}

std::string heading(const std::string& url, int writers) {
    return fmt::format(
        "{} writers on {}. Each transfer is two entries in one transaction, flushed to disk\n"
        "before it is acknowledged. Then kill -9, in the middle of the work, again and again.\n\n"
        "{}\n",
        writers,
        without_password(url),
        bold(fmt::format("{:>4}  {:>7}  {:>12}  {:>7}  {:>10}  {:>8}  {:>9}  {:>4}  {:>7}  {:>6}",
                         "kill",
                         "after",
                         "acknowledged",
                         "flushes",
                         "per flush",
                         "found",
                         "in flight",
                         "lost",
                         "doubled",
                         "halved")));
}

std::string line_of(int kill_number, const Verdict& verdict) {
    return fmt::format(
        "{:>4}  {:>4} ms  {:>12}  {:>7}  {:>10.1f}  {:>8}  {:>9}  {:>4}  {:>7}  {:>6}\n",
        kill_number,
        verdict.said.worked.count(),
        number(verdict.said.acknowledged.size()),
        number(verdict.said.physical_commits),
        per_commit(verdict.said),
        number(verdict.found),
        verdict.in_flight,
        verdict.lost,
        verdict.doubled,
        verdict.halved);
}

std::string moral_of(const std::vector<Verdict>& verdicts) {
    Verdict sum;
    std::int64_t acknowledged = 0;
    for (const Verdict& verdict : verdicts) {
        acknowledged += static_cast<std::int64_t>(verdict.said.acknowledged.size());
        sum.lost += verdict.lost;
        sum.doubled += verdict.doubled;
        sum.halved += verdict.halved;
    }
    return fmt::format(
        "\n{} {} transfers were acknowledged before {} kills: {} lost, {} doubled, {} "
        "halved.\n",
        bold(sum.clean() ? "Nothing acknowledged was lost." : "THIS IS A BUG."),
        number(acknowledged),
        verdicts.size(),
        sum.lost,
        sum.doubled,
        sum.halved);
}

Json to_json(const Verdict& verdict) {
    return {{"after_ms", verdict.said.worked.count()},
            {"acknowledged", verdict.said.acknowledged.size()},
            {"physical_commits", verdict.said.physical_commits},
            {"transfers_per_commit", per_commit(verdict.said)},
            {"found", verdict.found},
            {"in_flight", verdict.in_flight},
            {"lost", verdict.lost},
            {"doubled", verdict.doubled},
            {"halved", verdict.halved}};
}

// A file gets its tables by itself. On a server that is somebody's decision, and the error names
// the command.
void prepare_schema(const Context& context, const std::string& url) {
    sql::DatabaseOptions options = database_options(context);
    options.create = true;
    sql::Database db{url, std::move(options)};
    const sql::SchemaPart& part = schema_part("demo");
    const sql::TxOptions tx{.stop = context.stop};
    if (db.dialect().product == sql::Product::sqlite) {
        (void)sql::schema_apply(db, part, tx);
    } else {
        sql::schema_require(db, part, tx);
    }
}

}  // namespace

int demo(const Context& context, const DemoRequest& request) {
    const auto endpoint = serve_metrics(context);
    std::optional<TempFolder> folder;
    std::string url = database_url(context);
    if (url.empty()) {
        folder.emplace();
        url = "sqlite:" + (folder->path() / "ledger.db").string();
    }
    prepare_schema(context, url);

    Progress progress{context.quiet};
    Story story{context, request, url};
    if (!context.json) {
        print(heading(url, request.writers));
    }
    std::vector<Verdict> verdicts;
    for (int kill = 1; kill <= request.kills; ++kill) {
        verdicts.push_back(story.judge(kill, story.kill_one(kill, progress)));
        progress.clear();
        if (!context.json) {
            print(line_of(kill, verdicts.back()));
        }
    }
    if (!request.keep) {
        story.clean_up();
    } else if (folder) {
        folder->keep();
    }

    const bool clean = std::ranges::all_of(verdicts, &Verdict::clean);
    if (context.json) {
        Json json{{"db", without_password(url)},
                  {"writers", request.writers},
                  {"clean", clean},
                  {"kills", Json::array()}};
        for (const Verdict& verdict : verdicts) {
            json["kills"].push_back(to_json(verdict));
        }
        print(json.dump() + "\n");
    } else {
        print(moral_of(verdicts));
    }
    return clean ? exit_done : exit_refused;
}

}  // namespace holdfast::app
