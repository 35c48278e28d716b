// The shape profile: the sizes that functions were called with, and recording them ahead (docs/profile.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/arguments.hpp"

namespace warmgraph {

/// The calls of one shape.
struct ProfiledShape {
    std::map<std::string, std::vector<std::int64_t>>
        sizes{};                                 ///< sizes of inputs and outputs in elements, as the caller gave them
    std::map<std::string, std::string> values{}; ///< values of Spec::values, as text: "1", "0.5"
    std::map<std::string, std::vector<std::int64_t>> ran{}; ///< sizes that the function saw, for padded arguments
    std::uint64_t calls = 0;
};

/// Makes the arguments of a call: every input and output with these sizes, every scalar, and the values. Their memory
/// must stay where it is until the next call of this function, or until Cache::record_profile returns.
using MakeArguments = std::function<std::vector<Arg>(const ProfiledShape&)>;

/// The result of Cache::record_profile.
struct ProfileRecording {
    std::size_t shapes = 0;              ///< number of shapes that the profile asks for
    std::size_t recorded = 0;            ///< number of these shapes that missed and were recorded
    std::size_t replayed = 0;            ///< number of these shapes that had an entry
    std::vector<std::string> problems{}; ///< why each other shape has no entry now
    std::string why_not{};               ///< why nothing was tried; empty if something was tried
};

} // namespace warmgraph
