#include "rpc/http/routes.hpp"

#include <set>

#include "rpc/http/request.hpp"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>
#include <temporal/api/workflowservice/v1/request_response.pb.h>

#include <holdfast/base/percent.hpp>
#include <holdfast/testing/check.hpp>

namespace holdfast::server::rpc {
namespace {

namespace api = temporal::api::workflowservice::v1;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const Routes& routes() {
    static const Routes all([](const std::string&) { return true; });
    return all;
}

std::string method_of(std::string_view verb, std::string_view path) {
    const auto found = routes().find(verb, path);
    return found ? found->route->method->name() : "none";
}

// Each template of the API, filled with values that need percent coding.
TEST(Routes, EveryAnnotationOfTheApiLeadsToItsMethod) {
    HOLDFAST_CHECK("server F195");
    std::set<std::string> methods;
    for (const Route& route : routes().all()) {
        std::string path;
        for (const Route::Segment& segment : route.segments) {
            path += "/" + (segment.is_field ? percent_encoded("a/" + segment.text + " b%")
                                            : segment.text);
        }
        const auto found = routes().find(route.verb, path);
        ASSERT_TRUE(found) << path;
        EXPECT_EQ(found->route->rpc(), route.rpc()) << path;
        for (const auto& [field, value] : found->fields) {
            EXPECT_EQ(value, "a/" + field + " b%");
        }
        methods.insert(route.rpc());
    }
    EXPECT_GT(methods.size(), 70U);
    EXPECT_EQ(routes().all().size() % 2, 0U) << "there is a path with and one without /api/v1";
}

TEST(Routes, APathWithoutThePrefixMeansTheSame) {
    EXPECT_EQ(method_of("GET", "/api/v1/namespaces/n/workflows/w"), "DescribeWorkflowExecution");
    EXPECT_EQ(method_of("GET", "/namespaces/n/workflows/w"), "DescribeWorkflowExecution");
    EXPECT_EQ(method_of("GET", "/cluster/namespaces/n"), "DescribeNamespace");
    EXPECT_EQ(method_of("POST", "/api/v1/namespaces/n/workflows/w/signal/go"),
              "SignalWorkflowExecution");
    EXPECT_EQ(method_of("POST", "/api/v1/namespaces/n/workflows/w/signal-with-start/go"),
              "SignalWithStartWorkflowExecution");
    EXPECT_EQ(method_of("GET", "/api/v1/namespaces/n/search-attributes"), "ListSearchAttributes");
}

// The path is split before it is decoded.
TEST(Routes, AnIdMayHoldASlash) {
    const auto found = routes().find("GET", "/api/v1/namespaces/n/workflows/a%2Fb%20c%3Fd%25+");
    ASSERT_TRUE(found);
    EXPECT_THAT(found->fields,
                ElementsAre(Pair("namespace", "n"), Pair("execution.workflow_id", "a/b c?d%+")));
}

TEST(Routes, OtherPathsAndVerbsAreNotFound) {
    for (const char* const path : {"/",
                                   "/api/v1",
                                   "/api/v1/namespaces/",
                                   "/api/v1/namespaces/n/workflows/w/",
                                   "/api/v1/namespaces//workflows/w",
                                   "/api/v1/namespaces/n/workflows/%zz",
                                   "/api/v2/namespaces"}) {
        EXPECT_EQ(method_of("GET", path), "none") << path;
        EXPECT_THAT(routes().verbs(path), ElementsAre()) << path;
    }
    EXPECT_EQ(method_of("DELETE", "/api/v1/namespaces"), "none");
    EXPECT_THAT(routes().verbs("/api/v1/namespaces"), ElementsAre("GET", "HEAD", "POST"));
}

TEST(Routes, MethodsThatAreNotServedHaveNone) {
    const Routes few([](const std::string& rpc) { return rpc.ends_with("/ListNamespaces"); });
    EXPECT_EQ(few.all().size(), 2U);
}

class HttpRequests : public testing::Test {
protected:
    template <class Request>
    std::optional<std::string> read(std::string_view verb,
                                    std::string_view path,
                                    std::string_view query,
                                    std::string_view body,
                                    Request& request) {
        const auto found = routes().find(verb, path);
        if (!found) {
            return "no route";
        }
        return read_request(*found, query, body, Shorthand::on, request);
    }
};

TEST_F(HttpRequests, ParametersFillFieldsByEitherName) {
    HOLDFAST_CHECK("server F197");
    for (const char* const query : {"execution.runId=r", "execution.run_id=r"}) {
        api::DescribeWorkflowExecutionRequest request;
        EXPECT_EQ(read("GET", "/namespaces/n/workflows/w", query, "", request), std::nullopt);
        EXPECT_EQ(request.namespace_(), "n");
        EXPECT_EQ(request.execution().workflow_id(), "w");
        EXPECT_EQ(request.execution().run_id(), "r");
    }
}

TEST_F(HttpRequests, ParametersHaveTheTypesOfTheirFields) {
    api::GetWorkflowExecutionHistoryRequest request;
    EXPECT_EQ(read("GET",
                   "/namespaces/n/workflows/w/history",
                   "maximumPageSize=7&waitNewEvent=true&nextPageToken=AAE%3D&skip_archival=false"
                   "&historyEventFilterType=CloseEvent&unknown=1&execution.no.such=2&%zz=3",
                   "",
                   request),
              std::nullopt);
    EXPECT_EQ(request.maximum_page_size(), 7);
    EXPECT_TRUE(request.wait_new_event());
    EXPECT_EQ(request.next_page_token(), std::string("\0\1", 2));
    EXPECT_EQ(request.history_event_filter_type(),
              temporal::api::enums::v1::HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT);
    EXPECT_THAT(read("GET", "/namespaces/n/workflows/w/history", "waitNewEvent=maybe", "", request)
                    .value_or("read"),
                HasSubstr("'waitNewEvent'"));
}

TEST_F(HttpRequests, ThePathWinsOverTheBody) {
    api::SignalWorkflowExecutionRequest request;
    EXPECT_EQ(read("POST",
                   "/api/v1/namespaces/n/workflows/w/signal/go",
                   "identity=ignored",
                   R"({"namespace": "other", "signalName": "stop", "input": [{"a":1}],
                       "workflowExecution": {"workflowId": "x", "runId": "r"}})",
                   request),
              std::nullopt);
    EXPECT_EQ(request.namespace_(), "n");
    EXPECT_EQ(request.signal_name(), "go");
    EXPECT_EQ(request.workflow_execution().workflow_id(), "w");
    EXPECT_EQ(request.workflow_execution().run_id(), "r");
    EXPECT_EQ(request.input().payloads(0).data(), "{\"a\":1}");
    EXPECT_EQ(request.identity(), "");
}

