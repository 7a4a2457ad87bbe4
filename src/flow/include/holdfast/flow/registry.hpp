// Which code this process has: workflows by name and version, activities by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <holdfast/flow/activity.hpp>
#include <holdfast/flow_engine/context.hpp>
#include <holdfast/flow_engine/ids.hpp>

namespace holdfast::flow {

// What happens to an instance whose code does not do what its history says.
enum class NondeterminismPolicy : std::uint8_t {
    block,  // Its turn is not committed. It waits for a build that fits its history.
    fail,   // It fails at once.
};

// A value; copy and extend it. Registering a name (and version) twice, or a version that is not
// higher than the ones before, is InvalidArgument.
class Registry {
public:
    template <auto F>
    Registry& activity() {
        using Invoke = detail::Invoke<decltype(F)>;
        return add_activity(NameOf<F>::value, &Invoke::template call<F>, Invoke::transactional);
    }
    template <auto W>
    Registry& workflow(std::string_view version = "1.0.0") {
        return add_workflow(NameOf<W>::value, version, &detail::run_program<W>);
    }
    // New executions of `name` take this version, not the highest. Unknown: InvalidArgument.
    Registry& pin(std::string_view name, std::string_view version);
    // By default `block`.
    Registry& on_nondeterminism(NondeterminismPolicy policy);
    [[nodiscard]] NondeterminismPolicy nondeterminism_policy() const noexcept {
        return nondeterminism_;
    }
    // Adds what the other has; a name that both have is InvalidArgument.
    Registry& merge(const Registry& other);

    struct Activity {
        detail::ActivityFunction run = nullptr;
        bool transactional = false;
    };
    [[nodiscard]] const Activity* find_activity(std::string_view name) const;
    // The exact version, which is what a running execution needs.
    [[nodiscard]] std::optional<detail::Program> find_workflow(std::string_view name,
                                                               std::string_view version) const;
    // The version a new execution takes. Empty: no such workflow.
    [[nodiscard]] std::optional<std::string> version_for_start(std::string_view name) const;
    [[nodiscard]] bool has_workflow(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> versions(std::string_view name) const;
    [[nodiscard]] std::vector<std::string> workflows() const;
    [[nodiscard]] std::vector<std::string> activities() const;

private:
    Registry& add_activity(std::string_view name, detail::ActivityFunction run, bool transactional);
    Registry& add_workflow(std::string_view name,
                           std::string_view version,
                           detail::Program program);

    struct Versions {
        std::map<Version, detail::Program> programs;
        std::optional<Version> pinned;
    };
    std::map<std::string, Activity, std::less<>> activities_;
    std::map<std::string, Versions, std::less<>> workflows_;
    NondeterminismPolicy nondeterminism_ = NondeterminismPolicy::block;
};

}  // namespace holdfast::flow
