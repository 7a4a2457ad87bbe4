#include <holdfast/flow/registry.hpp>

#include <fmt/core.h>

#include <holdfast/base/error.hpp>

namespace holdfast::flow {
namespace {

constexpr std::size_t name_bytes_max = 256;

void check_name(std::string_view name, std::string_view what) {
    if (name.empty() || name.size() > name_bytes_max) {
        throw InvalidArgument(fmt::format("the stored name of a {} has 1 to {} bytes; '{}' has {}",
                                          what,
                                          name_bytes_max,
                                          name.substr(0, 40),
                                          name.size()));
    }
}

}  // namespace

Registry& Registry::add_activity(std::string_view name,
                                 detail::ActivityFunction run,
                                 bool transactional) {
    check_name(name, "activity");
    const bool added =
        activities_.emplace(name, Activity{.run = run, .transactional = transactional}).second;
    if (!added) {
        throw InvalidArgument(fmt::format("the activity '{}' is registered twice", name));
    }
    return *this;
}

Registry& Registry::add_workflow(std::string_view name,
                                 std::string_view version,
                                 detail::Program program) {
    check_name(name, "workflow");
    const Version parsed = Version::parse(version);
    Versions& versions = workflows_[std::string(name)];
    if (!versions.programs.empty() && versions.programs.rbegin()->first >= parsed) {
        throw InvalidArgument(fmt::format(
            "version {} of the workflow '{}' is not above {}, which is registered already",
            version,
            name,
            versions.programs.rbegin()->first.text()));
    }
    versions.programs.emplace(parsed, program);
    return *this;
}

Registry& Registry::pin(std::string_view name, std::string_view version) {
    const auto found = workflows_.find(name);
    const Version parsed = Version::parse(version);
    if (found == workflows_.end() || !found->second.programs.contains(parsed)) {
        throw InvalidArgument(
            fmt::format("there is no version {} of a workflow '{}' to pin", version, name));
    }
    found->second.pinned = parsed;
    return *this;
}

Registry& Registry::on_nondeterminism(NondeterminismPolicy policy) {
    nondeterminism_ = policy;
    return *this;
}

Registry& Registry::merge(const Registry& other) {
    for (const auto& [name, activity] : other.activities_) {
        add_activity(name, activity.run, activity.transactional);
    }
    for (const auto& [name, versions] : other.workflows_) {
        if (!workflows_.emplace(name, versions).second) {
            throw InvalidArgument(fmt::format("both registries have a workflow '{}'", name));
        }
    }
    return *this;
}

const Registry::Activity* Registry::find_activity(std::string_view name) const {
    const auto found = activities_.find(name);
    return found == activities_.end() ? nullptr : &found->second;
}

std::optional<detail::Program> Registry::find_workflow(std::string_view name,
                                                       std::string_view version) const {
    const auto found = workflows_.find(name);
    if (found == workflows_.end()) {
        return std::nullopt;
    }
    // Compared as text: a text that is not a version is not found.
    for (const auto& [known, program] : found->second.programs) {
        if (known.text() == version) {
            return program;
        }
    }
    return std::nullopt;
}

std::optional<std::string> Registry::version_for_start(std::string_view name) const {
    const auto found = workflows_.find(name);
    if (found == workflows_.end()) {
        return std::nullopt;
    }
    const Versions& versions = found->second;
    return versions.pinned.value_or(versions.programs.rbegin()->first).text();
}

bool Registry::has_workflow(std::string_view name) const {
    return workflows_.contains(name);
}

std::vector<std::string> Registry::versions(std::string_view name) const {
    std::vector<std::string> result;
    const auto found = workflows_.find(name);
    if (found != workflows_.end()) {
        for (const auto& [version, program] : found->second.programs) {
            result.push_back(version.text());
        }
    }
    return result;
}

std::vector<std::string> Registry::workflows() const {
    std::vector<std::string> names;
    names.reserve(workflows_.size());
    for (const auto& [name, versions] : workflows_) {
        names.push_back(name);
    }
    return names;
}

std::vector<std::string> Registry::activities() const {
    std::vector<std::string> names;
    names.reserve(activities_.size());
    for (const auto& [name, activity] : activities_) {
        names.push_back(name);
    }
    return names;
}

}  // namespace holdfast::flow
