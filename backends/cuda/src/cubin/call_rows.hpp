// Rows of a cubin's tables about functions: .nv.callgraph, .nv.prototype and .nv.info.
//
// There is no public description; the layouts are read off what nvcc 13, nvlink and cuBLASLt 13 write.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

/// .nv.callgraph: rows of two words. A row (0, -n) starts part n: 1 callers and callees, 2 functions whose address is
/// taken, 3 callers through pointers, each of the last two with the number of a prototype; 4 functions and those whose
/// address they take, themselves or from a variable.
enum class CallKind : std::uint8_t {
    mark,
    needs, ///< the second symbol, of parts 1 and 4
    address_taken,
    by_address,
};
struct CallRow {
    std::uint32_t first = 0, second = 0;
    CallKind kind = CallKind::mark;
};
[[nodiscard]] Result<std::vector<CallRow>> read_calls(ByteView section);

/// .nv.info: rows of a format byte, an attribute byte and two bytes of value or, in format 4, of size.
struct InfoRow {
    std::uint8_t format = 0, attribute = 0;
    ByteView whole;   ///< the row
    ByteView payload; ///< of format 4, else empty
};
[[nodiscard]] Result<std::vector<InfoRow>> read_info(ByteView section);
/// Rows of .nv.info whose first word is the symbol they are about: registers, frame and stack sizes.
[[nodiscard]] bool is_about_symbol(const InfoRow& row) noexcept;
/// Rows of .nv.info that name no symbol, whatever their words are.
[[nodiscard]] bool is_about_image(const InfoRow& row) noexcept;
/// Symbols that a function's own .nv.info names as external to it.
[[nodiscard]] Result<std::vector<std::uint32_t>> external_symbols(ByteView section);

} // namespace warmgraph::backends::cuda
