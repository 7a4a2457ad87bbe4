// A folder that lives as long as its owner.
#pragma once

#include <filesystem>
#include <string_view>

namespace holdfast::test {

// Creates an empty folder with a fresh, short name, and removes it with all it holds. Short,
// because the path of a unix socket has at most 107 characters.
class TempDir {
public:
    TempDir();
    ~TempDir();
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
        return path_ / name;
    }

private:
    std::filesystem::path path_;
};

// Only creates the folder; the caller removes it.
[[nodiscard]] std::filesystem::path make_temp_dir();

}  // namespace holdfast::test
