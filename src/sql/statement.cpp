#include <holdfast/sql/statement.hpp>

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::sql {
namespace {

// Walks over a statement's text, copying what is not ours to touch: quoted text, quoted names and
// comments, in which `$1` and `{x}` mean nothing.
class Renderer {
public:
    Renderer(const Dialect& dialect,
             std::string_view name,
             std::string_view text,
             const TableNames* names)
        : dialect_(dialect), name_(name), text_(text), names_(names) {}

    Rendered render() {
        while (at_ < text_.size()) {
            step();
        }
        Rendered done{.name = std::string(name_),
                      .text = {},
                      .arguments = highest_parameter(),
                      .clocks = clocks_,
                      .writes = !is_select()};
        for (const ClockHole& hole : clock_holes_) {
            pieces_[hole.piece] = clock_text(hole.name, done.arguments + 1 + hole.parameter);
        }
        for (const std::string& piece : pieces_) {
            done.text += piece;
        }
        return done;
    }

private:
    struct ClockHole {
        std::size_t piece;
        std::string_view name;
        std::size_t parameter;  // Behind the caller's own.
    };

    void step() {
        const char c = text_[at_];
        if (c == '\'' || c == '"') {
            copy_until(closing_quote(c));
        } else if (text_.substr(at_, 2) == "--") {
            copy_until(text_.find('\n', at_));
        } else if (text_.substr(at_, 2) == "/*") {
            const std::size_t end = text_.find("*/", at_ + 2);
            copy_until(end == std::string_view::npos ? end : end + 1);
        } else if (c == '$') {
            parameter();
        } else if (c == '{') {
            hole();
        } else {
            copy_until(at_);
        }
    }

    // Copies up to and including position `last`, or the rest.
    void copy_until(std::size_t last) {
        const std::size_t end = last == std::string_view::npos ? text_.size() : last + 1;
        append(text_.substr(at_, end - at_));
        at_ = end;
    }

    [[nodiscard]] std::size_t closing_quote(char quote) const {
        return text_.find(quote, at_ + 1);  // A doubled quote is two neighbours, each complete.
    }

    void parameter() {
        std::size_t number = 0;
        const char* const begin = text_.data() + at_ + 1;
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(begin, end, number);
        if (error != std::errc{} || number == 0 || number > parameters_max) {
            refuse("has a `$` that is not followed by a parameter's number");
        }
        if (seen_.size() < number) {
            seen_.resize(number, false);
        }
        seen_[number - 1] = true;
        append(placeholder(number));
        at_ += 1 + static_cast<std::size_t>(stop - begin);
    }

    void hole() {
        const std::size_t end = text_.find('}', at_);
        if (end == std::string_view::npos) {
            refuse("has a `{` without its `}`");
        }
        const std::string_view hole = text_.substr(at_ + 1, end - at_ - 1);
        const std::string_view filling = fill_hole(dialect_, hole);
        if (is_table_hole(hole)) {
            append(table(hole));
        } else if (filling.data() == nullptr) {
            refuse(fmt::format("has an unknown hole {{{}}}", hole));
        } else if (filling.find("$#") != std::string_view::npos) {
            clock_holes_.push_back({pieces_.size(), hole, parameter_of(reading(hole))});
            pieces_.emplace_back();  // Filled when the number of parameters is known.
            pieces_.emplace_back();
        } else {
            append(filling);
        }
        at_ = end + 1;
    }

    [[nodiscard]] std::string table(std::string_view hole) const {
        std::string name = names_ == nullptr ? std::string{} : names_->fill(hole);
        if (name.empty()) {
            refuse(fmt::format("has the hole {{{}}}, for which no name was chosen", hole));
        }
        return name;
    }

    // A server has one clock, whose parameter is the test's offset.
    [[nodiscard]] ClockReading reading(std::string_view hole) const {
        if (hole == "now_us" || !dialect_.embedded) {
            return ClockReading::now;
        }
        return hole == "lease_us" ? ClockReading::lease : ClockReading::lease_epoch;
    }

    std::size_t parameter_of(ClockReading reading) {
        const auto found = std::find(clocks_.begin(), clocks_.end(), reading);
        const auto index = static_cast<std::size_t>(found - clocks_.begin());
        if (found == clocks_.end()) {
            clocks_.push_back(reading);
        }
        return index;
    }

    [[nodiscard]] std::string clock_text(std::string_view hole, std::size_t number) const {
        std::string text{fill_hole(dialect_, hole)};
        const std::size_t mark = text.find("$#");
        text.replace(mark, 2, placeholder(number));
        return text;
    }

    [[nodiscard]] std::string placeholder(std::size_t number) const {
        return fmt::format("{}{}", dialect_.parameter_mark, number);
    }

    [[nodiscard]] std::size_t highest_parameter() const {
        const auto gap = std::find(seen_.begin(), seen_.end(), false);
        if (gap != seen_.end()) {
            refuse(fmt::format("never uses ${}, so its parameters have a gap",
                               gap - seen_.begin() + 1));
        }
        return seen_.size();
    }

    // Anything but SELECT may write; WITH may, too.
    [[nodiscard]] bool is_select() const {
        constexpr std::string_view word = "SELECT";
        const std::size_t begin = text_.find_first_not_of(" \n\t(");
        return begin != std::string_view::npos && text_.size() - begin >= word.size() &&
               std::equal(word.begin(),
                          word.end(),
                          text_.begin() + static_cast<std::ptrdiff_t>(begin),
                          [](char a, char b) { return a == (b >= 'a' && b <= 'z' ? b - 32 : b); });
    }

    void append(std::string_view piece) {
        if (pieces_.empty()) {
            pieces_.emplace_back();
        }
        pieces_.back() += piece;
    }

    [[noreturn]] void refuse(std::string_view why) const {
        throw InvalidArgument(fmt::format("statement '{}' {}; correct its text", name_, why));
    }

    static constexpr std::size_t parameters_max = 32'000;

    const Dialect& dialect_;
    std::string_view name_;
    std::string_view text_;
    const TableNames* names_;
    std::size_t at_ = 0;
    std::vector<std::string> pieces_;
    std::vector<ClockHole> clock_holes_;
    std::vector<ClockReading> clocks_;
    std::vector<bool> seen_;  // Which parameters occur.
};

}  // namespace

Rendered render(const Dialect& dialect,
                std::string_view name,
                std::string_view text,
                const TableNames* names) {
    return Renderer(dialect, name, text, names).render();
}

}  // namespace holdfast::sql
