// Byte vectors, views, and little-endian fields (every warmgraph format is little-endian).
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace warmgraph {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

[[nodiscard]] inline ByteView as_bytes(std::string_view text) noexcept
{
    return std::as_bytes(std::span{text.data(), text.size()});
}

[[nodiscard]] inline std::string_view as_text(ByteView bytes) noexcept
{
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads a little-endian field. REQUIRES: `bytes.size() >= offset + sizeof(T)`.
template <class T>
    requires std::is_trivially_copyable_v<T>
[[nodiscard]] T load(ByteView bytes, std::size_t offset = 0) noexcept
{
    T value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

template <class T>
    requires std::is_trivially_copyable_v<T>
void append(Bytes& bytes, const T& value)
{
    const auto view = std::as_bytes(std::span{&value, 1});
    bytes.insert(bytes.end(), view.begin(), view.end());
}

inline void append(Bytes& bytes, ByteView more) { bytes.insert(bytes.end(), more.begin(), more.end()); }

} // namespace warmgraph
