#include "states.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace serve {
namespace {

namespace wg = warmgraph;
using Json = nlohmann::json;

constexpr int k_version = 1; // version of PyTorch's metadata
constexpr unsigned k_bits_of_digit = 6, k_bits_of_byte = 8;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args)
{
    throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

std::vector<std::byte> from_base64(std::string_view text)
{
    constexpr std::string_view k_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::vector<std::byte> bytes;
    std::uint32_t bits = 0;
    unsigned count = 0;
    while (text.ends_with('=')) text.remove_suffix(1);
    for (const char digit : text) {
        const std::size_t value = k_digits.find(digit);
        if (value == std::string_view::npos) refuse("the entry's metadata has contents that are not base64");
        bits = (bits << k_bits_of_digit) | static_cast<std::uint32_t>(value);
        count += k_bits_of_digit;
        if (count < k_bits_of_byte) continue;
        count -= k_bits_of_byte;
        bytes.push_back(static_cast<std::byte>(bits >> count & 0xffU));
    }
    return bytes;
}

/// Parses a row [name, offset, type, sizes, strides].
Part part_of(const Json& row)
{
    const auto type = row.at(2).get<std::string>();
    const auto dtype = wg::parse_dtype(type);
    if (!dtype) refuse("the entry's metadata has the unknown type '{}'", type);
    Part part{row.at(0), row.at(1), *dtype, row.at(3)};
    std::int64_t step = 1;
    const auto strides = row.at(4).get<std::vector<std::int64_t>>();
    if (strides.size() != part.sizes.size()) refuse("'{}' has {} strides", part.name, strides.size());
    for (std::size_t d = part.sizes.size(); d-- > 0;) {
        if (part.sizes[d] > 1 && strides[d] != step)
            refuse("'{}' was recorded with strides [{}], but this program gives only contiguous tensors", part.name,
                   fmt::join(strides, ", "));
        step *= part.sizes[d];
    }
    return part;
}

/// The element type by the library's name; a type that the library lacks becomes bytes, as in the entry.
std::optional<wg::DType> dtype_of(std::string name)
{
    if (name.starts_with("F8_")) return wg::DType::u8;
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return wg::parse_dtype(name);
}

/// True if the tensor has the part's shape. The library gives a state without dimensions one dimension of one element.
bool has_shape(const Part& part, const samples::TensorView& tensor)
{
    const bool is_one = tensor.shape.empty() && part.sizes == std::vector<std::int64_t>{1};
    return is_one || tensor.shape == part.sizes;
}

void check_like(const Part& part, const samples::TensorView& tensor)
{
    if (dtype_of(tensor.dtype) == part.dtype && has_shape(part, tensor)) return;
    refuse("'{}' is {} [{}] in the file, expected {} [{}]", part.name, tensor.dtype, fmt::join(tensor.shape, ", "),
           wg::to_string(part.dtype), fmt::join(part.sizes, ", "));
}

/// Whether the given tensors cover all bytes of this part.
bool covers(const std::vector<Part>& given, const Part& part)
{
    std::uint64_t at = part.offset;
    for (const Part& one : given) // sorted by offset
        if (one.offset <= at) at = std::max(at, one.offset + one.bytes());
    return at >= part.offset + part.bytes();
}

} // namespace

std::uint64_t Part::bytes() const
{
    std::uint64_t count = wg::size_of(dtype);
    for (const std::int64_t size : sizes) count *= static_cast<std::uint64_t>(size);
    return count;
}

EntryMetadata EntryMetadata::parse(const std::string& text)
{
    EntryMetadata result;
    try {
        const Json json = Json::parse(text);
        if (json.at("warmgraph.torch") != k_version)
            refuse("the entry's metadata has version {}, expected {}: record the function again",
                   json.at("warmgraph.torch").dump(), k_version);
        result.written = json.at("written").get<std::set<std::string>>();
        const Json parts = json.value("aliases", Json::object()), contents = json.value("contents", Json::object());
        for (const auto& [state, rows] : parts.items())
            for (const Json& row : rows) result.parts[state].push_back(part_of(row));
        for (const auto& [state, data] : contents.items())
            result.contents.emplace(state, from_base64(data.get<std::string>()));
    } catch (const Json::exception& error) {
        refuse("the entry's metadata cannot be read ({}): record the function again", error.what());
    }
    return result;
}

States::States(wg::Device device, const samples::Safetensors& file) : m_device(std::move(device)), m_file(file) {}

wg::MemoryRef States::of(const wg::StateDecl& state, const EntryMetadata& metadata)
{
    auto known = m_buffers.find(state.name);
    if (known == m_buffers.end())
        known = m_buffers.emplace(state.name, m_device.upload<std::byte>(contents_of(state, metadata))).first;
    if (known->second.size() != state.memory.size)
        refuse("two functions have the state '{}', one of {} bytes and one of {} bytes", state.name,
               known->second.size(), state.memory.size);
    return known->second;
}

std::vector<std::byte> States::contents_of(const wg::StateDecl& state, const EntryMetadata& metadata) const
{
    const auto listed = metadata.parts.find(state.name);
    auto parts =
        listed != metadata.parts.end() ? listed->second : std::vector<Part>{{state.name, 0, state.dtype, state.sizes}};
    std::ranges::stable_sort(parts, {}, &Part::offset);
    std::vector<std::byte> bytes(state.memory.size);
    const auto carried = metadata.contents.find(state.name);
    if (carried != metadata.contents.end()) bytes = carried->second;
    std::vector<Part> given;
    for (const Part& part : parts) {
        if (part.offset > state.memory.size || part.bytes() > state.memory.size - part.offset ||
            bytes.size() != state.memory.size)
            refuse("the entry's metadata does not cover the {1} bytes of '{0}' exactly", state.name, state.memory.size);
        const auto tensor = m_file.tensors().find(part.name);
        if (tensor == m_file.tensors().end()) continue;
        check_like(part, tensor->second);
        std::ranges::copy(tensor->second.bytes, bytes.begin() + static_cast<std::ptrdiff_t>(part.offset));
        given.push_back(part);
    }
    if (carried != metadata.contents.end() || metadata.written.contains(state.name)) return bytes;
    for (const Part& part : parts)
        if (!covers(given, part)) refuse("the file has no tensor '{}', and the entry does not contain it", part.name);
    return bytes;
}

} // namespace serve
