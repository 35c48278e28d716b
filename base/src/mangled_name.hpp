// The beginning of a mangled name (Itanium C++ ABI), read without the demangler.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace warmgraph {

/// "cutlass::device_kernel<...>": the namespaces, the name, and its first two template arguments as far as they are numbers
/// and builtin types, spelled as the demangler spells them. nullopt for a name of another form. Linear in its length.
[[nodiscard]] std::optional<std::string> beginning_of_mangled(std::string_view mangled);

} // namespace warmgraph
