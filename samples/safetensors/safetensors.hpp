// Reads safetensors: u64 length (little endian), a JSON header of this length, the tensors' bytes. Format:
// https://github.com/huggingface/safetensors (Format). Files are not trusted: every number is checked against the
// file's size before use, and no memory is allocated by a number in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace samples {

enum class SafetensorsFault : std::uint8_t {
    unreadable,       ///< the file cannot be opened or read
    truncated,        ///< shorter than its header says
    header_too_large, ///< over 100 MB, the format's limit
    bad_header,       ///< not the JSON that the format requires
    bad_tensor,       ///< a tensor's dtype, shape and offsets do not fit together
    bad_layout,       ///< tensors overlap, leave holes, or do not cover the data
    missing_tensor,   ///< the file lacks the tensor, or has it with another dtype or shape
};

class SafetensorsError : public std::runtime_error {
public:
    SafetensorsError(SafetensorsFault fault, const std::string& text) : std::runtime_error(text), m_fault(fault) {}
    [[nodiscard]] SafetensorsFault fault() const noexcept { return m_fault; }

private:
    SafetensorsFault m_fault;
};

/// One tensor; valid as long as its Safetensors object.
struct TensorView {
    std::string dtype; ///< "F32", in the format's notation
    std::vector<std::int64_t> shape;
    std::span<const std::byte> bytes;
};

class Safetensors {
public:
    /// Both functions throw SafetensorsError.
    [[nodiscard]] static Safetensors read(const std::filesystem::path& path);
    [[nodiscard]] static Safetensors parse(std::vector<std::byte> content);

    Safetensors(Safetensors&&) noexcept = default;
    Safetensors& operator=(Safetensors&&) noexcept = default;
    Safetensors(const Safetensors&) = delete;
    Safetensors& operator=(const Safetensors&) = delete;
    ~Safetensors() = default;

    [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return m_metadata; }
    [[nodiscard]] const std::map<std::string, TensorView>& tensors() const noexcept { return m_tensors; }
    /// An F32 tensor of exactly this shape; missing_tensor otherwise.
    [[nodiscard]] const TensorView& f32(const std::string& name, const std::vector<std::int64_t>& shape) const;

private:
    Safetensors() = default;
    void read_header(std::string_view header, std::span<const std::byte> data);
    void check_layout(std::span<const std::byte> data) const;

    std::vector<std::byte> m_content;
    std::map<std::string, std::string> m_metadata;
    std::map<std::string, TensorView> m_tensors;
};

} // namespace samples
