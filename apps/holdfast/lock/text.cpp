#include "lock/text.hpp"

#include "cli/terminal.hpp"
#include "cli/times.hpp"
#include <fmt/core.h>

#include <holdfast/lock/key.hpp>

namespace holdfast::app {
namespace {

// "in 12.00 s", "2.00 s ago".
std::string until_text(lock::ServerTime then, lock::ServerTime now) {
    return then >= now ? "in " + elapsed(then - now) : elapsed(now - then) + " ago";
}

}  // namespace

std::int64_t to_ms(lock::ServerTime time) {
    return time.time_since_epoch().count();
}

Json to_json(const std::string& key, const lock::Grant& grant) {
    return {{"key", key},
            {"fence", to_string(grant.fence)},
            {"expires_at_ms", to_ms(grant.expires_at)},
            {"lock_id_hash", lock::hashed_name(grant.lock_id.reveal())}};
}

Json to_json(const lock::RawLockInfo& found, lock::ServerTime now) {
    return {{"key", found.key},
            {"held", true},
            {"owner", found.owner},
            {"meta", found.meta},
            {"fence", to_string(found.info.fence)},
            {"acquired_at_ms", to_ms(found.info.acquired_at)},
            {"expires_at_ms", to_ms(found.info.expires_at)},
            {"age_ms", (now - found.info.acquired_at).count()},
            {"remaining_ms", (found.info.expires_at - now).count()},
            {"lock_id_hash", found.info.lock_id_hash}};
}

Json to_json(const lock::Listed& listed, lock::ServerTime now) {
    return {{"key", listed.key},
            {"live", listed.live},
            {"owner", listed.owner},
            {"meta", listed.meta},
            {"group", listed.group_id},
            {"fence", to_string(listed.fence)},
            {"acquired_at_ms", to_ms(listed.acquired_at)},
            {"expires_at_ms", to_ms(listed.expires_at)},
            {"age_ms", (now - listed.acquired_at).count()},
            {"remaining_ms", (listed.expires_at - now).count()}};
}

std::string status_text(const lock::RawLockInfo& found, lock::ServerTime now) {
    std::string text = fmt::format(
        "{} is held\n  owner    {}\n  fence    {}\n  since    {}, {}\n"
        "  expires  {}, {}",
        in_one_line(found.key),
        in_one_line(found.owner),
        to_string(found.info.fence),
        moment_text(found.info.acquired_at),
        until_text(found.info.acquired_at, now),
        moment_text(found.info.expires_at),
        until_text(found.info.expires_at, now));
    return found.meta.empty() ? text : text + "\n  meta     " + shortened(found.meta, 100);
}

std::string list_text(const std::vector<lock::Listed>& locks, lock::ServerTime now) {
    Table table{{{"key"}, {"owner"}, {"fence"}, {"held for"}, {"expires"}, {"state"}}};
    for (const lock::Listed& listed : locks) {
        table.add({in_one_line(listed.key),
                   in_one_line(listed.owner),
                   to_string(listed.fence),
                   elapsed(now - listed.acquired_at),
                   until_text(listed.expires_at, now),
                   listed.live ? "held" : "dead"});
    }
    return table.text();
}

std::string in_one_line(const std::string& text) {
    return shortened(text, std::string::npos);
}

}  // namespace holdfast::app
