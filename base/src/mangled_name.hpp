// Reads the beginning of a mangled name (Itanium C++ ABI) without the demangler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace warmgraph {

/// Returns "cutlass::device_kernel<...>": the namespaces, the name, and its first two template arguments if they are
/// numbers or builtin types, in the demangler's spelling. nullopt for names of another form. Takes linear time.
[[nodiscard]] std::optional<std::string> beginning_of_mangled(std::string_view mangled);

} // namespace warmgraph
