// Certificates for a local gateway.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::dsql {

struct Certificates {
    std::filesystem::path authority;  // What clients must trust: sslrootcert.
    std::filesystem::path server;     // With its chain.
    std::filesystem::path key;        // Readable by its owner only.
};

// Creates an authority and a certificate signed by it for these names ("*.dsql.us-east-1.on.aws"),
// as PEM files in `folder`, which must exist. The authority's own key is not kept.
[[nodiscard]] Certificates make_certificates(const std::filesystem::path& folder,
                                             const std::vector<std::string>& names);

}  // namespace holdfast::dsql
