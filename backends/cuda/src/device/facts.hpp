// Facts that must be equal for a recorded graph to be valid here.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "device/core.hpp"
#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends::cuda {

/// Environment variables with flags for NVRTC.
inline constexpr std::array<const char*, 2> k_flag_variables{"NVRTC_PREPEND_FLAGS", "NVRTC_APPEND_FLAGS"};

/// Returns the guard facts. A fact that cannot be read has the value cachefmt::k_unknown.
[[nodiscard]] std::vector<cachefmt::Fact> device_facts(const Core& core);

/// Returns "13.0" for 13000.
[[nodiscard]] std::string version_text(int version);
/// Returns "580.159.03" for "/usr/lib/libcuda.so.580.159.03" or the text of /proc/driver/nvidia/version; empty if there
/// is no version.
[[nodiscard]] std::string version_in_library_name(std::string_view path);
[[nodiscard]] std::string version_in_kernel_module_text(std::string_view text);
/// Returns "MIG 1g.18gb" for "NVIDIA H200 MIG 1g.18gb"; "none" for a whole device.
[[nodiscard]] std::string partition_in_name(std::string_view device_name);
[[nodiscard]] Result<std::string> device_name(const Driver& driver, CUdevice device);

} // namespace warmgraph::backends::cuda
