#include "http/same_origin.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::http {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

bool passes(const Headers& headers, std::string_view own_host = "127.0.0.1") {
    const Request request{.method = "POST", .path = "/", .headers = headers, .body = {}};
    const std::vector<std::string> own_hosts{std::string(own_host)};
    return !cross_origin_refusal(request, own_hosts).has_value();
}

TEST(SameOrigin, ProgramsThatAreNotBrowsersPass) {
    for (const char* const host : {"127.0.0.1:8081",
                                   "127.0.0.1",
                                   "localhost:8081",
                                   "LocalHost",
                                   "[::1]:8081",
                                   "[::1]",
                                   "10.0.0.7:80"}) {
        EXPECT_TRUE(passes({{"host", host}})) << host;
    }
    EXPECT_TRUE(passes({{"host", "Gateway:8081"}}, "gateway"));
    EXPECT_TRUE(passes({{"host", "any.example"}}, "*"));
}

// The browser believes that it talks to its page's own site.
TEST(SameOrigin, ANameThatWasReboundIsRefused) {
    for (const char* const host : {"evil.example:8081",
                                   "evil.example",
                                   "localhost.evil.example",
                                   "127.0.0.1.evil.example",
                                   "127.0.0.1@evil.example",
                                   "[::1",
                                   "[evil.example]",
                                   ""}) {
        EXPECT_FALSE(passes({{"host", host}})) << host;
        EXPECT_FALSE(passes({{"host", host},
                             {"origin", "http://" + std::string(host)},
                             {"sec-fetch-site", "same-origin"}}))
            << host;
    }
    EXPECT_FALSE(passes({}));
}

TEST(SameOrigin, APageOfAnotherOriginIsRefused) {
    const auto from = [](const std::string& origin) {
        return passes({{"host", "localhost:8081"}, {"origin", origin}});
    };
    EXPECT_TRUE(from("http://localhost:8081"));
    for (const char* const origin : {"http://evil.example",
                                     "null",
                                     "",
                                     "http://localhost",
                                     "http://localhost:3000",
                                     "https://localhost:8081",
                                     "http://localhost:8081.evil.example",
                                     "file://"}) {
        EXPECT_FALSE(from(origin)) << origin;
    }
    EXPECT_FALSE(passes({{"host", "localhost:8081"},
                         {"origin", "http://localhost:8081"},
                         {"origin", "http://evil.example"}}));
}

TEST(SameOrigin, APageOfAnotherSiteIsRefused) {
    const auto from = [](const std::string& site) {
        return passes({{"host", "localhost:8081"}, {"sec-fetch-site", site}});
    };
    EXPECT_TRUE(from("same-origin"));
    EXPECT_TRUE(from("none"));  // Typed into the address bar.
    EXPECT_FALSE(from("cross-site"));
    EXPECT_FALSE(from("same-site"));
    EXPECT_FALSE(from(""));
}

}  // namespace
}  // namespace holdfast::http
