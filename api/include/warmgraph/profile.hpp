// The shape profile: with which sizes functions were called, and what is recorded of it ahead (docs/profile.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/arguments.hpp"

namespace warmgraph {

/// Calls of one shape.
struct ProfiledShape {
    std::map<std::string, std::vector<std::int64_t>>
        sizes{};                                            ///< of inputs and outputs, in elements, as they were given
    std::map<std::string, std::string> values{};            ///< of Spec::values, as text: "1", "0.5"
    std::map<std::string, std::vector<std::int64_t>> ran{}; ///< of those that were padded: what the function saw
    std::uint64_t calls = 0;
};

/// Makes a call's arguments: every input and output of these sizes, every scalar, the values. What they refer to stays where
/// it is until the next is asked for, or Cache::record_profile returns.
using MakeArguments = std::function<std::vector<Arg>(const ProfiledShape&)>;

/// What Cache::record_profile did.
struct ProfileRecording {
    std::size_t shapes = 0;              ///< that the profile asks for
    std::size_t recorded = 0;            ///< that missed, and were recorded
    std::size_t replayed = 0;            ///< that were there
    std::vector<std::string> problems{}; ///< of shapes that are neither: why
    std::string why_not{};               ///< nothing was tried; empty otherwise
};

} // namespace warmgraph
