// Finds where a file of this build is now.
#pragma once

#include <filesystem>

namespace llm {

/// If the tests were taken to another machine, the file is beside this program. Otherwise it is where it was built.
[[nodiscard]] inline std::filesystem::path carried(const std::filesystem::path& built)
{
    const auto beside = std::filesystem::read_symlink("/proc/self/exe").parent_path() / built.filename();
    return std::filesystem::exists(beside) ? beside : built;
}

} // namespace llm
