#include "cli/command_parser.hpp"

#include <algorithm>
#include <utility>

#include "version.hpp"
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <holdfast/base/error.hpp>
#include <holdfast/base/exit_code.hpp>

namespace holdfast::app {
namespace {

bool hidden(const CLI::App& command) {
    return command.get_group().empty();
}

std::vector<std::string> words_below(const CLI::App& command) {
    std::vector<std::string> words;
    for (const CLI::App* below : command.get_subcommands(nullptr)) {
        if (!hidden(*below)) {
            words.push_back(below->get_name());
        }
    }
    return words;
}

// "holdfast schema apply"
std::string path_of(const CLI::App& command) {
    const CLI::App* above = command.get_parent();
    return above == nullptr ? command.get_name() : path_of(*above) + " " + command.get_name();
}

}  // namespace

CommandParser::CommandParser() {
    root_.require_subcommand(1);
    root_.fallthrough();
    root_.footer(exit_codes_help);
    root_.set_version_flag("--version", version_text(), "Version of the program");
    root_.set_help_flag("-h,--help", "This help");
    add_globals();
}

void CommandParser::add_globals() {
    add_setting(root_,
                "--db",
                "db",
                "Database URL: sqlite:FILE, postgres://USER@HOST/NAME or dsql://ENDPOINT "
                "(HOLDFAST_DB)");
    add_setting(root_,
                "--log-level",
                "log.level",
                "Lowest level that is logged: debug, info, warn, error or off");
    takes_choice(settings_.back().option, {"debug", "info", "warn", "error", "off"});
    add_setting(root_, "--log-format", "log.format", "Format of log lines: text or json");
    takes_choice(settings_.back().option, {"text", "json"});
    CLI::Option* file = root_.add_option("--config", request_.config_file, "Settings file, YAML");
    hints_[file].takes = Takes::file;
    root_.add_flag("--json", request_.json, "JSON output instead of text");
    root_.add_flag("-q,--quiet", request_.quiet, "No progress output");
}

CLI::App* CommandParser::add(CLI::App& above, const char* name, const char* help, Command command) {
    CLI::App* added = above.add_subcommand(name, help);
    added->footer(std::string(everywhere_help) + exit_codes_help);
    if (command) {
        commands_.emplace(added, std::move(command));
    }
    return added;
}

CLI::Option* CommandParser::add_setting(
    CLI::App& to, const char* names, const char* key, const char* help, Takes takes) {
    // Nothing is kept here: Config reads the results, and says where each value came from.
    CLI::Option* option =
        to.add_option_function<std::string>(names, [](const std::string&) {}, help);
    hints_[option].takes = takes;
    settings_.push_back({option, key});
    return option;
}

void CommandParser::takes_file(CLI::Option* option) {
    hints_[option].takes = Takes::file;
}

void CommandParser::takes_folder(CLI::Option* option) {
    hints_[option].takes = Takes::folder;
}

void CommandParser::takes_choice(CLI::Option* option, std::vector<std::string> choices) {
    hints_[option] = {
        .names = {}, .help = {}, .takes = Takes::choice, .choices = std::move(choices)};
}

void CommandParser::explain_words(const CLI::App& command, std::string usage) {
    words_usage_.emplace(&command, std::move(usage));
}

std::variant<Request, Answer> CommandParser::parse(std::vector<std::string> words) {
    if (words.empty()) {
        throw InvalidArgument(fmt::format("no command given; choose from {}; see holdfast --help",
                                          fmt::join(words_below(root_), ", ")));
    }
    try {
        std::ranges::reverse(words);  // The order that CLI11 expects.
        root_.parse(std::move(words));
    } catch (const CLI::CallForVersion&) {
        return Answer{version_text() + "\n"};
    } catch (const CLI::CallForHelp&) {
        return Answer{root_.help()};
    } catch (const CLI::ParseError& error) {
        refuse(error);
    }
    for (const Flag& flag : settings_) {
        for (const std::string& value : flag.option->results()) {
            request_.flags.push_back({flag.key, "--" + flag.option->get_lnames()[0], value});
        }
    }
    request_.command = commands_.at(&deepest());
    return request_;
}

const CLI::App& CommandParser::deepest() const {
    const CLI::App* command = &root_;
    while (!command->get_subcommands().empty()) {
        command = command->get_subcommands().front();
    }
    return *command;
}

void CommandParser::refuse(const CLI::ParseError& error) const {
    const std::vector<std::string> unknown = root_.remaining(true);
    if (!unknown.empty()) {
        refuse_word(unknown.front());
    }
    const CLI::App& command = deepest();
    const std::vector<std::string> words = words_below(command);
    if (!words.empty() && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
        throw InvalidArgument(
            fmt::format("{} needs a verb: {}", command.get_name(), fmt::join(words, ", ")));
    }
    throw InvalidArgument(fmt::format("{}; see {} --help", error.what(), path_of(command)));
}

void CommandParser::refuse_word(const std::string& word) const {
    const CLI::App& command = deepest();
    const CommandNode node = describe(command);
    const bool option = word.starts_with('-');
    std::vector<std::string> candidates = words_below(command);
    if (option) {
        candidates.clear();
        for (const OptionNode& known : node.options) {
            candidates.insert(candidates.end(), known.names.begin(), known.names.end());
        }
    }
    const std::string path = path_of(command);
    if (const auto usage = words_usage_.find(&command); !option && usage != words_usage_.end()) {
        throw InvalidArgument(fmt::format("unknown word '{}'; {}", word, usage->second));
    }
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = closest(name, candidates);
    throw InvalidArgument(
        fmt::format("unknown {} '{}'{}; see {} --help",
                    option ? "option" : "word",
                    name,
                    nearest.empty() ? std::string{} : fmt::format(" (did you mean {}?)", nearest),
                    path));
}

OptionNode CommandParser::describe(const CLI::Option& option) const {
    const auto hint = hints_.find(&option);
    OptionNode node = hint == hints_.end() ? OptionNode{} : hint->second;
    for (const std::string& name : option.get_lnames()) {
        node.names.push_back("--" + name);
    }
    for (const std::string& name : option.get_snames()) {
        node.names.push_back("-" + name);
    }
    node.help = option.get_description();
    if (option.get_items_expected_max() == 0) {
        node.takes = Takes::nothing;
    }
    return node;
}

CommandNode CommandParser::describe(const CLI::App& command) const {
    CommandNode node{.name = command.get_name(),
                     .help = command.get_description(),
                     .options = {},
                     .arguments = {},
                     .commands = {}};
    for (const CLI::App* at = &command; at != nullptr; at = at->get_parent()) {
        for (const CLI::Option* option : at->get_options()) {
            // A parent's --help is hidden behind the command's own, and some are never shown.
            if ((at != &command && option == at->get_help_ptr()) || option->get_group().empty()) {
                continue;
            }
            (option->get_positional() ? node.arguments : node.options).push_back(describe(*option));
        }
    }
    for (const CLI::App* below : command.get_subcommands(nullptr)) {
        if (!hidden(*below)) {
            node.commands.push_back(describe(*below));
        }
    }
    return node;
}

std::variant<Request, Answer> keep_alive(std::shared_ptr<CommandParser> tree,
                                         std::variant<Request, Answer> parsed) {
    if (auto* request = std::get_if<Request>(&parsed)) {
        request->command = [tree = std::move(tree), command = std::move(request->command)](
                               const Context& context) { return command(context); };
    }
    return parsed;
}

}  // namespace holdfast::app
