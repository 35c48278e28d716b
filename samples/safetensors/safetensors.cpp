#include "safetensors.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace samples {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t k_max_header = 100'000'000; // bytes, the limit of the reference implementation
constexpr std::size_t k_length_size = 8;

template <class... Args>
[[noreturn]] void raise(SafetensorsFault fault, fmt::format_string<Args...> format, Args&&... args)
{
    throw SafetensorsError(fault, "safetensors: " + fmt::format(format, std::forward<Args>(args)...));
}

std::optional<std::uint64_t> size_of_dtype(std::string_view dtype)
{
    static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 15> k_sizes{{{"BOOL", 1},
                                                                                         {"U8", 1},
                                                                                         {"I8", 1},
                                                                                         {"F8_E5M2", 1},
                                                                                         {"F8_E4M3", 1},
                                                                                         {"U16", 2},
                                                                                         {"I16", 2},
                                                                                         {"F16", 2},
                                                                                         {"BF16", 2},
                                                                                         {"U32", 4},
                                                                                         {"I32", 4},
                                                                                         {"F32", 4},
                                                                                         {"U64", 8},
                                                                                         {"I64", 8},
                                                                                         {"F64", 8}}};
    for (const auto& [name, size] : k_sizes) {
        if (name == dtype) return size;
    }
    return std::nullopt;
}

/// Bytes of a tensor; nullopt when the product overflows 64 bits.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t element)
{
    std::uint64_t bytes = element;
    for (const std::int64_t extent : shape) {
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return std::nullopt;
    }
    return bytes;
}

/// Parses the header's JSON. Repeated names are an error, because readers may differ in which of them they keep.
Json parse_header(std::string_view text)
{
    std::set<std::string> names;
    std::string repeated;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key) {
            if (!names.insert(parsed.get<std::string>()).second) repeated = parsed.get<std::string>();
        }
        return true;
    };
    Json header;
    try {
        header = Json::parse(text, watch);
    } catch (const Json::exception& error) {
        raise(SafetensorsFault::bad_header, "the header is not JSON: {}", error.what());
    }
    if (!header.is_object())
        raise(SafetensorsFault::bad_header, "the header is {}, expected an object", header.type_name());
    if (!repeated.empty()) raise(SafetensorsFault::bad_header, "the header has the name '{}' twice", repeated);
    return header;
}

std::map<std::string, std::string> read_metadata(const Json& object)
{
    std::map<std::string, std::string> metadata;
    if (!object.is_object())
        raise(SafetensorsFault::bad_header, "__metadata__ is {}, expected an object", object.type_name());
    for (const auto& [name, value] : object.items()) {
        if (!value.is_string()) {
            raise(SafetensorsFault::bad_header, "__metadata__ '{}' is {}, expected a string", name, value.type_name());
        }
        metadata.emplace(name, value.get<std::string>());
    }
    return metadata;
}

/// A list of non-negative integers that fit i64.
std::vector<std::int64_t> read_integers(const Json& entry, const std::string& tensor, const char* field)
{
    const auto found = entry.find(field);
    if (found == entry.end() || !found->is_array()) {
        raise(SafetensorsFault::bad_header, "tensor '{}' has no list '{}'", tensor, field);
    }
    std::vector<std::int64_t> numbers;
    for (const Json& number : *found) {
        if (!number.is_number_unsigned() || number.get<std::uint64_t>() > INT64_MAX) {
            raise(SafetensorsFault::bad_header, "tensor '{}': '{}' holds values that are not sizes", tensor, field);
        }
        numbers.push_back(number.get<std::int64_t>());
    }
    return numbers;
}

