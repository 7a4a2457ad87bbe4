// Filters find what they say, in the order they say, on every database: compared with a reading of
// the same filter that looks at every run.
#include <algorithm>
#include <functional>
#include <map>

#include "test/store_fixture.hpp"
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <holdfast/store/visibility.hpp>

namespace holdfast::store::tests {
namespace {

using Record = VisibilityRecord;

std::size_t below(std::size_t end) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::size_t>(0, end));
}
bool sometimes() {
    return below(2) == 0;
}

sql::Timestamp minute(std::size_t n) {
    return at(1'700'000'000s + std::chrono::minutes{n});
}

// ---- What the language means, said once more --------------------------------------------------

// As in SQL: what is said of something that is not there is neither true nor false.
enum class Truth : std::uint8_t { no, unknown, yes };
Truth opposite(Truth truth) {
    return static_cast<Truth>(2 - static_cast<int>(truth));
}

using Datum = std::variant<bool, double, std::string>;

struct Literal {
    std::string text;
    Datum value;
};

// Something that a run has, once, several times or not at all.
struct Subject {
    std::string name;
    std::function<std::vector<Datum>(const Record&)> values;
    std::function<Literal()> literal;
    bool ordered = true;
    bool sortable = true;
};

struct Search {
    std::string text;
    std::function<Truth(const Record&)> truth;
};

template <class T, class Read>
std::vector<Datum> maybe(const std::optional<T>& value, const Read& read) {
    return value ? std::vector<Datum>{read(*value)} : std::vector<Datum>{};
}
double number(std::int64_t value) {
    return static_cast<double>(value);
}
double micros(sql::Timestamp time) {
    return number(time.time_since_epoch().count());
}

// Few, so that they meet; with what LIKE, a collation or a careless quote would mistake.
const std::vector<std::string> texts{"",
                                     "a",
                                     "A",
                                     "ab",
                                     "Ab",
                                     "a%",
                                     "a_",
                                     "a'b",
                                     "a\"b",
                                     "a\\b",
                                     "\xC3\xA9",
                                     "a\xF4\x8F\xBF\xBF",
                                     "b"};
const std::vector<std::string> names{texts.begin() + 1, texts.end()};

Literal text_literal() {
    const std::string& text = texts[below(texts.size())];
    return {quoted_text(text), text};
}
Literal number_literal() {
    const std::size_t n = below(5);
    return sometimes()
               ? Literal{std::to_string(n), number(static_cast<std::int64_t>(n))}
               : Literal{fmt::format("{}.5", n), number(static_cast<std::int64_t>(n)) + 0.5};
}
// All that an id may be compared with: a part of one, a whole one, and no id at all.
Literal id_literal() {
    const std::string text =
        sometimes() ? texts[below(texts.size())] : RunId::random().text().substr(0, below(37));
    return {quoted_text(text), text};
}
Literal time_literal() {
    const std::size_t n = below(8);
    const auto time = minute(n).time_since_epoch();
    const std::string text = sometimes() ? fmt::format("'2023-11-14T22:{}:20Z'", 13 + n)
                                         : std::to_string(std::chrono::nanoseconds{time}.count());
    return {text, number(time.count())};
}
Literal duration_literal() {
    const std::size_t n = below(5);
    const std::vector<std::string> forms{
        fmt::format("'{}s'", n), fmt::format("'00:00:{:02}'", n), fmt::format("{}000000000", n)};
    return {forms[below(forms.size())], number(static_cast<std::int64_t>(n)) * 1e6};
}
Literal status_literal() {
    const std::vector<std::string> known{"Running", "Completed", "Failed", "Canceled"};
    const std::size_t n = below(known.size());
    return {sometimes() ? quoted_text(known[n]) : std::to_string(n + 1),
            number(static_cast<std::int64_t>(n) + 1)};
}
Literal any_literal() {
    switch (below(4)) {
        case 0:
            return text_literal();
        case 1:
            return sometimes() ? Literal{"true", true} : Literal{"FALSE", false};
        default:
            return number_literal();
    }
}

std::vector<Datum> attribute(const Record& run, const std::string& name) {
    const auto found = run.search_attributes.find(name);
    if (found == run.search_attributes.end()) {
        return {};
    }
    const auto parsed = nlohmann::json::parse(found->second.text);
    std::vector<Datum> values;
    for (const auto& one : parsed.is_array() ? parsed : nlohmann::json::array({parsed})) {
        if (one.is_string()) {
            values.emplace_back(one.get<std::string>());
        } else if (one.is_boolean()) {
            values.emplace_back(one.get<bool>());
        } else {
            values.emplace_back(one.get<double>());
        }
    }
    return values;
}

std::vector<Subject> columns() {
    const auto text = [](const std::string& name, auto read) {
        return Subject{
            name, [=](const Record& run) { return std::vector<Datum>{read(run)}; }, text_literal};
    };
    const auto time = [](const std::string& name, auto read) {
        return Subject{name,
                       [=](const Record& run) { return maybe<sql::Timestamp>(read(run), micros); },
                       time_literal};
    };
    return {
        text("WorkflowId", [](const Record& run) { return run.workflow_id; }),
        text("WorkflowType", [](const Record& run) { return run.workflow_type; }),
        text("TaskQueue", [](const Record& run) { return run.task_queue; }),
        time("StartTime", [](const Record& run) { return run.start_time; }),
        time("ExecutionTime", [](const Record& run) { return run.execution_time; }),
        time("CloseTime", [](const Record& run) { return run.close_time; }),
        {"ExecutionStatus",
         [](const Record& run) {
             return std::vector<Datum>{number(static_cast<std::int32_t>(run.status))};
         },
         status_literal},
        {"RunId", [](const Record& run) { return std::vector<Datum>{run.run.text()}; }, id_literal},
        {"ParentRunId",
         [](const Record& run) {
             return maybe(run.parent, [](const RelatedRun& one) { return one.run.text(); });
         },
         id_literal},
        {"HistoryLength",
         [](const Record& run) { return maybe(run.history_length, number); },
         number_literal},
        {"ExecutionDuration",
         [](const Record& run) {
             return maybe(run.execution_duration,
                          [](std::chrono::microseconds us) { return number(us.count()); });
         },
         duration_literal},
        {"ParentWorkflowId",
         [](const Record& run) {
             return maybe(run.parent, [](const RelatedRun& one) { return one.workflow_id; });
         },
         text_literal}};
}
std::vector<Subject> attributes() {
    std::vector<Subject> made;
    for (const std::string name : {"level", "tag"}) {
        made.push_back({name,
                        [=](const Record& run) { return attribute(run, name); },
                        any_literal,
                        true,
                        false});
    }
    return made;
}

// ---- Random filters ---------------------------------------------------------------------------

using Holds = std::function<bool(const Datum&)>;

Search about(const Subject& subject, std::string text, const Holds& holds, bool negated) {
    return {std::move(text), [=, values = subject.values](const Record& run) {
                const auto all = values(run);
                if (all.empty()) {
                    return Truth::unknown;
                }
                const bool met = std::any_of(all.begin(), all.end(), holds);
                return met != negated ? Truth::yes : Truth::no;
            }};
}

// Values of two kinds are not equal, and neither is less.
Holds compares(const std::string& symbol, const Datum& with) {
    return [=](const Datum& value) {
        if (value.index() != with.index()) {
            return false;
        }
        return symbol == "=" || symbol == "!=" ? value == with
               : symbol == "<"                 ? value < with
               : symbol == "<="                ? value <= with
               : symbol == ">"                 ? value > with
                                               : value >= with;
    };
}

Search random_comparison(const Subject& subject) {
    const std::vector<std::string> symbols{"=", "!=", "<", "<=", ">", ">="};
    const std::string& symbol = symbols[below(subject.ordered ? symbols.size() : 2)];
    const Literal with = subject.literal();
    return about(subject,
                 fmt::format("{} {} {}", subject.name, symbol, with.text),
                 compares(symbol, with.value),
                 symbol == "!=");
}
Search random_list(const Subject& subject) {
    const bool negated = sometimes();
    std::string text = fmt::format("{}{} IN (", subject.name, negated ? " NOT" : "");
    std::vector<Holds> any;
    for (std::size_t left = 1 + below(5); left > 0; --left) {
        const Literal with = subject.literal();
        text += with.text + (left > 1 ? ", " : ")");
        any.push_back(compares("=", with.value));
    }
    const auto holds = [=](const Datum& value) {
        return std::any_of(any.begin(), any.end(), [&](const Holds& one) { return one(value); });
    };
    return about(subject, text, holds, negated);
}
Search random_range(const Subject& subject) {
    const bool negated = sometimes();
    const Literal first = subject.literal();
    Literal last = subject.literal();
    while (last.value.index() != first.value.index()) {
        last = subject.literal();
    }
    const auto from = compares(">=", first.value);
    const auto to = compares("<=", last.value);
    return about(
        subject,
        fmt::format(
            "{}{} BETWEEN {} AND {}", subject.name, negated ? " NOT" : "", first.text, last.text),
        [=](const Datum& value) { return from(value) && to(value); },
        negated);
}
Search random_prefix(const Subject& subject) {
    const bool negated = sometimes();
    const std::string& prefix = texts[below(texts.size())];
    return about(
        subject,
        fmt::format(
            "{}{} STARTS_WITH {}", subject.name, negated ? " NOT" : "", quoted_text(prefix)),
        [=](const Datum& value) {
            const auto* const text = std::get_if<std::string>(&value);
            return text != nullptr && text->starts_with(prefix);
        },
        negated);
}
Search random_presence(const Subject& subject) {
    const bool negated = sometimes();
    return {fmt::format("{} IS {}NULL", subject.name, negated ? "NOT " : ""),
            [=, values = subject.values](const Record& run) {
                return values(run).empty() != negated ? Truth::yes : Truth::no;
            }};
}

Search random_condition(const std::vector<Subject>& subjects) {
    const Subject& subject = subjects[below(subjects.size())];
    const bool takes_text = subject.literal().text.starts_with('\'') &&
                            subject.name != "ExecutionStatus" && !subject.name.ends_with("Time") &&
                            subject.name != "ExecutionDuration";
    switch (below(6)) {
        case 0:
            return random_list(subject);
        case 1:
            return subject.ordered ? random_range(subject) : random_list(subject);
        case 2:
            return takes_text ? random_prefix(subject) : random_presence(subject);
        case 3:
            return random_presence(subject);
        default:
            return random_comparison(subject);
    }
}

Search random_search(const std::vector<Subject>& subjects, int depth) {
    const std::size_t kind = depth == 0 ? 0 : below(5);
    if (kind == 0) {
        return random_condition(subjects);
    }
    const Search left = random_search(subjects, depth - 1);
    if (kind == 1) {
        return {fmt::format("NOT ({})", left.text),
                [=](const Record& run) { return opposite(left.truth(run)); }};
    }
    const Search right = random_search(subjects, depth - 1);
    const bool both = kind < 4;
    return {fmt::format("({} {} {})", left.text, both ? "AND" : "OR", right.text),
            [=](const Record& run) {
                const auto [less, more] = std::minmax({left.truth(run), right.truth(run)});
                return both ? less : more;
            }};
}

struct RandomOrder {
    std::string text;
    std::function<bool(const Record&, const Record&)> before;
};
RandomOrder random_order(const std::vector<Subject>& subjects) {
    std::vector<std::pair<Subject, bool>> keys;
    std::string text;
    for (std::size_t left = below(4); left > 0;) {
        const Subject& subject = subjects[below(subjects.size())];
        if (subject.sortable) {
            const bool descending = sometimes();
            keys.emplace_back(subject, descending);
            text += fmt::format("{}{}{}",
                                text.empty() ? " ORDER BY " : ", ",
                                subject.name,
                                descending ? " DESC" : (sometimes() ? " ASC" : ""));
            --left;
        }
    }
    if (keys.empty()) {
        for (const Subject& subject : subjects) {
            if (subject.name == "CloseTime" || subject.name == "StartTime") {
                keys.emplace(
                    subject.name == "CloseTime" ? keys.begin() : keys.end(), subject, true);
            }
        }
    }
    return {text, [=](const Record& a, const Record& b) {
                for (const auto& [subject, descending] : keys) {
                    const auto of_a = subject.values(a);
                    const auto of_b = subject.values(b);
                    // What is not there comes after all that is.
                    if (of_a != of_b) {
                        const bool less = of_b.empty() || (!of_a.empty() && of_a < of_b);
                        return less != descending;
                    }
                }
                return keys.back().second ? a.run > b.run : a.run < b.run;
            }};
}

// ---- Runs -------------------------------------------------------------------------------------

class Filters : public testing::TestWithParam<test::Backend> {
public:
    // The same runs each time, but for their ids: what is random is what is asked.
    void fill(int count) {
        const std::vector<SearchAttributes> given{
            {},
            {{"level", {"2"}}, {"tag", {"\"ab\""}}},
            {{"level", {"2.5"}}, {"tag", {"[\"a\", \"b\", 3]"}}},
            {{"level", {"[1, 4]"}}, {"tag", {"true"}}},
            {{"level", {"\"2\""}}, {"tag", {"[]"}}},
            {{"tag", {"\"a\xF4\x8F\xBF\xBF\""}}},
            {{"level", {"0"}}, {"tag", {"\"\""}}}};
        for (int i = 0; i < count; ++i) {
            const auto n = static_cast<std::size_t>(i);
            Record made{.ns = ns,
                        .run = RunId::random(),
                        .version = 1,
                        .workflow_id = names[n % names.size()],
                        .workflow_type = names[n * 5 % names.size()],
                        .status = RunStatus{1 + i % 4},
                        .start_time = minute(n % 6),
                        .execution_time = minute(n % 4),
                        .task_queue = texts[n * 3 % texts.size()]};
            if (i % 4 != 0) {
                made.close_time = minute(2 + n % 5);
                made.execution_duration = std::chrono::seconds{i % 5};
            }
            if (i % 3 != 0) {
                made.history_length = i % 5;
            }
            if (i % 5 < 2) {
                made.parent = RelatedRun{.workflow_id = names[n % 4], .run = RunId::random()};
            }
            made.search_attributes = given[n % given.size()];
            EXPECT_TRUE(visibility.insert(made));
            runs.push_back(made);
        }
    }
    [[nodiscard]] std::vector<RunId> found(const std::string& filter,
                                           std::int64_t page_size) const {
        std::vector<RunId> ids;
        std::optional<VisibilityPlace> after;
        do {
            const VisibilityPage page = visibility.list(ns, filter, page_size, after);
            for (const Record& run : page.records) {
                ids.push_back(run.run);
            }
            after = page.next;
        } while (after && ids.size() <= runs.size());
        return ids;
    }

    const NamespaceId ns = NamespaceId::random();
    MigratedDatabase db{GetParam()};
    Visibility visibility{db};
    std::vector<Record> runs;
};

TEST_P(Filters, FindWhatTheySayInTheirOrderEachRunOnce) {
    fill(60);
    std::vector<Subject> subjects = columns();
    for (Subject& subject : attributes()) {
        subjects.push_back(subject);
        subjects.push_back(std::move(subject));  // As likely as a few columns.
    }
    EXPECT_TRUE(rc::check("a filter finds the runs of which it is true", [&] {
        const Search search = random_search(subjects, 3);
        const RandomOrder order = random_order(subjects);
        std::vector<Record> expected;
        std::map<RunStatus, std::int64_t> counts;
        for (const Record& run : runs) {
            if (search.truth(run) == Truth::yes) {
                expected.push_back(run);
                ++counts[run.status];
            }
        }
        std::sort(expected.begin(), expected.end(), order.before);
        std::vector<RunId> ids;
        ids.reserve(expected.size());
        for (const Record& run : expected) {
            ids.push_back(run.run);
        }
        const std::string filter = search.text + order.text;
        RC_LOG() << filter << "\n";
        RC_ASSERT(found(filter, 3 + static_cast<std::int64_t>(below(20))) == ids);
        RC_ASSERT(visibility.count_by_status(ns, search.text) == counts);
    }));
}

TEST_P(Filters, TextStaysText) {
    const std::vector<std::string> hostile{"'; DROP TABLE executions_visibility; --",
                                           "' OR '1' = '1",
                                           "\\' OR 1 = 1 --",
                                           "$1",
                                           "?1",
                                           "{now_us}",
                                           "%",
                                           "/* x */",
                                           "\\",
                                           "a\nb"};
    for (const std::string& text : hostile) {
        Record made{.ns = ns,
                    .run = RunId::random(),
                    .version = 1,
                    .workflow_id = text,
                    .workflow_type = "order",
                    .start_time = minute(0),
                    .execution_time = minute(0)};
        made.search_attributes = {{"note", {nlohmann::json(text).dump()}}};
        EXPECT_TRUE(visibility.insert(made));
        runs.push_back(made);
    }
    for (const Record& run : runs) {
        const std::string text = quoted_text(run.workflow_id);
        for (const std::string& filter : {"WorkflowId = " + text,
                                          "WorkflowId IN (" + text + ", 'x')",
                                          "WorkflowId STARTS_WITH " + text,
                                          fmt::format("WorkflowId BETWEEN {0} AND {0}", text)}) {
            if (run.workflow_id != "\\" || filter.find("STARTS") == std::string::npos) {
                EXPECT_THAT(found(filter, 9), ElementsAre(run.run)) << filter;
            }
        }
        EXPECT_THAT(found("note = " + text, 9), ElementsAre(run.run)) << text;
        EXPECT_EQ(
            test::code_of([&] { (void)visibility.count(ns, "WorkflowId = 'a" + run.workflow_id); }),
            Code::invalid_argument)
            << "without quotes of its own: " << run.workflow_id;
    }
    EXPECT_EQ(visibility.count(ns, ""), std::ssize(runs));
}

TEST_P(Filters, TheLargestAreAnswered) {
    fill(3);
    std::string filter = "WorkflowId = 'a'";
    for (std::size_t i = 1; i < 200; ++i) {
        filter += i % 2 == 0 ? " OR WorkflowId = 'a'" : " AND HistoryLength IS NULL";
    }
    EXPECT_EQ(visibility.count(ns, filter), 1);
    filter = "HistoryLength NOT IN (7";
    for (int i = 1; i < 128; ++i) {
        filter += ", 7";
    }
    EXPECT_EQ(visibility.count(ns, filter + ")"), 2);
    EXPECT_EQ(
        visibility.count(ns, std::string(50, '(') + "WorkflowId = 'a'" + std::string(50, ')')), 1);
    filter = "tag = 'ab'";
    for (int i = 1; i < 200; ++i) {
        filter += " AND NOT level > 9";
    }
    EXPECT_EQ(visibility.count(ns, filter), 1);
}

INSTANTIATE_TEST_SUITE_P(Every, Filters, test::every_backend(), test::backend_name);

}  // namespace
}  // namespace holdfast::store::tests
