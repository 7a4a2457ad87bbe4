#include "demo/story.hpp"

#include <algorithm>
#include <utility>

#include "database.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds patience{60'000};  // For a worker to come to its moment.
constexpr milliseconds look_interval{50};
constexpr std::int64_t cents_first = 1990;
constexpr std::int64_t cents_step = 1015;

bool waits_for_a_person(const flow::InstanceInfo& info) {
    return is_final(info.status) ||
           (info.custom_status && info.custom_status->json ==
                                      flow::Codec<std::string>::encode(std::string(shop::waiting)));
}

bool has_ended(const flow::InstanceInfo& info) {
    return is_final(info.status);
}

// "NotShipped", or empty.
std::string failure_type(const flow::InstanceInfo& info) {
    return info.status == flow::Status::failed ? flow::Client::failure_of(info).type : "";
}

}  // namespace

bool OrderEnd::clean() const {
    if (!approved) {
        return charges == 0 && refunds == 0 && failure_type(info) == "Declined";
    }
    if (charges != 1 || charged_cents != order.cents) {
        return false;
    }
    if (!order.courier_fails) {
        return refunds == 0 && info.status == flow::Status::completed;
    }
    return refunds == 1 && refunded_cents == order.cents && failure_type(info) == "NotShipped";
}

Story::Story(const Context& context, const std::string& url, int orders, std::string prefix)
    : context_(context),
      url_(url),
      db_(url, database_options(context)),
      store_(db_),
      client_(store_) {
    for (int i = 1; i <= orders; ++i) {
        orders_.push_back({.run = run_.text(),
                           .id = fmt::format("{}order-{}", prefix, i),
                           .cents = cents_first + cents_step * i,
                           .courier_fails = i == 2});
    }
}

// All but the last.
bool Story::approves(std::size_t order) const noexcept {
    return order + 1 < orders_.size();
}

void Story::place_orders() {
    for (const shop::Order& order : orders_) {
        client_.start<&shop::checkout>(order.id, order);
    }
}

Kill Story::kill_at(std::string_view moment, Progress& progress) {
    Subprocess child{worker(moment)};
    // An interrupt ends every wait.
    const std::stop_callback interrupt{context_.stop, [&child] { child.kill(); }};
    const Deadline deadline = Deadline::after(patience);
    const std::string line = fmt::format("at {}\n", moment);
    progress.show(fmt::format("worker {} runs; it is killed at the {}", workers_, moment));
    std::string said;
    while (said.find(line) == std::string::npos) {
        const std::optional<std::string> piece = child.read(Deadline::after(look_interval));
        said += piece.value_or("");
        if ((piece && piece->empty()) || deadline.passed() || has_ended(info_of(hero()))) {
            throw_ended();
        }
    }
    return kill(child, moment);
}

Kill Story::kill_while_all_wait(Progress& progress) {
    Subprocess child{worker({})};
    watch(child, "wait for approval", progress, &waits_for_a_person);
    const Kill killed = kill(child, "approval");
    for (std::size_t i = 0; i < orders_.size(); ++i) {
        client_.signal(orders_[i].id, shop::approvals, approves(i));
    }
    return killed;
}

milliseconds Story::finish(Progress& progress) {
    Subprocess child{worker({})};
    watch(child, "have ended", progress, &has_ended);
    return age();
}

std::vector<OrderEnd> Story::ends() {
    std::vector<OrderEnd> ends;
    for (std::size_t i = 0; i < orders_.size(); ++i) {
        OrderEnd end;
        end.order = orders_[i];
        end.approved = approves(i);
        end.info = info_of(orders_[i]);
        ends.push_back(std::move(end));
    }
    const sql::Rows rows =
        db_.transact("demo.read", {.stop = context_.stop, .read_only = true}, [&](sql::Tx& tx) {
            return tx.query(shop::read_ledger, run_);
        });
    for (const sql::Row& row : rows) {
        const auto [id, kind, count, cents, by] =
            row.as<std::string, std::string, std::int64_t, std::int64_t, std::int64_t>();
        const auto end = std::ranges::find(
            ends, id, [](const OrderEnd& one) -> const std::string& { return one.order.id; });
        if (end == ends.end()) {
            continue;
        }
        const bool charge = kind == "charge";
        (charge ? end->charges : end->refunds) = count;
        (charge ? end->charged_cents : end->refunded_cents) = cents;
        (charge ? end->charged_by : end->refunded_by) = by;
    }
    return ends;
}

void Story::clean_up() {
    for (const shop::Order& order : orders_) {
        (void)client_.remove(order.id, true);
    }
    (void)db_.run("demo.clean", {.stop = context_.stop}, shop::delete_run, run_);
}

SubprocessOptions Story::worker(std::string_view hold_at) {
    ++workers_;
    std::vector<std::string> arguments{
        "/proc/self/exe", "demo-worker", fmt::format("--number={}", workers_)};
    if (!hold_at.empty()) {
        arguments.push_back(fmt::format("--hold-at={}", hold_at));
        arguments.push_back("--hold-order=" + hero().id);
    }
    if (!context_.config_file.empty()) {
        arguments.push_back("--config=" + context_.config_file);
    }
    // Not on the command line, where other users could read the password.
    return {.arguments = std::move(arguments),
            .environment = {"HOLDFAST_DB=" + url_, "HOLDFAST_METRICS_ADDRESS="},
            .with_errors = false};
}

void Story::watch(Subprocess& child,
                  std::string_view what,
                  Progress& progress,
                  bool (*done)(const flow::InstanceInfo&)) {
    const std::stop_callback interrupt{context_.stop, [&child] { child.kill(); }};
    const Deadline deadline = Deadline::after(patience);
    for (;;) {
        const auto count = std::ranges::count_if(orders_, [&](const shop::Order& order) {
            const std::optional<flow::InstanceInfo> info = client_.info(order.id);
            return info && done(*info);
        });
        if (count == static_cast<std::ptrdiff_t>(orders_.size())) {
            return;
        }
        progress.show(fmt::format(
            "worker {} runs; {} of {} orders {}", workers_, count, orders_.size(), what));
        // A worker that has something to say only says that it is gone.
        if (child.read(Deadline::after(look_interval)) || deadline.passed()) {
            throw_ended();
        }
    }
}

Kill Story::kill(Subprocess& child, std::string_view moment) const {
    child.kill();
    (void)child.wait();
    return {.worker = workers_,
            .moment = moment,
            .at = age(),
            .when = std::chrono::floor<milliseconds>(system_clock().wall_now())};
}

flow::InstanceInfo Story::info_of(const shop::Order& order) {
    std::optional<flow::InstanceInfo> info = client_.info(order.id);
    if (!info) {
        throw Error(Code::internal,
                    Outcome::not_applied,
                    fmt::format("order {} was removed while the demo ran; run it again", order.id));
    }
    return std::move(*info);
}

milliseconds Story::age() const {
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - began_);
}

void Story::throw_ended() const {
    if (context_.stop.stop_requested()) {
        throw Error(Code::cancelled, Outcome::not_applied, "the demo was interrupted");
    }
    throw Error(
        Code::internal,
        Outcome::not_applied,
        fmt::format("worker {} ended by itself or did nothing for {} s; its own message, if "
                    "it had one, is above",
                    workers_,
                    patience.count() / 1000));
}

}  // namespace holdfast::app
