#include "metrics.hpp"

namespace holdfast::app {

std::unique_ptr<HttpEndpoint> serve_metrics(const Context& context) {
    const std::string& address = context.config.text("metrics.address");
    if (address.empty()) {
        return nullptr;
    }
    auto endpoint = std::make_unique<HttpEndpoint>(
        HttpAddress::parse(address), context.metrics, [] { return Health{}; });
    context.logger.info("serving metrics", {{"port", endpoint->port()}});
    return endpoint;
}

}  // namespace holdfast::app
