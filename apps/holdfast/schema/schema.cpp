#include "schema/schema.hpp"

#include <span>
#include <vector>

#include "cli/answer.hpp"
#include "cli/terminal.hpp"
#include "database.hpp"
#include "schema/parts.hpp"
#include <fmt/core.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>
#include <holdfast/base/redact.hpp>

namespace holdfast::app {
namespace {

// The part that was named, else `otherwise`.
std::vector<sql::SchemaPart> chosen(const Parts& parts,
                                    const SchemaRequest& request,
                                    std::span<const sql::SchemaPart> otherwise) {
    if (!request.part.empty()) {
        return {parts.named(request.part)};
    }
    return {otherwise.begin(), otherwise.end()};
}

std::string state_of(const sql::PartStatus& status) {
    if (status.step > 0) {
        return fmt::format("interrupted after step {}", status.step);
    }
    if (status.version == 0) {
        return "not there";
    }
    if (status.version > status.known) {
        return "newer than this binary";
    }
    return status.version < status.known ? "older" : "up to date";
}

Json to_json(const sql::PartStatus& status) {
    return {{"part", status.part},
            {"version", status.version},
            {"step", status.step},
            {"known", status.known},
            {"state", state_of(status)}};
}

}  // namespace

int schema_apply(const Context& context, const SchemaRequest& request) {
    const Parts known(context.config);
    const std::vector<sql::SchemaPart> parts =
        chosen(known, request, known.usual());  // Before a file is created.
    const std::string& url = required_database_url(context);
    sql::DatabaseOptions options = database_options(context);
    options.create = true;
    sql::Database db{url, std::move(options)};

    Json json{{"db", without_password(url)}, {"parts", Json::array()}};
    Table table{{{"part"}, {"from", Align::right}, {"to", Align::right}}};
    for (const sql::SchemaPart& part : parts) {
        const sql::TxOptions tx{.stop = context.stop};
        const sql::PartStatus before = sql::schema_status(db, part, tx);
        const sql::PartStatus after = sql::schema_apply(db, part, tx);
        table.add({after.part, std::to_string(before.version), std::to_string(after.version)});
        Json entry = to_json(after);
        entry["from"] = before.version;
        json["parts"].push_back(std::move(entry));
    }
    print(context.json ? json_line(json) + "\n" : table.text());
    return exit_done;
}

int schema_status(const Context& context, const SchemaRequest& request) {
    const Parts known(context.config);
    const std::vector<sql::SchemaPart> parts = chosen(known, request, known.usual());
    const std::string& url = required_database_url(context);
    sql::Database db{url, database_options(context)};

    Json json{{"db", without_password(url)}, {"parts", Json::array()}};
    Table table{{{"part"}, {"version", Align::right}, {"known", Align::right}, {"state"}}};
    for (const sql::SchemaPart& part : parts) {
        const sql::PartStatus status = sql::schema_status(db, part, {.stop = context.stop});
        table.add({status.part,
                   std::to_string(status.version),
                   std::to_string(status.known),
                   state_of(status)});
        json["parts"].push_back(to_json(status));
    }
    print(context.json ? json_line(json) + "\n" : table.text());
    return exit_done;
}

int schema_dump(const Context& context, const SchemaRequest& request) {
    const sql::Dialect& dialect = sql::dialect_named(request.dialect);
    Json json{{"dialect", request.dialect}, {"parts", Json::array()}};
    std::string text;
    const Parts known(context.config);
    for (const sql::SchemaPart& part : chosen(known, request, known.all())) {
        const std::string sql = sql::schema_dump(part, dialect);
        json["parts"].push_back({{"part", part.name}, {"sql", sql}});
        text += fmt::format(
            "{}-- {} for {}\n\n{}", text.empty() ? "" : "\n", part.name, request.dialect, sql);
    }
    print(context.json ? json_line(json) + "\n" : text);
    return exit_done;
}

}  // namespace holdfast::app
