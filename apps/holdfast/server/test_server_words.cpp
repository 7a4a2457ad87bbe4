#include "server/test_server_words.hpp"

#include <algorithm>

namespace holdfast::app {

std::vector<std::string> with_test_server_verb(std::vector<std::string> words) {
    const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
    if (words.empty() || words[0].empty() ||
        !std::all_of(words[0].begin(), words[0].end(), is_digit)) {
        return words;
    }
    words.insert(words.begin(), {"server", "start-test", "--port"});
    return words;
}

}  // namespace holdfast::app
