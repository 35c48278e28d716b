// Compiles for one device, with NVRTC.
#pragma once

#include "device/warm_up.hpp"
#include "warmgraph/backends/compiler.hpp"

namespace warmgraph::backends::cuda {

class CudaCompiler final : public Compiler {
public:
    /// `core` and `warm_up` must outlive this object.
    CudaCompiler(Core& core, WarmUp& warm_up) noexcept : m_core(core), m_warm_up(warm_up) {}

    [[nodiscard]] Result<std::unique_ptr<Module>> compile(std::string_view source, std::string_view options) override;
    [[nodiscard]] Result<CompilerIdentity> identity(std::string_view options) override;
    [[nodiscard]] std::optional<CompiledImage> compiled(Module& module) override;
    [[nodiscard]] Result<std::unique_ptr<Module>> load_compiled(std::string_view source, std::string_view options,
                                                                const CompiledImage& compiled,
                                                                Recompile again) override;

private:
    Core& m_core;
    WarmUp& m_warm_up;
};

} // namespace warmgraph::backends::cuda