TensorView read_tensor(const std::string& name, const Json& entry, std::span<const std::byte> data)
{
    if (!entry.is_object())
        raise(SafetensorsFault::bad_header, "tensor '{}' is {}, expected an object", name, entry.type_name());
    const auto dtype = entry.find("dtype");
    if (dtype == entry.end() || !dtype->is_string())
        raise(SafetensorsFault::bad_header, "tensor '{}' has no dtype", name);

    TensorView view{dtype->get<std::string>(), read_integers(entry, name, "shape"), {}};
    const std::vector<std::int64_t> offsets = read_integers(entry, name, "data_offsets");
    if (offsets.size() != 2) {
        raise(SafetensorsFault::bad_header, "tensor '{}' has {} data_offsets, expected 2", name, offsets.size());
    }
    const auto begin = static_cast<std::uint64_t>(offsets[0]);
    const auto end = static_cast<std::uint64_t>(offsets[1]);
    if (begin > end)
        raise(SafetensorsFault::bad_tensor, "tensor '{}' ends at {}, before its begin {}", name, end, begin);
    if (end > data.size()) {
        raise(SafetensorsFault::truncated, "tensor '{}' ends at byte {} of the data, which has {}", name, end,
              data.size());
    }
    const std::optional<std::uint64_t> element = size_of_dtype(view.dtype);
    if (!element) raise(SafetensorsFault::bad_tensor, "tensor '{}' has the unknown dtype '{}'", name, view.dtype);
    const std::optional<std::uint64_t> bytes = bytes_of(view.shape, *element);
    if (!bytes || *bytes != end - begin) {
        raise(SafetensorsFault::bad_tensor, "tensor '{}' is {} [{}] but its offsets span {} bytes", name, view.dtype,
              fmt::join(view.shape, ", "), end - begin);
    }
    view.bytes = data.subspan(begin, end - begin);
    return view;
}

} // namespace

Safetensors Safetensors::read(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
    if (size < 0 || std::filesystem::is_directory(path)) {
        raise(SafetensorsFault::unreadable, "cannot open '{}'; name the weights with --weights", path.string());
    }
    std::vector<std::byte> content(static_cast<std::size_t>(size));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(content.data()), size);
    if (!file) raise(SafetensorsFault::unreadable, "cannot read {} bytes of '{}'", size, path.string());
    return parse(std::move(content));
}

Safetensors Safetensors::parse(std::vector<std::byte> content)
{
    if (content.size() < k_length_size) {
        raise(SafetensorsFault::truncated, "{} bytes, expected at least {}", content.size(), k_length_size);
    }
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < k_length_size; ++i) {
        length |= std::to_integer<std::uint64_t>(content[i]) << (8 * i);
    }
    if (length > k_max_header) {
        raise(SafetensorsFault::header_too_large, "the header has {} bytes, expected at most {}", length, k_max_header);
    }
    if (length > content.size() - k_length_size) {
        raise(SafetensorsFault::truncated, "a header of {} bytes in a file of {}", length, content.size());
    }
    Safetensors file;
    file.m_content = std::move(content);
    const std::span<const std::byte> body = std::span<const std::byte>{file.m_content}.subspan(k_length_size);
    const std::span<const std::byte> header = body.first(length);
    file.read_header({reinterpret_cast<const char*>(header.data()), header.size()}, body.subspan(length));
    return file;
}

void Safetensors::read_header(std::string_view header, std::span<const std::byte> data)
{
    const Json json = parse_header(header);
    for (const auto& [name, entry] : json.items()) {
        if (name == "__metadata__") {
            m_metadata = read_metadata(entry);
        } else {
            m_tensors.emplace(name, read_tensor(name, entry, data));
        }
    }
    check_layout(data);
}

void Safetensors::check_layout(std::span<const std::byte> data) const
{
    std::vector<std::pair<std::size_t, std::size_t>> ranges; // begin, end
    for (const auto& [name, tensor] : m_tensors) {
        const auto begin = static_cast<std::size_t>(tensor.bytes.data() - data.data());
        ranges.emplace_back(begin, begin + tensor.bytes.size());
    }
    std::sort(ranges.begin(), ranges.end());
    std::size_t covered = 0;
    for (const auto& [begin, end] : ranges) {
        if (begin != covered)
            raise(SafetensorsFault::bad_layout, "a tensor begins at byte {}, expected {}", begin, covered);
        covered = end;
    }
    if (covered != data.size()) {
        raise(SafetensorsFault::bad_layout, "tensors cover {} of {} bytes of data", covered, data.size());
    }
}

const TensorView& Safetensors::f32(const std::string& name, const std::vector<std::int64_t>& shape) const
{
    const auto found = m_tensors.find(name);
    if (found == m_tensors.end()) raise(SafetensorsFault::missing_tensor, "there is no tensor '{}'", name);
    const TensorView& tensor = found->second;
    if (tensor.dtype != "F32" || tensor.shape != shape) {
        raise(SafetensorsFault::missing_tensor, "tensor '{}' is {} [{}], expected F32 [{}]", name, tensor.dtype,
              fmt::join(tensor.shape, ", "), fmt::join(shape, ", "));
    }
    return tensor;
}

} // namespace samples
