// What a cubin holds: kernels and variables. No driver and no CUDA header is needed.
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
    managed,  ///< __managed__: the loader replaces it by memory of its own
};

/// How far its name is seen. Whole-program compilation (nvcc without -rdc, from 13.0 on) makes all variables local, and
/// cudaMemcpyToSymbol still finds them, so this alone does not say whether cuModuleGetGlobal does.
enum class VariableBinding : std::uint8_t { local, visible };

/// A variable at global scope.
struct CubinVariable {
    std::string name;
    std::uint64_t size = 0;
    /// What it holds after loading; `size` zeros where it has no initial value. Empty where the zeros of all variables
    /// before it and of it are more than k_most_zeros bytes.
    Bytes initial;
    VariableKind kind = VariableKind::device;
    VariableBinding binding = VariableBinding::visible;
    /// Offsets at which the loader puts an address into `initial`: such words differ from process to process.
    std::vector<std::uint64_t> relocated;

    static constexpr std::uint64_t k_most_zeros = 64ULL << 20U;
};

/// Names of the entry functions, as the symbol table spells and orders them. Fails as Cubin::parse does.
[[nodiscard]] Result<std::vector<std::string>> kernels_of(ByteView image);

/// What code does that the parameters of its kernels do not tell. True where it cannot be told.
struct CodeTraits {
    /// Functions are called by their addresses, which differ from process to process: what was compiled separately and linked
    /// (nvcc -rdc=true). Otherwise a function pointer is the number of a row in a table that the kernel brings along, the
    /// same everywhere.
    bool calls_by_address = true;
    bool keeps_state = true; ///< there are variables in global memory that may be state (state.hpp)
};
[[nodiscard]] CodeTraits code_traits(ByteView image);

class Cubin {
public:
    /// unsupported where it is no cubin (PTX, a fat binary, another machine), corrupt where it contradicts itself.
    [[nodiscard]] static Result<Cubin> parse(ByteView image);

    /// Names of the entry functions, as the symbol table spells and orders them.
    [[nodiscard]] const std::vector<std::string>& kernels() const noexcept { return m_kernels; }
    [[nodiscard]] const std::vector<CubinVariable>& variables() const noexcept { return m_variables; }
    /// 90 for sm_90 and sm_90a.
    [[nodiscard]] std::uint32_t sm() const noexcept { return m_sm; }

private:
    std::vector<std::string> m_kernels;
    std::vector<CubinVariable> m_variables;
    std::uint32_t m_sm = 0;
};

} // namespace warmgraph::backends::cuda