TEST_F(HttpRequests, AnUnknownFieldOfTheBodyIsRefused) {
    HOLDFAST_CHECK("server F202");
    api::SignalWorkflowExecutionRequest request;
    EXPECT_THAT(read("POST", "/namespaces/n/workflows/w/signal/go", "", R"({"inputs": 1})", request)
                    .value_or("read"),
                HasSubstr("inputs"));
    api::DescribeWorkflowExecutionRequest read_only;
    EXPECT_EQ(read("GET", "/namespaces/n/workflows/w", "inputs=1", "", read_only), std::nullopt);
}

TEST(HttpWishes, AreInTheQueryOrInTheHeader) {
    const auto says = [](std::string_view query, std::string_view accept) {
        const Wishes wishes = wishes_of(query, accept);
        return fmt::format("{} {}",
                           wishes.shorthand == Shorthand::on ? "short" : "full",
                           wishes.pretty ? "pretty" : "plain");
    };
    EXPECT_EQ(says("", "*/*"), "short plain");
    EXPECT_EQ(says("pretty", ""), "short pretty");
    EXPECT_EQ(says("a=b&noPayloadShorthand&pretty=false", ""), "full plain");
    EXPECT_EQ(says("", "application/json+pretty+no-payload-shorthand"), "full pretty");
    EXPECT_EQ(says("", "application/json+pretty-no-payload-shorthand"), "full pretty");
}

}  // namespace
}  // namespace holdfast::server::rpc
