// Facts about this process and the binaries it is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace warmgraph {

/// GNU build id (hex) of the ELF object that holds `code`, read from its loaded PT_NOTE segment
/// (System V gABI "Note Section", NT_GNU_BUILD_ID). nullopt when it has none.
[[nodiscard]] std::optional<std::string> build_id_of(const void* code) noexcept;

/// The same of a file: nullopt where it cannot be read, is no ELF object of this machine's kind, or has none. The path may
/// come from anywhere: what is no regular file is not read, and of a file at most 1 MiB.
[[nodiscard]] std::optional<std::string> build_id_of_file(const std::string& path);

/// Path of that object, for messages only.
[[nodiscard]] std::string binary_of(const void* code);

[[nodiscard]] std::string host_name();
[[nodiscard]] std::string boot_id();     ///< /proc/sys/kernel/random/boot_id, "unknown" when unreadable
[[nodiscard]] std::string random_uuid(); ///< RFC 4122 version 4, from the system (getentropy)
[[nodiscard]] std::optional<std::string> environment(const char* name);

/// The same open file under a number that no standard stream has; negative numbers stay as they are, and so does errno. A
/// program that closed its standard output gets number 1 for the next file that it opens, and prints into that file.
[[nodiscard]] int above_standard_streams(int descriptor) noexcept;

/// When a process began, in the kernel's ticks since the machine did (proc(5), starttime). Together with its number it means
/// that process and no later one of the same number. 0: not known.
[[nodiscard]] std::uint64_t start_of_process(pid_t process) noexcept;
/// Does this very process still run? One that has died and that its parent has not waited for does not. `start` 0: not known,
/// then any process of that number is taken for it.
[[nodiscard]] bool is_running(pid_t process, std::uint64_t start) noexcept;

/// The readable mappings of this process, as they were when they were read: made once (0.1 ms and more), asked often.
class HostMappings {
public:
    HostMappings() = default; ///< none
    /// In the form of /proc/self/maps (proc(5)). Lines that are not of it are left out.
    explicit HostMappings(std::string_view text);
    /// Empty where /proc/self/maps cannot be read.
    [[nodiscard]] static HostMappings read();
    /// The name of the mapping around `address`: "[heap]", "/usr/lib/libc.so.6", "" where it has none. nullopt: nothing
    /// readable lies there.
    [[nodiscard]] std::optional<std::string> at(std::uint64_t address) const;

private:
    struct Mapping {
        std::uint64_t start = 0, end = 0;
        std::string name;
    };
    std::vector<Mapping> m_mappings; ///< by address
};

} // namespace warmgraph
