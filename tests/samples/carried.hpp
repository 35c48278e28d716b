// The present place of a file of this build.
#pragma once

#include <filesystem>

namespace llm {

/// Beside this program when both were carried to another machine; otherwise the place where it was built.
[[nodiscard]] inline std::filesystem::path carried(const std::filesystem::path& built)
{
    const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / built.filename();
    return std::filesystem::exists(beside) ? beside : built;
}

} // namespace llm
