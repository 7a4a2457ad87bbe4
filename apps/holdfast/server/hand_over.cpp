#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "server/server.hpp"
#include <fmt/format.h>
#include <unistd.h>

#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

// The words of this process, as it was started.
std::vector<std::string> own_words() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\0', begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

}  // namespace

void become(const char* name) {
    const std::filesystem::path program =
        std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
    std::vector<std::string> words = own_words();
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) {
        arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());  // Returns only if it fails.
    throw Error(Code::unavailable,
                Outcome::not_applied,
                fmt::format("cannot run {}: {}; the server is a program of its own, which "
                            "./run build makes beside this one",
                            program.string(),
                            std::system_category().message(errno)));
}

int hand_over_to_server(const Context& /*context*/, const ServerRequest& /*request*/) {
    become("holdfast-server");
}

}  // namespace holdfast::app
