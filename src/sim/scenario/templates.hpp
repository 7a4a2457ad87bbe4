// What keeps scenario files short: includes, variables, defaults and replicas.
#pragma once

#include <functional>
#include <string>

#include "scenario/document.hpp"

namespace holdfast::sim {

using ReadFile = std::function<std::string(const std::string& path)>;

// No fleet is larger: a wrong number must not become a list of that length.
inline constexpr int services_max = 10'000;

// Puts the files that `include` names below the document. What stands in the document wins.
void include_files(Node& root, const std::string& name, const ReadFile& read);

// Puts the lines of the files that `traceFile` names in its place, as `trace`. `path` names the
// node in messages.
void load_traces(Node& node,
                 const std::string& name,
                 const ReadFile& read,
                 const std::string& path = {});

// Takes `defaults` and `vars` out, and makes of `services` a list with one entry per process:
// `replicas` copies, {i} or {i:02} in their names, and `startDelay: {every: 50ms}` counted through
// the whole fleet.
void expand_services(Node& root);

}  // namespace holdfast::sim
