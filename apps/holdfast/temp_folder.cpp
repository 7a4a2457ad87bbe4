#include "temp_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {

TempFolder::TempFolder(std::filesystem::path parent) {
    if (parent.empty()) {
        std::error_code missing;
        parent = std::filesystem::temp_directory_path(missing);
        if (missing) {
            throw InvalidArgument("TMPDIR is not a folder; set it to one that exists");
        }
    }
    std::string name = (std::filesystem::absolute(parent) / "holdfast-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    fmt::format("cannot create a folder in {} ({}); choose another one",
                                parent.string(),
                                std::generic_category().message(errno)));
    }
    path_ = name;
}

TempFolder::~TempFolder() {
    if (!kept_) {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
}

}  // namespace holdfast::app
