// Facts about this process and its binaries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace warmgraph {

/// Returns the GNU build id (hex) of the loaded ELF object that contains `code`, from its PT_NOTE segment (System V
/// gABI "Note Section", NT_GNU_BUILD_ID). nullopt if the object has no build id.
[[nodiscard]] std::optional<std::string> build_id_of(const void* code) noexcept;

/// The build id of a file. nullopt if it cannot be read, is not an ELF object of this machine's kind, or has no build
/// id. The path may be untrusted: only a regular file is read, and at most 1 MiB of it.
[[nodiscard]] std::optional<std::string> build_id_of_file(const std::string& path);

/// The path of the ELF object that holds `code`, for messages only.
[[nodiscard]] std::string binary_of(const void* code);

[[nodiscard]] std::string host_name();
[[nodiscard]] std::string boot_id();     ///< /proc/sys/kernel/random/boot_id, "unknown" when unreadable
[[nodiscard]] std::string random_uuid(); ///< RFC 4122 version 4, from the system (getentropy)
[[nodiscard]] std::optional<std::string> environment(const char* name);

/// Moves a descriptor 0, 1 or 2 to a higher number. Negative numbers, and errno, stay unchanged. Reason: in a program
/// that closed its standard output, the next opened file would get number 1 and receive the program's prints.
[[nodiscard]] int above_standard_streams(int descriptor) noexcept;

/// The start time of a process in kernel ticks since boot (proc(5), starttime). Together with the process number it
/// identifies the process, because numbers are reused. 0: not known.
[[nodiscard]] std::uint64_t start_of_process(pid_t process) noexcept;
/// True if this process still runs; a zombie does not. With `start` 0 (not known), any process of that number counts.
[[nodiscard]] bool is_running(pid_t process, std::uint64_t start) noexcept;

/// A snapshot of this process's readable mappings. Reading takes 0.1 ms or more; lookups are cheap.
class HostMappings {
public:
    HostMappings() = default; ///< no mappings
    /// Parses the format of /proc/self/maps (proc(5)). Skips malformed lines.
    explicit HostMappings(std::string_view text);
    /// Reads /proc/self/maps. The result is empty if the file cannot be read.
    [[nodiscard]] static HostMappings read();
    /// The name of the mapping that holds `address`: "[heap]", "/usr/lib/libc.so.6", or "" if it has no name. nullopt:
    /// no readable mapping holds the address.
    [[nodiscard]] std::optional<std::string> at(std::uint64_t address) const;

private:
    struct Mapping {
        std::uint64_t start = 0, end = 0;
        std::string name;
    };
    std::vector<Mapping> m_mappings; ///< sorted by address
};

} // namespace warmgraph
