#include <holdfast/base/exit_code.hpp>

#include <holdfast/base/visible.hpp>

namespace holdfast {

int exit_code_of(const std::exception& failure) noexcept {
    if (const auto* coded = dynamic_cast<const CodedError*>(&failure)) {
        return coded->exit_code();
    }
    const auto* error = dynamic_cast<const Error*>(&failure);
    if (error == nullptr) {
        return exit_internal;
    }
    switch (error->code()) {
        case Code::invalid_argument:
            return exit_usage;
        case Code::condition_failed:
        case Code::not_found:
        case Code::already_exists:
        case Code::limit_exceeded:
        case Code::unauthorized:
            return exit_refused;
        case Code::conflict:
        case Code::unavailable:
        case Code::cancelled:
        case Code::deadline:
        case Code::exhausted:
            return exit_unavailable;
        case Code::unsupported:
        case Code::internal:
            return exit_internal;
    }
    return exit_internal;
}

std::string sentence_of(const std::exception& failure) {
    std::string line;
    bool space = false;
    // It may quote stored text, which must not control the reader's terminal.
    for (const char c : visible(failure.what())) {
        if (c == '\n' || c == '\t' || c == ' ') {
            space = !line.empty();
            continue;
        }
        if (space) {
            line += ' ';
        }
        space = false;
        line += c;
    }
    return line;
}

}  // namespace holdfast
