// The kernels and variables of a cubin. This needs no driver and no CUDA header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

enum class VariableKind : std::uint8_t {
    device,   ///< __device__
    constant, ///< __constant__
    managed,  ///< __managed__: the loader gives the variable other memory
};

/// The visibility of the name. Whole-program compilation (nvcc without -rdc, since 13.0) makes all variables local, and
/// cudaMemcpyToSymbol still finds them. So this alone does not decide whether cuModuleGetGlobal finds a variable.
enum class VariableBinding : std::uint8_t { local, visible };

/// A variable at global scope.
struct CubinVariable {
    std::string name;
    std::uint64_t size = 0;
    /// The contents after loading; `size` zeros if it has no initial value. Empty if the zeros of this and all earlier
    /// variables exceed k_most_zeros bytes.
    Bytes initial;
    VariableKind kind = VariableKind::device;
    VariableBinding binding = VariableBinding::visible;
    /// Offsets at which the loader writes an address into `initial`: these words differ from process to process.
    std::vector<std::uint64_t> relocated;

    static constexpr std::uint64_t k_most_zeros = 64ULL << 20U;
};

/// Names of the kernels, spelled and ordered as in the symbol table. Errors as for Cubin::parse.
[[nodiscard]] Result<std::vector<std::string>> kernels_of(ByteView image);

/// Properties of code that the kernels' parameters do not show. A property that is unknown is true.
struct CodeTraits {
    /// True if functions are called by address, which differs from process to process: code that was compiled
    /// separately and linked (nvcc -rdc=true). Otherwise a function pointer is a row number in the kernel's own table,
    /// the same everywhere.
    bool calls_by_address = true;
    bool keeps_state = true; ///< some variables in global memory may be state (state.hpp)
};
[[nodiscard]] CodeTraits code_traits(ByteView image);

class Cubin {
public:
    /// unsupported: not a cubin (PTX, a fat binary, another machine). corrupt: parts of the file contradict each other.
    [[nodiscard]] static Result<Cubin> parse(ByteView image);

    /// Names of the kernels, spelled and ordered as in the symbol table.
    [[nodiscard]] const std::vector<std::string>& kernels() const noexcept { return m_kernels; }
    [[nodiscard]] const std::vector<CubinVariable>& variables() const noexcept { return m_variables; }
    /// Returns 90 for sm_90 and sm_90a.
    [[nodiscard]] std::uint32_t sm() const noexcept { return m_sm; }

private:
    std::vector<std::string> m_kernels;
    std::vector<CubinVariable> m_variables;
    std::uint32_t m_sm = 0;
};

} // namespace warmgraph::backends::cuda
