// A folder for the time of a command.
#pragma once

#include <filesystem>

namespace holdfast::app {

// Made below `parent`, or where temporary files go if that is empty; removed with all it holds.
class TempFolder {
public:
    explicit TempFolder(std::filesystem::path parent = {});
    ~TempFolder();
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    // Leaves the folder behind.
    void keep() noexcept { kept_ = true; }

private:
    std::filesystem::path path_;
    bool kept_ = false;
};

}  // namespace holdfast::app
