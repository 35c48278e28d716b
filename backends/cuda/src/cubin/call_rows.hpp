// Rows of a cubin's tables about functions: .nv.callgraph, .nv.prototype and .nv.info.
//
// The format is not public; these layouts were derived from files of nvcc 13, nvlink and cuBLASLt 13.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

/// .nv.callgraph has rows of two words. A row (0, -n) starts part n. Part 1: callers and callees. Part 2: functions
/// whose address is taken, part 3: callers through pointers, both with a prototype's number. Part 4: functions, and
/// functions whose address they use directly or through a variable.
enum class CallKind : std::uint8_t {
    mark,
    needs, ///< the first symbol needs the second symbol (parts 1 and 4)
    address_taken,
    by_address,
};
struct CallRow {
    std::uint32_t first = 0, second = 0;
    CallKind kind = CallKind::mark;
};
[[nodiscard]] Result<std::vector<CallRow>> read_calls(ByteView section);

/// .nv.info: rows of a format byte, an attribute byte, and two bytes with a value or, for format 4, a size.
struct InfoRow {
    std::uint8_t format = 0, attribute = 0;
    ByteView whole;   ///< all bytes of the row
    ByteView payload; ///< the bytes behind the size, for format 4; else empty
};
[[nodiscard]] Result<std::vector<InfoRow>> read_info(ByteView section);
/// True for rows whose first word is the symbol that they describe: registers, frame and stack sizes.
[[nodiscard]] bool is_about_symbol(const InfoRow& row) noexcept;
/// True for rows that name no symbol.
[[nodiscard]] bool is_about_image(const InfoRow& row) noexcept;
/// The external symbols that a function's own .nv.info lists.
[[nodiscard]] Result<std::vector<std::uint32_t>> external_symbols(ByteView section);

} // namespace warmgraph::backends::cuda
