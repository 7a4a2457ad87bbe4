// Output for people: tables, and a line that shows progress. Plain when it does not go to a
// terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::app {

enum class Align : std::uint8_t { left, right };

struct Column {
    std::string title;
    Align align = Align::left;
};

// Columns as wide as their widest cell. Text is UTF-8; what could steer the terminal is shown as
// an escape, see holdfast/base/visible.hpp.
class Table {
public:
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

    // Requires: one cell per column.
    void add(std::vector<std::string> cells);
    // The header, then the rows, each ending with a newline.
    [[nodiscard]] std::string text() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

// On standard error: one line that is written over and over if that is a terminal, nothing but
// `note` if it is not, nothing at all if quiet.
class Progress {
public:
    explicit Progress(bool quiet);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    [[nodiscard]] bool live() const noexcept { return live_; }
    // Shows `text` until the next call.
    void show(std::string_view text);
    // A line that stays.
    void note(std::string_view text);
    // Before anything else is printed.
    void clear();

private:
    bool quiet_;
    bool live_;
    bool shown_ = false;
};

// Bold on a terminal, as it is elsewhere.
[[nodiscard]] std::string bold(std::string_view text);

enum class Ink : std::uint8_t { plain, red, green, yellow, cyan, grey };
// In a colour on a terminal, as it is elsewhere.
[[nodiscard]] std::string ink(Ink colour, std::string_view text);

// Whether standard output is a terminal, and not a file or a program.
[[nodiscard]] bool on_terminal();
// Its columns; 100 if it is none.
[[nodiscard]] std::size_t terminal_width();

// Characters, not bytes: those that continue one are not counted.
[[nodiscard]] std::size_t width_of(std::string_view text);
// In one line, visible, and at most `width` characters of it; what was cut off is an ellipsis.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t width);
// Filled up with blanks on the right.
[[nodiscard]] std::string padded(std::string text, std::size_t width);

// Writes to standard output. Unavailable if that is full or closed.
void print(std::string_view text);

}  // namespace holdfast::app
