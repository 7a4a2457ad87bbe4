// A small world for tests of credentials: an environment, files, and a server that answers as told.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include <holdfast/base/error.hpp>
#include <holdfast/dsql/credentials.hpp>
#include <holdfast/testing/local_server.hpp>
#include <holdfast/testing/temp_dir.hpp>

namespace holdfast::dsql::tests {

using holdfast::test::LocalServer;

class CredentialStory : public testing::Test {
protected:
    CredentialStory() {
        // Nothing of the machine that runs the test may leak in.
        environment["HOME"] = (folder / "home").string();
        environment["AWS_EC2_METADATA_DISABLED"] = "true";
        options.variables = [this](const char* name) {
            const auto found = environment.find(name);
            return found == environment.end() ? std::nullopt
                                              : std::optional<std::string>(found->second);
        };
        options.attempt_pause = std::chrono::milliseconds{1};
    }

    [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
        const auto path = folder / name;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }

    [[nodiscard]] Credentials get() const {
        return CredentialChain(options).get(Deadline::after(std::chrono::seconds{10}), {});
    }

    // What get() throws; empty if it throws nothing.
    [[nodiscard]] std::string refusal() const {
        try {
            return get().access_key_id.empty() ? "no keys and no error" : "";
        } catch (const Error& error) {
            return std::string(to_string(error.code())) + ": " + error.what();
        }
    }

    holdfast::test::TempDir folder;
    std::map<std::string, std::string> environment;
    CredentialOptions options;
};

}  // namespace holdfast::dsql::tests
