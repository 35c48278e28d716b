// Facts about this process and the binaries it is made of.
#pragma once

#include <optional>
#include <string>

namespace warmgraph {

/// GNU build id (hex) of the ELF object that holds `code`, read from its loaded PT_NOTE segment
/// (System V gABI "Note Section", NT_GNU_BUILD_ID). nullopt when it has none.
[[nodiscard]] std::optional<std::string> build_id_of(const void* code) noexcept;

/// Path of that object, for messages only.
[[nodiscard]] std::string binary_of(const void* code);

[[nodiscard]] std::string host_name();
[[nodiscard]] std::string boot_id();     ///< /proc/sys/kernel/random/boot_id, "unknown" when unreadable
[[nodiscard]] std::string random_uuid(); ///< RFC 4122 version 4, from the system (getentropy)
[[nodiscard]] std::optional<std::string> environment(const char* name);

} // namespace warmgraph
