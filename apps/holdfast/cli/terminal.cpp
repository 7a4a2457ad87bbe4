#include "cli/terminal.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <holdfast/base/assert.hpp>
#include <holdfast/base/config.hpp>
#include <holdfast/base/error.hpp>
#include <holdfast/base/visible.hpp>

namespace holdfast::app {
namespace {

constexpr std::size_t width_elsewhere = 100;
constexpr std::size_t width_least = 60;

bool begins_character(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

// Stored text must not control the reader's terminal.
std::string visible_line(std::string_view text) {
    std::string line = visible(text);
    std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
    return line;
}

bool colours_wanted() {
    return on_terminal() && !process_environment("NO_COLOR");
}

std::string_view code_of(Ink colour) {
    switch (colour) {
        case Ink::red:
            return "31";
        case Ink::green:
            return "32";
        case Ink::yellow:
            return "33";
        case Ink::cyan:
            return "36";
        case Ink::grey:
            return "90";
        case Ink::plain:
            break;
    }
    return "0";
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
    HOLDFAST_ASSERT(cells.size() == columns_.size());
    for (std::string& cell : cells) {
        cell = visible_line(cell);
    }
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

std::string ink(Ink colour, std::string_view text) {
    return colours_wanted() && colour != Ink::plain
               ? fmt::format("\x1b[{}m{}\x1b[0m", code_of(colour), text)
               : std::string(text);
}

bool on_terminal() {
    return ::isatty(STDOUT_FILENO) == 1;
}

std::size_t terminal_width() {
    struct winsize size{};
    if (!on_terminal() || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return width_elsewhere;
    }
    return std::max<std::size_t>(size.ws_col, width_least);
}

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string shortened(std::string_view text, std::size_t width) {
    std::string line = visible_line(text);
    if (width_of(line) <= width) {
        return line;
    }
    std::size_t characters = 0;
    const auto end = std::ranges::find_if(line, [&characters, width](char c) {
        return begins_character(c) && ++characters == width;
    });
    return line.erase(static_cast<std::size_t>(end - line.begin())) + "…";
}

std::string padded(std::string text, std::size_t width) {
    const std::size_t now = width_of(text);
    if (now < width) {
        text.append(width - now, ' ');
    }
    return text;
}

void print(std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (!written || std::fflush(stdout) != 0) {
        throw Error(Code::unavailable,
                    Outcome::not_applied,
                    "cannot write to standard output; check whether its disk is full");
    }
}

}  // namespace holdfast::app
