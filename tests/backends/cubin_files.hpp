// The cubins under tests/backends/cubin, and functions that read them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cubin/elf.hpp"
#include "matchers.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::test {

/// The bytes of a file such as "several.cubin".
inline Bytes cubin_file(const std::string& name)
{
    std::ifstream file(std::filesystem::path(WARMGRAPH_CUBINS) / name, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_FALSE(text.empty()) << name << " is missing";
    const ByteView bytes = as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

inline std::optional<std::uint32_t> section_number(const backends::cuda::elf::File& file, std::string_view name)
{
    for (std::uint32_t i = 0; i < file.sections().size(); ++i)
        if (file.name(file.sections()[i]) == name) return i;
    return std::nullopt;
}

inline std::optional<std::uint32_t> symbol_number(const backends::cuda::elf::File& file, std::string_view name)
{
    for (std::uint32_t i = 0; i < file.symbols().size(); ++i)
        if (file.name(file.symbols()[i]) == name) return i;
    return std::nullopt;
}

inline std::vector<std::string> section_names(const backends::cuda::elf::File& file)
{
    std::vector<std::string> names;
    for (const auto& section : file.sections())
        if (section.type != backends::cuda::elf::k_null) names.emplace_back(file.name(section));
    return names;
}

} // namespace warmgraph::test
