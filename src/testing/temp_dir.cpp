#include <holdfast/testing/temp_dir.hpp>

#include <cstdlib>
#include <string>
#include <system_error>

#include <holdfast/base/error.hpp>

namespace holdfast::test {

std::filesystem::path make_temp_dir() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment does not change.
    const char* parent = std::getenv("TMPDIR");
    const std::filesystem::path pattern =
        std::filesystem::path(parent == nullptr || *parent == '\0' ? "/tmp" : parent) /
        "holdfast-XXXXXX";
    std::string path = pattern.string();
    if (::mkdtemp(path.data()) == nullptr) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "cannot create a folder like " + pattern.string() +
                        "; set TMPDIR to a folder that may be written");
    }
    return path;
}

TempDir::TempDir() : path_(make_temp_dir()) {}

TempDir::~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

}  // namespace holdfast::test
