#include "demo/demo.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "database.hpp"
#include "demo/schema_part.hpp"
#include "demo/story.hpp"
#include "flow/text.hpp"
#include "flow/timeline.hpp"
#include "metrics.hpp"
#include "temp_folder.hpp"
#include <fmt/core.h>

#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/redact.hpp>
#include <holdfast/flow/sql_provider.hpp>
#include <holdfast/sql/schema.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

std::string heading(const std::string& url, int orders) {
    return fmt::format(
        "{} orders at once, each a workflow on {}: reserve stock and check for\nfraud side by "
        "side, wait for approval and for a timer, charge, ship; undo all of it if no\ncourier "
        "comes. Charging and refunding write a ledger in the transaction that ends them.\nTheir "
        "process is killed with -9 at the worst moments, and the next one continues.\n\n",
        orders,
        without_password(url));
}

std::string_view words_for(std::string_view moment) {
    if (moment == "reserve") {
        return "while stock was being reserved";
    }
    if (moment == "approval") {
        return "while every order waited for approval; the decisions came while no worker ran";
    }
    return moment == "charge" ? "between writing a charge and committing it"
                              : "between writing a refund and committing it";
}

std::string line_of(const Kill& kill) {
    return fmt::format("{:>8}  {} worker {} {}\n",
                       elapsed(kill.at),
                       ink(Ink::red, "kill -9"),
                       kill.worker,
                       words_for(kill.moment));
}

std::string money(std::int64_t cents) {
    return fmt::format("{}.{:02}", cents / 100, cents % 100);
}

std::string times(std::int64_t count, std::int64_t worker) {
    return count == 0 ? "-" : fmt::format("{} by worker {}", count, worker);
}

std::string ledger_of(const std::vector<OrderEnd>& ends) {
    Table table{{{"order"},
                 {"price", Align::right},
                 {"ended"},
                 {"charged"},
                 {"refunded"},
                 {"balance", Align::right},
                 {"right"}}};
    for (const OrderEnd& end : ends) {
        table.add({end.order.id,
                   money(end.order.cents),
                   shortened(status_text(end.info) + ": " + summary_of(end.info), 56),
                   times(end.charges, end.charged_by),
                   times(end.refunds, end.refunded_by),
                   money(end.charged_cents - end.refunded_cents),
                   end.clean() ? "yes" : "NO"});
    }
    return table.text();
}

std::string timeline_of(Story& story, const std::vector<Kill>& kills) {
    const std::vector<flow::Event> history = story.client().history(story.hero().id);
    TimelineOptions options{.width = terminal_width(), .blocks = on_terminal()};
    options.marks_name = "kill -9";
    for (const Kill& kill : kills) {
        options.marks.push_back(kill.when);
    }
    return fmt::format("\n{}, as `holdfast flow show` draws it:\n{}",
                       bold(story.hero().id),
                       draw_timeline(history, options));
}

std::string moral_of(const std::vector<OrderEnd>& ends, std::size_t kills, milliseconds took) {
    std::int64_t charges = 0;
    std::int64_t refunds = 0;
    for (const OrderEnd& end : ends) {
        charges += end.charges;
        refunds += end.refunds;
    }
    const bool clean = std::ranges::all_of(ends, &OrderEnd::clean);
    return fmt::format(
        "\n{} {} charges and {} refund in the ledger, {} kills, {}.\n",
        bold(clean ? "Every charge and every refund happened exactly once." : "THIS IS A BUG."),
        charges,
        refunds,
        kills,
        elapsed(took));
}

Json to_json(const OrderEnd& end) {
    return {{"id", end.order.id},
            {"status", flow::to_string(end.info.status)},
            {"cents", end.order.cents},
            {"approved", end.approved},
            {"courier_fails", end.order.courier_fails},
            {"charges", end.charges},
            {"refunds", end.refunds},
            {"charged_cents", end.charged_cents},
            {"refunded_cents", end.refunded_cents},
            {"charged_by", end.charged_by},
            {"refunded_by", end.refunded_by},
            {"clean", end.clean()}};
}

Json to_json(const std::vector<Kill>& kills) {
    Json json = Json::array();
    for (const Kill& kill : kills) {
        json.push_back(
            {{"worker", kill.worker}, {"moment", kill.moment}, {"at_ms", kill.at.count()}});
    }
    return json;
}

// Creates the tables in a file. On a server the operator does that; the error names the command.
void prepare_schema(const Context& context, const std::string& url) {
    sql::DatabaseOptions options = database_options(context);
    options.create = true;
    sql::Database db{url, std::move(options)};
    const sql::TxOptions tx{.stop = context.stop};
    for (const sql::SchemaPart& part : {flow::schema_part(), demo_schema_part()}) {
        if (db.dialect().embedded) {
            (void)sql::schema_apply(db, part, tx);
        } else {
            sql::schema_require(db, part, tx);
        }
    }
}

void tell(const Context& context, const std::string& text) {
    if (!context.json) {
        print(text);
    }
}

// The acts, in order. Returns the kills.
std::vector<Kill> play(const Context& context, Story& story, Progress& progress) {
    story.place_orders();
    std::vector<Kill> kills;
    const auto killed = [&](Kill kill) {
        progress.clear();
        tell(context, line_of(kill));
        kills.push_back(kill);
    };
    killed(story.kill_at("reserve", progress));
    killed(story.kill_while_all_wait(progress));
    killed(story.kill_at("charge", progress));
    killed(story.kill_at("refund", progress));
    const milliseconds end = story.finish(progress);
    progress.clear();
    tell(context, fmt::format("{:>8}  every order has ended\n", elapsed(end)));
    return kills;
}

}  // namespace

int demo(const Context& context, const DemoRequest& request) {
    const auto began = std::chrono::steady_clock::now();
    const auto endpoint = serve_metrics(context);
    std::optional<TempFolder> folder;
    std::string url = database_url(context);
    std::string prefix = fmt::format("demo-{}-", Uuid::v4().text().substr(0, 6));
    if (url.empty()) {
        folder.emplace();
        url = "sqlite:" + (folder->path() / "shop.db").string();
        prefix.clear();
    }
    prepare_schema(context, url);
    tell(context, heading(url, request.orders));

    Progress progress{context.quiet};
    Story story{context, url, request.orders, prefix};
    const std::vector<Kill> kills = play(context, story, progress);
    const std::vector<OrderEnd> ends = story.ends();
    const bool clean = std::ranges::all_of(ends, &OrderEnd::clean);
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began);
    if (context.json) {
        Json json{{"db", without_password(url)},
                  {"clean", clean},
                  {"took_ms", took.count()},
                  {"kills", to_json(kills)},
                  {"orders", Json::array()}};
        for (const OrderEnd& end : ends) {
            json["orders"].push_back(to_json(end));
        }
        print(json.dump() + "\n");
    } else {
        print(timeline_of(story, kills));
        print(fmt::format("\nThe ledger, in the same database:\n{}", ledger_of(ends)));
        print(moral_of(ends, kills.size(), took));
    }
    if (!request.keep) {
        story.clean_up();
    } else if (folder) {
        folder->keep();
        tell(context, fmt::format("Kept: holdfast flow list --db {}\n", url));
    }
    return clean ? exit_done : exit_refused;
}

}  // namespace holdfast::app
