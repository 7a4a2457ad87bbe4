#include "limits/private_server.hpp"

#ifdef HOLDFAST_HARNESS
#include <holdfast/testing/postgres.hpp>
#else
#include <holdfast/base/error.hpp>
#endif

namespace holdfast::bench {

#ifdef HOLDFAST_HARNESS

namespace {

class HarnessServer final : public PrivateServer {
public:
    [[nodiscard]] std::string url() const override { return server_.address().url(); }

private:
    // For 200 clients of the limit, and ours beside them.
    test::PrivatePostgres server_{{.fsync = true, .settings = {{"max_connections", "300"}}}};
};

}  // namespace

std::unique_ptr<PrivateServer> start_private_server() {
    return std::make_unique<HarnessServer>();
}

#else

std::unique_ptr<PrivateServer> start_private_server() {
    throw InvalidArgument(
        "this binary brings no PostgreSQL of its own; name one with --db postgres://..., or leave "
        "it out with --only sqlite");
}

#endif

}  // namespace holdfast::bench
