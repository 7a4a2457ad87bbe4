#include "terminal.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/config.hpp>
#include <holdfast/base/error.hpp>

namespace holdfast::app {
namespace {

// Characters, not bytes: those that continue one are not counted.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

bool colours_wanted() {
    return ::isatty(STDOUT_FILENO) == 1 && !process_environment("NO_COLOR");
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    HOLDFAST_ASSERT(cells.size() == columns_.size());
    rows_.push_back(std::move(cells));
}

std::string Table::text() const {
    std::vector<std::string> titles;
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) {
        titles.push_back(column.title);
        widths.push_back(width_of(column.title));
    }
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], width_of(row[i]));
        }
    }
    const auto line = [this, &widths](const std::vector<std::string>& cells) {
        std::string text;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const std::string padding(widths[i] - width_of(cells[i]), ' ');
            text += i == 0 ? "" : "  ";
            text += columns_[i].align == Align::left ? cells[i] + padding : padding + cells[i];
        }
        text.erase(text.find_last_not_of(' ') + 1);
        return text;
    };
    std::string text = bold(line(titles)) + "\n";
    for (const auto& row : rows_) {
        text += line(row) + "\n";
    }
    return text;
}

Progress::Progress(bool quiet) : quiet_(quiet), live_(!quiet && ::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
    clear();
}

void Progress::show(std::string_view text) {
    if (live_) {
        fmt::print(stderr, "\r\x1b[2K{}", text);
        std::fflush(stderr);
        shown_ = true;
    }
}

void Progress::note(std::string_view text) {
    clear();
    if (!quiet_) {
        fmt::print(stderr, "{}\n", text);
    }
}

void Progress::clear() {
    if (shown_) {
        fmt::print(stderr, "\r\x1b[2K");
        std::fflush(stderr);
        shown_ = false;
    }
}

std::string bold(std::string_view text) {
    return colours_wanted() ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

void print(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "cannot write to standard output; look whether its disk is full");
    }
}

}  // namespace holdfast::app
