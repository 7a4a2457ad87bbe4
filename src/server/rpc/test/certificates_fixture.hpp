// Certificates for one test, in memory.
#pragma once

#include <string>

namespace holdfast::server::rpc::tests {

struct Certified {
    std::string certificate;  // PEM, as the key.
    std::string key;
};

// An authority that signs for the host `localhost`, and clients too.
class Authority {
public:
    Authority();

    [[nodiscard]] const std::string& certificate() const noexcept { return own_.certificate; }
    [[nodiscard]] Certified issue(const std::string& name) const;

private:
    Certified own_;
};

}  // namespace holdfast::server::rpc::tests
